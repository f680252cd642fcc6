"""How a real runner is stopped, paused and ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.messages.control import Compare
from jobs.messages.task import DatasetFile
from jobs.spec.sections.pruning import Curve
from tests.present import present
from tests.runner.forks import ROOT
from tests.runner.harness import RunnerProcess, runner
from tests.runner.processes.test_runner import events_of
from tests.runner.tasks import FAST, profiled, trial_task


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runner")


@pytest.fixture(scope="module")
def iris(base: Path) -> DatasetFile:
    return profiled(base / "iris", bundled="iris")


@pytest.fixture(scope="module")
def warm(base: Path) -> Iterator[RunnerProcess]:
    """One runner for all tests that leave it alive."""
    with runner(base / "warm") as process:
        yield process


def test_after_a_stop_the_remaining_trials_are_not_started(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    before = len(warm.events)
    warm.start(trial_task(base / "rest", iris, trials=({"fit": LONG["fit"]}, {})))
    warm.wait_for(lambda events: events_of(events[before:], "points"))
    warm.yield_("stop")
    warm.wait_for(lambda events: events[-1].type == "yielded")
    assert [e.trial for e in events_of(warm.events[before:], "trial_begun")] == [1]
    assert not events_of(warm.events[before:], "trial_done")


def test_a_damaged_data_set_fails_the_task(warm: RunnerProcess, base: Path, iris: DatasetFile) -> None:
    (base / "broken.npz").write_bytes(b"not an npz")
    file = iris.model_copy(update={"path": str(base / "broken.npz")})
    assert warm.run(trial_task(base / "bad", file))[-1].code == "bad_data"


def test_a_task_for_another_environment_is_refused(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    warm.run(trial_task(base / "first", iris))
    mesh = {"shape": [2], "axis_names": ["data"], "simulate": 2}
    assert warm.run(trial_task(base / "mesh", iris, mesh=mesh))[-1].code == "environment"
    assert warm.run(trial_task(base / "threads", iris, threads=2))[-1].code == "environment"


def test_an_invalid_task_file_is_a_failure_not_a_crash(warm: RunnerProcess, base: Path) -> None:
    from jobs.messages.control import Start

    (base / "odd.json").write_text('{"kind": "nonsense"}')
    before = len(warm.events)
    warm.send(Start(task=str(base / "odd.json")))
    warm.wait_for(lambda events: len(events) > before)
    assert warm.events[-1].type == "failed"


LONG: dict[str, Any] = {"fit": {"epochs": 100_000, "batch_size": 16}}


def test_a_pause_writes_a_checkpoint_and_the_next_attempt_resumes_from_it(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    task = trial_task(base / "pause", iris, **LONG)
    before = len(warm.events)
    warm.start(task)
    warm.wait_for(lambda events: len(events_of(events[before:], "points")) > 3)
    warm.yield_("pause")
    warm.wait_for(lambda events: events[-1].type == "yielded")
    events = warm.events[before:]
    last = events_of(events, "checkpoint")[-1]
    assert events[-1].why == "pause"
    assert last.epoch == sum(len(table.at) for table in events_of(events, "points"))

    checkpoint = {"folder": last.folder, "manifest": last.manifest, "step": last.step}
    before = len(warm.events)
    warm.start(trial_task(base / "pause", iris, fence=2, resume=(checkpoint,), **LONG))
    warm.wait_for(lambda events: events_of(events[before:], "points"))
    warm.yield_("stop")
    warm.wait_for(lambda events: events[-1].type == "yielded")
    events = warm.events[before:]
    assert events_of(events, "started")[0].resumed_from == last.step
    assert events_of(events, "points")[0].at[0] == last.epoch + 1


def test_a_checkpoint_is_written_on_request(warm: RunnerProcess, base: Path, iris: DatasetFile) -> None:
    before = len(warm.events)
    warm.start(trial_task(base / "asked", iris, **LONG))
    warm.wait_for(lambda events: events_of(events[before:], "points"))
    warm.checkpoint()
    warm.wait_for(lambda events: events_of(events[before:], "checkpoint"))
    warm.yield_("stop")
    warm.wait_for(lambda events: events[-1].type == "yielded")


def test_sigterm_writes_a_checkpoint_and_ends_the_runner(base: Path, iris: DatasetFile) -> None:
    with runner(base / "sigterm") as process:
        process.start(trial_task(base / "stopped", iris, **LONG))
        process.wait_for(lambda events: events_of(events, "points"))
        process.process.send_signal(signal.SIGTERM)
        process.wait_for(lambda events: events[-1].type == "yielded")
        assert process.process.wait(20) == 0
        assert process.events[-1].why == "stop"
        assert process.events[-2].type == "checkpoint"


def test_the_end_of_its_input_ends_an_idle_runner(base: Path) -> None:
    with runner(base / "idle") as process:
        assert process.close() == 0


def test_a_runner_dies_with_its_supervisor(base: Path) -> None:
    program = (
        "import os, subprocess, sys, time; r, w = os.pipe();"
        "p = subprocess.Popen([sys.executable, '-m', 'workers.runner', '--events-fd', str(w), '--parent',"
        " str(os.getpid())], stdin=subprocess.PIPE, pass_fds=(w,), start_new_session=True);"
        "print(p.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    child = int(present(parent.stdout).readline())
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while _alive(child):
        assert time.monotonic() < deadline, "the runner outlived its supervisor"
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_running_training_is_pruned_by_trials_that_end_elsewhere(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    rule = {
        "algorithm": "random",
        "objective": {"metric": "val_loss", "direction": "min"},
        "space": [{"name": "learning_rate", "kind": "float", "min": 1e-3, "max": 1e-1}],
        "pruner": {"kind": "median", "startup_trials": 2},
    }
    unbeaten = [Curve(trial=trial, execution=1, epochs=1, over=True, best=((1, -1.0),)) for trial in (8, 9)]
    warm.send(Compare(curves=unbeaten))  # no task has begun
    before = len(warm.events)
    warm.start(trial_task(base / "judged", iris, search=rule, fit={**FAST, "epochs": 50_000}))
    warm.wait_for(lambda events: len(events_of(events[before:], "points")) > 2)
    warm.send(Compare(curves=unbeaten[:1]))
    warm.send(Compare(curves=unbeaten[:1]))  # a repetition does not count
    heard = len(events_of(warm.events, "points"))
    warm.wait_for(lambda events: len(events_of(events, "points")) > heard + 2)
    assert not events_of(warm.events[before:], "trial_done")
    warm.send(Compare(curves=unbeaten))
    warm.wait_for(lambda events: events_of(events[before:], "result"))
    (done,) = events_of(warm.events[before:], "trial_done")
    (execution,) = [e for e in events_of(warm.events[before:], "execution") if e.state == "pruned"]
    assert (done.state, done.verdict.threshold, done.verdict.of) == ("pruned", -1.0, 2)
    assert (done.verdict.epoch, done.verdict.value) == (execution.epochs, execution.best[-1][1])
