"""Compares "Find a good model" with gradient boosting with its defaults, and with searches of one template.

    python -m benchmarks.find_model [--trials 40] [--data iris digits …]

Each data set is searched once over all templates, and once with each template alone, with the same number of
trials. All models are trained on the same training and validation rows, and measured on the same test rows:
accuracy, or the root mean squared error (RMSE) for a regression. The bundled data sets are small: 30 to 360
test rows, so one row is a visible difference.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jobs.spec.space.searchable import TEMPLATE
from jobs.spec.templates import TEMPLATES
from tests.flow.yard import PROJECT, RunningYard, open_yard
from workers.engine.data.bundled import CATALOGUE


class Result(NamedTuple):
    """A test metric, and the seconds until it was known."""

    label: str
    value: float
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.find_model", description=__doc__)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--data", nargs="+", choices=CATALOGUE, default=list(CATALOGUE))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, open_yard(Path(folder) / "home") as yard:
        yard.open()
        for name in options.data:
            report(name, list(results(yard, name, options.trials)))


def results(yard: RunningYard, name: str, trials: int) -> Iterator[Result]:
    """Yield the results for a data set: of all templates together, of each alone, and of the peer."""
    yard.until_ready(name)
    body = {"project": PROJECT, "dataset": name, "version": 1, "max_trials": trials, "submit": False}
    experiment = int(yard.ada.post("/experiments/find-model", body)["experiment"])
    spec = yard.ada.get(f"/experiments/{experiment}")["spec"]
    metric = "rmse" if CATALOGUE[name].task == "regression" else "accuracy"
    job = finished(yard, yard.submit(spec, name=name))
    for candidate in ("ensemble", "best"):
        label = f"all templates, {candidate}"
        yield Result(label, job["results"]["candidates"][candidate]["test"][metric], job["seconds"])
    for template in next(one for one in spec["search"]["space"] if one["name"] == TEMPLATE)["values"]:
        alone = finished(yard, yard.submit(only(spec, template, trials), name=f"{name} {template}"))
        yield Result(template, alone["results"]["candidates"]["best"]["test"][metric], alone["seconds"])
    command = [sys.executable, "-m", "benchmarks.peers.boosted_trees", name]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    yield Result("HistGradientBoosting", float(printed), 0.0)


def only(spec: dict[str, Any], template: str, trials: int) -> dict[str, Any]:
    """Return the spec with one template alone, and the same number of trials."""
    search = spec["search"]
    space = [row for entry in search["space"] if (row := only_row(entry, template)) is not None]
    first = [values for values in search["start_with"] if values[TEMPLATE] == template]
    changed = {**search, "space": space, "start_with": first, "max_trials": trials - len(first)}
    # A field that a template does not use is refused.
    fit = {name: value for name, value in spec["fit"].items() if TEMPLATES[template].uses(name)}
    return {**spec, "model": {"kind": "template", "template": template}, "fit": fit, "search": changed}


def only_row(row: dict[str, Any], template: str) -> dict[str, Any] | None:
    """Return a hyperparameter for one template alone; None if the template does not have it."""
    if row["name"] == TEMPLATE:
        return {**row, "values": [template]}
    return {**row, "when": {**row["when"], "in": [template]}} if template in row["when"]["in"] else None


def finished(yard: RunningYard, job_id: int) -> dict[str, Any]:
    """Wait until a job has ended well, and return it."""
    return yard.until_completed(job_id)


def report(name: str, results: list[Result]) -> None:
    """Print the results of a data set, the better ones first."""
    is_error = CATALOGUE[name].task == "regression"
    print(f"{name}, {'RMSE' if is_error else 'accuracy'} on test rows", flush=True)
    for result in sorted(results, key=lambda one: one.value if is_error else -one.value):
        print(f"  {result.label:28}{result.value:10.4f}   {result.seconds:6.0f} s", flush=True)


if __name__ == "__main__":
    main()
