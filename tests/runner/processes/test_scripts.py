"""Scripts of users in a real runner process: their reports, their files and their failures."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobs.messages.sandbox import Level
from jobs.messages.task import DatasetFile, OwnCode, OwnCodeFile
from jobs.messages.training import ExecutionPlan, TrainTask, TrialPlan, TrialTask
from jobs.spec.sections.script_model import ScriptModel
from tests.engine.helpers import RecordingReport, profiled
from tests.present import present
from tests.runner.harness import RunnerProcess, runner
from workers.engine.report import TaskInterrupted
from workers.engine.scripts.outputs import OF_RUN
from workers.engine.scripts.run import Plan, run_script

DIGEST = "a" * 64
OBJECTIVE = {"metric": "val_accuracy", "direction": "max"}
REPORT = (
    'import json\ndef report(step, **m):\n    print(json.dumps({"step": step, "metrics": m}), flush=True)\n'
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scripts")


@pytest.fixture(scope="module")
def warm(base: Path) -> Iterator[RunnerProcess]:
    """One runner for all tests that leave it alive."""
    with runner(base / "warm") as process:
        yield process


def code(folder: Path, files: dict[str, str]) -> OwnCode:
    """Return a version of code with these files."""
    stored = []
    for number, (path, text) in enumerate(files.items()):
        place = folder / "store" / str(number)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        stored.append(OwnCodeFile(path=path, place=str(place)))
    return OwnCode(digest=DIGEST, files=tuple(stored), minimum=Level.PROCESS, network=False)


def spec(
    args: dict[str, Any] | None = None,
    *,
    entry: str = "train.py",
    search: dict[str, Any] | None = None,
    data: dict[str, Any] | None = None,
    fit: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
) -> Any:
    model = {"kind": "script", "digest": DIGEST, "entry": entry, "args": args or {}, "env": env or {}}
    found = {"model": model, "fit": fit or {"epochs": 3}}
    if search is not None:
        found["search"] = {"objective": OBJECTIVE, "space": [space("rate")], **search}
    if data is not None:
        found["data"] = data
    return found


def space(name: str) -> dict[str, Any]:
    return {"name": name, "kind": "float", "min": 0.0, "max": 1.0}


def train_task(
    folder: Path,
    text: str,
    *,
    files: dict[str, str] | None = None,
    dataset: DatasetFile | None = None,
    **fields: Any,
) -> TrainTask:
    """Return the task of a single run of a script."""
    return TrainTask(
        folder=str(folder),
        code=code(folder, {"train.py": REPORT + text, **(files or {})}),
        spec=spec(**fields),
        dataset=dataset,
        retrain=None,
        objective=OBJECTIVE,
        model_name="m",
    )


def trial_task(
    folder: Path,
    text: str,
    *,
    values: Sequence[dict[str, Any]] = ({"rate": 0.5},),
    seeds: Sequence[int] = (7,),
    **fields: Any,
) -> TrialTask:
    """Return the task of trials of a search over a script's arguments."""
    search = fields.pop("search", {})
    trials = tuple(
        TrialPlan(
            number=number,
            values=given,
            spec=spec(args={**fields.get("args", {}), **given}, search=search),
            executions=tuple(ExecutionPlan(execution=i, seed=seed) for i, seed in enumerate(seeds, 1)),
        )
        for number, given in enumerate(values, 1)
    )
    return TrialTask(
        folder=str(folder),
        code=code(folder, {"train.py": REPORT + text}),
        spec=spec(search=search, **fields),
        objective=OBJECTIVE,
        dataset=None,
        trials=trials,
    )


def of(events: Iterable[Any], kind: str) -> list[Any]:
    return [event for event in events if event.type == kind]


def series(events: Iterable[Any], name: str) -> list[tuple[Any, Any]]:
    """Return the points of a metric, (step, value)."""
    found: list[tuple[Any, Any]] = []
    for table in of(events, "points"):
        if name in table.names:
            found += zip(table.at, table.values[table.names.index(name)], strict=True)
    return found


class StoppingReport(RecordingReport):
    """Asks the script to stop once it has reported, which is after it ignores the signal."""

    def request(self) -> Any:
        return "stop" if self.of("metric") else None


def failure_of(events: Iterable[Any]) -> Any:
    """Return the error of the only trial."""
    (done,) = of(events, "trial_done")
    assert done.state == "failed"
    return done.error


