"""Script trials: objectives, files and pruners."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runner.harness import RunnerProcess, runner
from tests.runner.processes.test_scripts import events_of, trial_task


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scripts")


@pytest.fixture(scope="module")
def warm(base: Path) -> Iterator[RunnerProcess]:
    """One runner for all tests that leave it alive."""
    with runner(base / "warm") as process:
        yield process


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
    done = [e for e in events_of(events, "execution") if e.state == "completed"]
    assert [(e.trial, e.execution, e.score) for e in done] == [
        (1, 1, 6.5), (1, 2, 7.5), (2, 1, 6.25), (2, 2, 7.25)
    ]  # fmt: skip
    assert (done[0].best_epoch, done[0].epochs, done[0].metrics["loss"]) == (2, 3, 2)


def test_the_files_of_a_trial_have_its_number(warm: RunnerProcess, base: Path) -> None:
    text = "import trainyard_report as ty\nty.report(1, val_accuracy=1.0)\nopen(ty.output('a.txt'), 'w')\n"
    events = warm.run(trial_task(base / "files", text, seeds=(1, 2)))
    names = [e.name for e in events_of(events, "artifact")]
    assert names == ["trial-1/execution-1/a.txt", "trial-1/execution-2/a.txt"]


def test_files_that_a_trial_writes_elsewhere_are_named_before_they_are_lost(
    warm: RunnerProcess, base: Path
) -> None:
    text = "report(1, val_accuracy=1.0)\nopen('metrics.json', 'w')\nopen('model.keras', 'w')\n"
    events = warm.run(trial_task(base / "lost", text))
    assert not events_of(events, "artifact")
    (warned,) = events_of(events, "warning")
    assert warned.code == "files_lost"
    assert warned.message == (
        "the script train.py wrote model.keras, metrics.json in its working folder, which is deleted "
        "after each run of a trial. To keep files, write them to the folder that the variable "
        "TRAINYARD_OUTPUT names."
    )


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
    assert [e.state for e in events_of(events, "trial_done")] == ["completed", "completed", "pruned"]
    assert events_of(events, "trial_done")[-1].verdict.rule == "median"
