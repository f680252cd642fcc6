"""Runs in its own process with 8 simulated devices: trains each case with each mesh, prints all values."""

import gc
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from workers.runner.environment import Environment
from workers.runner.libraries import import_keras

Environment(threads=1, platform="cpu", simulated_devices=8).apply()
import_keras()

from jobs.messages.task import DatasetFile, OwnCode  # noqa: E402  the environment comes first
from jobs.messages.training import ExecutionPlan, TrainTask, TrialPlan, TrialTask  # noqa: E402
from jobs.spec.data.columns import ColumnRequest  # noqa: E402
from jobs.spec.data.profile import Profile  # noqa: E402
from jobs.spec.experiment import ExperimentSpec  # noqa: E402
from jobs.spec.sections import measures  # noqa: E402
from jobs.spec.sections.model import model_json  # noqa: E402
from jobs.spec.space.values import apply_values  # noqa: E402
from tests import own_code  # noqa: E402
from tests.engine.helpers import RecordingReport, csv_file, profiled  # noqa: E402
from tests.engine.processes.mesh_cases import CASES, LOSS, Case  # noqa: E402
from tests.engine.texts import reviews  # noqa: E402
from workers.engine.tasks import train, trial  # noqa: E402

ROWS = 173
AXES = {"axis_names": ["data", "model"], "simulate": 8}
FIT: dict[str, Any] = {"epochs": 2, "batch_size": 32, "learning_rate": 0.01}
WEIGHT = (ColumnRequest(name="w", role="weight"),)
LEFT_OUT = ("seconds", "bytes", "signature")


def main(folder: Path, chosen: list[str]) -> None:
    """Train each case with each mesh."""
    gc.freeze()  # as a runner does: each new model starts with a collection
    files = data_files(folder / "data")
    for name in chosen or CASES:
        case = CASES[name]
        meshes = {"one": None, "2x4": {**AXES, "shape": [2, 4], "layout": case.layout},
                  "8x1": {**AXES, "shape": [8, 1]}}  # fmt: skip
        runs = {}
        for mesh_name, mesh in meshes.items():
            place = folder / f"{name}-{mesh_name}"
            place.mkdir()
            runs[mesh_name] = run(case, files[case.data], place, mesh)
        sys.stdout.write(json.dumps({"case": name, "runs": runs}) + "\n")
        sys.stdout.flush()


def data_files(folder: Path) -> dict[str, DatasetFile]:
    """Store and profile a table, numbers, labels, images and texts."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 4)).astype(np.float32)
    noise, weights = rng.normal(size=ROWS), rng.integers(0, 4, ROWS)
    number = x @ np.array([3.0, -2.0, 1.0, 0.5]) + 0.3 * noise
    both = np.stack([number, x[:, 0] * 20 + noise], axis=1).astype(np.float32)
    labels = (x[:, :3] + 0.2 * noise[:, None] > 0).astype(np.int32)
    return {
        "table": of_table(folder / "table", x, weights, np.where(number > 0, "yes", "no")),
        "weighted numbers": of_table(folder / "numbers", x, weights, number, whole=True),
        "two numbers": of_arrays(folder / "both", x, both),
        "labels": of_arrays(folder / "labels", x, labels),
        "digits": profiled(folder / "digits", bundled="digits"),
        "reviews": reviews(folder / "reviews", 173),
    }


def of_arrays(folder: Path, x: Any, y: Any) -> DatasetFile:
    """Store and profile features and targets."""
    folder.mkdir(parents=True)
    np.savez(folder / "a.npz", x=x, y=y)
    return profiled(folder / "p", source="npz", path=str(folder / "a.npz"))


def of_table(folder: Path, x: Any, weights: Any, y: Any, *, whole: bool = False) -> DatasetFile:
    """Store a table with a weight column; unless `whole`, a column has gaps and one has categories."""
    folder.mkdir(parents=True)
    lines = ["a,b,c,d,w,y"]
    for row, (a, b, c, d) in enumerate(x):
        cells = [a, b, c, d] if whole else ["" if row % 9 == 4 else a, b, c, "uvw"[row % 3]]
        lines.append(",".join(map(str, [*cells, weights[row], y[row]])))
    path = csv_file(folder, "\n".join(lines) + "\n")
    return profiled(folder / "p", source="csv", path=path, target="y", columns=WEIGHT)


def run(case: Case, file: DatasetFile, folder: Path, mesh: Any) -> dict[str, Any]:
    """Run a case; return the values of each epoch, the result, and why trials have failed."""
    code = own_code.code_in(folder / "code", case.code) if case.code else None
    report, spec = RecordingReport(folder), spec_of(case, file, code, mesh)
    common: dict[str, Any] = {"folder": str(folder), "objective": LOSS, "dataset": file, "code": code}
    if case.search is None:
        result = train.run(TrainTask(spec=spec, retrain=case.retrain, model_name="m", **common), report)
    else:
        result = trial.run(TrialTask(spec=spec, trials=trials_of(case, spec), **common), report)
    epochs = [
        {"execution": named.get("execution") or 0, "epoch": args[0], **without_times(args[1])}
        for args, named in report.of("metric")
    ]
    # Executions may be trained side by side.
    epochs.sort(key=lambda values: values["execution"])
    failures = [str(args[0]) for args, _ in report.of("trial_finished") if args]
    return {"epochs": epochs, "result": without_times(result), "failures": failures}


def spec_of(case: Case, file: DatasetFile, code: OwnCode | None, mesh: Any) -> ExperimentSpec:
    """Return the spec of a case; a template has every metric of its task."""
    profile, fit = Profile.model_validate(file.profile), {**FIT, **case.fit}
    if code is None:
        model = model_json(case.template, case.args)
        fit["metrics"] = measures.metrics_for(profile.task)
        if profile.outputs <= 5 and "top_5_accuracy" in fit["metrics"]:
            fit["metrics"].remove("top_5_accuracy")
    else:
        model = {"kind": "code", "digest": code.digest, "entry": case.template}
    body = {"version": 1, "data": {"dataset": "d"}, "model": model, "fit": fit}
    if mesh is not None:
        body["mesh"] = mesh
    if case.search is not None:
        body["search"] = {"objective": LOSS, "max_trials": 2, **case.search}
    return ExperimentSpec.model_validate(body)


def trials_of(case: Case, spec: ExperimentSpec) -> tuple[TrialPlan, ...]:
    """Return the trials of a search."""
    has_folds = case.search is not None and "evaluation" in case.search
    executions = tuple(
        ExecutionPlan(execution=number, seed=number, fold=number if has_folds else None)
        for number in range(1, case.executions + 1)
    )
    return tuple(
        TrialPlan(number=number, values=values, spec=apply_values(spec, values), executions=executions)
        for number, values in enumerate(case.trials, 1)
    )


def without_times(values: Any) -> Any:
    """Leave out how long things took, and the size of files."""
    if isinstance(values, dict):
        return {
            name: without_times(value)
            for name, value in values.items()
            if not str(name).startswith("system/") and name not in LEFT_OUT
        }
    if isinstance(values, list | tuple):
        return [without_times(value) for value in values]
    return float(values) if isinstance(values, np.floating) else values


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