def test_a_script_gets_its_arguments_and_its_metrics_become_points(warm: RunnerProcess, base: Path) -> None:
    text = "import sys\nfor step in (1, 2, 3):\n    report(step, loss=1 / step)\nprint(sys.argv[1:])\n"
    args = {"epochs": 3, "rate": 1e-5, "name": "a b", "shift": -0.5, "fast": True, "slow": False}
    events = warm.run(train_task(base / "args", text, args=args))
    assert events[-1].type == "result"
    assert series(events, "loss") == [(1, 1), (2, 0.5), (3, pytest.approx(1 / 3))]
    assert {table.x for table in of(events, "points")} == {"step"}
    assert events[-1].result["metrics"] == {"reported": {"loss": pytest.approx(1 / 3)}}
    expected = ["--epochs", "3", "--rate", "1e-05", "--name", "a b", "--shift=-0.5", "--fast"]
    assert str(expected) in warm.log.read_text()


def test_a_script_needs_neither_keras_nor_jax(warm: RunnerProcess, base: Path) -> None:
    events = warm.run(train_task(base / "plain", "report(1, loss=1.0)\n"))
    record = of(events, "started")[0].record
    assert record["devices"] == []
    modules = {
        line.rpartition(" ")[2] for line in Path(f"/proc/{warm.process.pid}/maps").read_text().splitlines()
    }
    assert not any("jaxlib" in module for module in modules)


def test_lines_that_are_no_metrics_go_to_the_log_and_metrics_do_not(warm: RunnerProcess, base: Path) -> None:
    text = 'print("hello from the script")\nreport(1, unseen=1.0)\nprint("{not json}")\n'
    warm.run(train_task(base / "log", text))
    log = warm.log.read_text()
    assert "hello from the script" in log
    assert "{not json}" in log
    assert "unseen" not in log


def test_the_helper_can_be_imported_and_names_the_folders(warm: RunnerProcess, base: Path) -> None:
    text = (
        "import trainyard_report as ty\n"
        "ty.report(1, loss=0.5)\n"
        "open(ty.output('nested/notes.txt'), 'w').write(f'{ty.seed()} {ty.data()}')\n"
    )
    folder = base / "helper"
    events = warm.run(train_task(folder, text, fit={"seed": 11}))
    assert series(events, "loss") == [(1, 0.5)]
    (written,) = of(events, "artifact")
    assert (written.role, written.name) == ("output", "nested/notes.txt")
    assert (folder / written.path).read_text() == "11 None"


def test_a_module_runs_with_the_files_beside_it_and_its_own_variables(
    warm: RunnerProcess, base: Path
) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/main.py": "import os, pkg.other\nfrom pathlib import Path\n"
        "print(Path('settings.txt').read_text(), os.environ['MODE'], pkg.other.NAME)\n"
        "Path('settings.txt').write_text('changed')\n",
        "pkg/other.py": "NAME = 'other'\n",
        "settings.txt": "read from the version",
    }
    task = train_task(base / "module", "", files=files, entry="-m pkg.main", env={"MODE": "quick"})
    events = warm.run(task)
    assert events[-1].type == "result"
    assert "read from the version quick other" in warm.log.read_text()
    # The script wrote into a copy.
    assert "changed" not in {Path(file.place).read_text() for file in present(task.code).files}


def test_a_keras_file_of_the_outputs_is_the_model_and_links_are_refused(
    warm: RunnerProcess, base: Path
) -> None:
    text = (
        "import os\n"
        "out = os.environ['TRAINYARD_OUTPUT']\n"
        "open(f'{out}/model.keras', 'wb').write(b'weights')\n"
        "os.symlink('/etc/passwd', f'{out}/stolen')\n"
        "report(1, loss=1.0)\n"
    )
    events = warm.run(train_task(base / "model", text))
    assert [(e.role, e.name) for e in of(events, "artifact")] == [("model", "model.keras")]
    (warned,) = [e for e in of(events, "warning") if e.code == "outputs_left_out"]
    assert "'stolen' (it is a link or no ordinary file)" in warned.message


def test_a_table_arrives_as_parquet_with_the_part_of_each_row(warm: RunnerProcess, base: Path) -> None:
    text = (
        "import os, collections, pyarrow.parquet as pq\n"
        "table = pq.read_table(os.environ['TRAINYARD_DATA'])\n"
        "parts = collections.Counter(table['trainyard_part'].to_pylist())\n"
        "report(1, columns=len(table.column_names), rows=len(table), **parts)\n"
    )
    dataset = profiled(base / "iris", bundled="iris")
    data = {"dataset": "iris", "split": {"validation": 0.2, "test": 0.1}}
    events = warm.run(train_task(base / "parquet", text, dataset=dataset, data=data))
    found = events[-1].result["metrics"]["reported"]
    assert found == {"columns": 6, "rows": 150, "train": 105, "validation": 30, "test": 15}


