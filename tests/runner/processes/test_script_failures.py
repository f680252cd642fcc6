"""Scripts that fail, are stopped, or leave something behind."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobs.spec.sections.script_model import ScriptModel
from tests.engine.helpers import RecordingReport
from tests.present import present
from tests.runner.harness import RunnerProcess, runner
from tests.runner.processes.test_scripts import events_of, series, train_task, trial_task
from workers.engine.report import TaskInterrupted
from workers.engine.scripts.outputs import OF_RUN
from workers.engine.scripts.run import Plan, run_script


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scripts")


@pytest.fixture(scope="module")
def warm(base: Path) -> Iterator[RunnerProcess]:
    """One runner for all tests that leave it alive."""
    with runner(base / "warm") as process:
        yield process


class StoppingReport(RecordingReport):
    """Asks the script to stop once it has reported, which is after it ignores the signal."""

    def request(self) -> Any:
        return "stop" if self.of("metric") else None


def failure_of(events: Iterable[Any]) -> Any:
    """Return the only trial's error."""
    (done,) = events_of(events, "trial_done")
    assert done.state == "failed"
    return done.error


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
    assert [e.code for e in events_of(events, "warning")] == ["no_metrics"]


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
    assert [e.state for e in events_of(events, "trial_done")] == ["completed"]
    (warned,) = events_of(events, "warning")
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
    warned = [e.message for e in events_of(events, "warning")]
    assert len(warned) == 3
    assert "metric 'loss' is no number: 'high 0'" in warned[0]
    assert series(events, "loss") == [(1, 0.5)]


@pytest.mark.parametrize("why", ["stop", "pause"])
def test_a_request_ends_a_script_by_sigterm(base: Path, why: str) -> None:
    text = "import time\nreport(1, loss=1.0)\ntime.sleep(600)\n"
    with runner(base / f"yield-{why}") as process:
        process.start(train_task(base / f"yield-{why}", text))
        process.wait_for(lambda events: bool(events_of(events, "points")))
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
        script=task.spec.model, command=("train.py",), code=present(task.code), folder=tmp_path / "run",
        seed=0, steps=1, objective=None, bounds=OF_RUN, grace=0.3,
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