def test_images_arrive_as_arrays(warm: RunnerProcess, base: Path) -> None:
    text = (
        "import os, numpy as np\n"
        "data = np.load(os.environ['TRAINYARD_DATA'])\n"
        "report(1, rows=len(data['x']), labels=len(data['class_labels']),\n"
        "       train=int((data['trainyard_part'] == 'train').sum()), y=int(data['y'].max()))\n"
    )
    dataset = profiled(base / "digits", bundled="digits")
    events = warm.run(train_task(base / "npz", text, dataset=dataset, data={"dataset": "digits"}))
    found = events[-1].result["metrics"]["reported"]
    assert (found["rows"], found["labels"], found["y"]) == (1797, 10, 9)
    assert 1000 < found["train"] < 1100


def test_a_trial_has_the_best_value_of_the_objective_of_each_execution(
    warm: RunnerProcess, base: Path
) -> None:
    text = (
        "import argparse, os\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--rate', type=float)\n"
        "rate = parser.parse_args().rate + int(os.environ['TRAINYARD_SEED'])\n"
        "for step, extra in enumerate((0, 5, 2), 1):\n"
        "    report(step, val_accuracy=rate + extra, loss=step)\n"
    )
    events = warm.run(trial_task(base / "trial", text, values=[{"rate": 0.5}, {"rate": 0.25}], seeds=(1, 2)))
    trials = events[-1].result["trials"]
    assert [trial["score"] for trial in trials] == [7.0, 6.75]
    done = [e for e in of(events, "execution") if e.state == "completed"]
    assert [(e.trial, e.execution, e.score) for e in done] == [
        (1, 1, 6.5), (1, 2, 7.5), (2, 1, 6.25), (2, 2, 7.25)
    ]  # fmt: skip
    assert (done[0].best_epoch, done[0].epochs, done[0].metrics["loss"]) == (2, 3, 2)


def test_the_files_of_a_trial_have_its_number(warm: RunnerProcess, base: Path) -> None:
    text = "import trainyard_report as ty\nty.report(1, val_accuracy=1.0)\nopen(ty.output('a.txt'), 'w')\n"
    events = warm.run(trial_task(base / "files", text, seeds=(1, 2)))
    names = [e.name for e in of(events, "artifact")]
    assert names == ["trial-1/execution-1/a.txt", "trial-1/execution-2/a.txt"]


def test_a_pruner_ends_a_script_by_its_reported_steps(warm: RunnerProcess, base: Path) -> None:
    text = (
        "import sys, time\n"
        "rate = float(sys.argv[2])\n"
        "for step in range(1, 6):\n"
        "    report(step, val_accuracy=rate)\n"
        "    time.sleep(60 if rate < 0.4 and step > 2 else 0)\n"
    )
    search = {"pruner": {"kind": "median", "startup_trials": 2}}
    values = [{"rate": 0.9}, {"rate": 0.8}, {"rate": 0.1}]
    events = warm.run(trial_task(base / "pruned", text, values=values, search=search))
    assert [e.state for e in of(events, "trial_done")] == ["completed", "completed", "pruned"]
    assert of(events, "trial_done")[-1].verdict.rule == "median"


def test_an_error_of_a_script_fails_its_trial_with_its_own_traceback(warm: RunnerProcess, base: Path) -> None:
    text = "def train():\n    raise ValueError('no such column')\ntrain()\n"
    error = failure_of(warm.run(trial_task(base / "error", text)))
    assert (error.code, error.message) == (
        "script_failed", "train.py ended with exit status 1: ValueError: no such column"
    )  # fmt: skip
    assert error.traceback.startswith("Traceback (most recent call last)")
    assert "workers/" not in error.traceback
    # Files have the names that they have in the version of code.
    assert 'File "train.py", line' in error.traceback
    assert str(base) not in error.traceback


def test_a_script_that_exits_in_the_middle_fails_with_what_it_lacks(warm: RunnerProcess, base: Path) -> None:
    text = "import sys\nreport(1, loss=1.0)\nsys.exit(0)\nreport(2, val_accuracy=1.0)\n"
    error = failure_of(warm.run(trial_task(base / "early", text)))
    assert error.code == "no_objective"
    assert "no value of the objective 'val_accuracy', only loss" in error.message


def test_a_script_without_any_metrics_fails_a_trial_but_not_a_single_run(
    warm: RunnerProcess, base: Path
) -> None:
    error = failure_of(warm.run(trial_task(base / "silent", "")))
    assert (error.code, "no metrics" in error.message) == ("no_objective", True)
    events = warm.run(train_task(base / "silent-run", ""))
    assert events[-1].type == "result"
    assert [e.code for e in of(events, "warning")] == ["no_metrics"]


def test_an_objective_that_is_never_finite_fails_the_trial(warm: RunnerProcess, base: Path) -> None:
    error = failure_of(warm.run(trial_task(base / "nan", "report(1, val_accuracy=float('nan'))\n")))
    assert error.code == "nan_objective"


def test_a_script_that_prints_a_gigabyte_is_ended(warm: RunnerProcess, base: Path) -> None:
    text = "line = 'x' * 1000 + chr(10)\nimport sys\nfor _ in range(10**6): sys.stdout.write(line)\n"
    error = failure_of(warm.run(trial_task(base / "gigabyte", text)))
    assert error.code == "too_much_output"
    assert warm.log.stat().st_size < 100 * 2**20
    warm.log.write_text("")


def test_a_crash_names_the_signal(warm: RunnerProcess, base: Path) -> None:
    error = failure_of(warm.run(trial_task(base / "crash", "import os, signal\nos.kill(os.getpid(), 11)\n")))
    assert (error.code, error.message) == ("script_crashed", "train.py was ended by SIGSEGV.")


def test_processes_that_a_script_leaves_behind_are_ended_and_told(warm: RunnerProcess, base: Path) -> None:
    text = (
        "import os, subprocess, sys\n"
        "sleep = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "left = subprocess.Popen(sleep, start_new_session=True)\n"
        "report(1, val_accuracy=1.0, pid=left.pid)\n"
    )
    events = warm.run(trial_task(base / "left", text))
    ((_, pid),) = series(events, "pid")
    assert [e.state for e in of(events, "trial_done")] == ["completed"]
    (warned,) = of(events, "warning")
    assert (warned.code, "left 1 process running" in warned.message) == ("processes_left", True)
    assert not psutil.pid_exists(int(pid)) or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE


def test_metrics_that_are_no_numbers_are_told_a_few_times_and_do_not_end_the_script(
    warm: RunnerProcess, base: Path
) -> None:
    text = (
        "for i in range(20): print(json.dumps({'step': i, 'metrics': {'loss': f'high {i}'}}))\n"
        "print(json.dumps({'step': -1, 'metrics': {'loss': 1}}))\n"
        "print(json.dumps({'metrics': {'loss': 0.5}}))\n"
    )
    events = warm.run(train_task(base / "odd", text))
    warned = [e.message for e in of(events, "warning")]
    assert len(warned) == 3
    assert "metric 'loss' is no number: 'high 0'" in warned[0]
    assert series(events, "loss") == [(1, 0.5)]


@pytest.mark.parametrize("why", ["stop", "pause"])
def test_a_request_ends_a_script_by_sigterm(base: Path, why: str) -> None:
    text = "import time\nreport(1, loss=1.0)\ntime.sleep(600)\n"
    with runner(base / f"yield-{why}") as process:
        process.start(train_task(base / f"yield-{why}", text))
        process.wait_for(lambda events: bool(of(events, "points")))
        process.yield_(why)
        process.wait_for(lambda events: events[-1].type == "yielded", timeout=30)
        assert process.events[-1].why == why


def test_a_script_that_ignores_sigterm_is_killed_and_this_is_told(tmp_path: Path) -> None:
    text = (
        "import signal, time, os\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "report(1, pid=os.getpid())\n"
        "while True: time.sleep(1)\n"
    )
    task = train_task(tmp_path, text)
    report = StoppingReport(tmp_path)
    assert isinstance(task.spec.model, ScriptModel)
    plan = Plan(
        script=task.spec.model, code=present(task.code), folder=tmp_path / "run", seed=0, steps=1,
        objective=None, bounds=OF_RUN, grace=0.3,
    )  # fmt: skip
    with pytest.raises(TaskInterrupted):
        run_script(plan, report)
    (((code, message), _),) = report.of("warning")
    assert (code, message) == (
        "script_killed",
        "the script train.py did not end within 0.3 s of SIGTERM and was killed.",
    )
    (((_, metrics), _),) = report.of("metric")
    assert not psutil.pid_exists(int(metrics["pid"]))


def test_a_script_without_its_own_interpreter_is_named(warm: RunnerProcess, base: Path) -> None:
    task = train_task(base / "python", "report(1, loss=1.0)\n")
    missing = present(task.code).model_copy(update={"python": "/nowhere/python"})
    events = warm.run(task.model_copy(update={"code": missing}))
    assert (events[-1].type, events[-1].code) == ("failed", "missing_file")


def test_the_folder_of_the_work_is_removed_and_the_outputs_are_kept(warm: RunnerProcess, base: Path) -> None:
    folder = base / "tidy"
    text = (
        "import trainyard_report as ty\n"
        "ty.report(1, loss=1.0)\n"
        "open('big.tmp', 'w')\n"
        "open(ty.output('a'), 'w')\n"
    )
    warm.run(train_task(folder, text))
    assert sorted(path.name for path in (folder / "run").rglob("*")) == ["a", "output"]


def test_the_numbers_of_numpy_are_reported(warm: RunnerProcess, base: Path) -> None:
    text = (
        "import numpy as np, trainyard_report\ntrainyard_report.report(np.int64(2), loss=np.float32(0.5))\n"
    )
    assert series(warm.run(train_task(base / "numpy", text)), "loss") == [(2, 0.5)]
