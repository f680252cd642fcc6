"""All processes are killed and all files deleted except the database and the artifact store."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.doomed_runner import accept_requests
from tests.chaos.harness import Round
from tests.flow.rows import read
from tests.flow.specs import Spec, search, spec
from tests.flow.yard import RunningYard, open_yard
from tests.ops.conftest import wait_for

EPOCHS = 500
TRIALS = 3
LEFT = ("artifacts", "trainyard.sqlite3*")

pytestmark = pytest.mark.timeout(3600)


def body() -> Spec:
    rate = {"name": "learning_rate", "kind": "float", "min": 1e-3, "max": 1e-1, "sampling": "log"}
    asked = search("random", space=[rate], max_trials=TRIALS, executions_per_trial=1)
    return spec(search=asked, fit={"epochs": EPOCHS, "batch_size": 16})


@pytest.fixture(scope="module")
def unbroken(chaos_installation: RunningYard) -> dict[str, Any]:
    """The result of the search without any kill."""
    calm = Round(chaos_installation, seed=0)
    calm.submit_one("calm", body())
    calm.finish([])
    return calm.check()[0]


@pytest.fixture
def own_installation(tmp_path: Path) -> Iterator[RunningYard]:
    """A separate installation: one that loses its keys cannot vouch for its audit log any more."""
    with open_yard(tmp_path / "home", TRAINYARD_RUNNER_MODULE="tests.chaos.doomed_runner") as installation:
        accept_requests(installation.home)
        installation.open()
        yield installation


def interrupted(installation: RunningYard, job: int) -> dict[int, int]:
    """Return the trials that run and have a checkpoint, and the step of the newest, once another is done."""
    done = "SELECT 1 FROM jobs_trial WHERE job_id = ? AND state = 'completed'"
    query = """SELECT number, max(step) FROM jobs_trial JOIN jobs_checkpoint ON trial_id = jobs_trial.id
        WHERE jobs_trial.job_id = ? AND state = 'running' GROUP BY number"""
    return dict(read(installation.home, query, job)) if read(installation.home, done, job) else {}


def install_anew(installation: RunningYard, *, left: tuple[str, ...]) -> None:
    """Kill everything and delete all files but those `left`."""
    installation.end()
    wait_for(lambda: not installation.everything(), "everything to be dead")
    remaining = {path for pattern in left for path in installation.home.glob(pattern)}
    for path in set(installation.home.iterdir()) - remaining:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    accept_requests(installation.home)


def lose_everything_else(installation: RunningYard, *left: str) -> Round:
    """Do so in the middle of a search, which ends on the new installation."""
    round_ = Round(installation, seed=0)
    job = round_.submit_one("broken", body())
    # Found before the wait: the search may end while its processes are looked for.
    worker = installation.parts()["worker-1"]
    # The last one began when another was done, so most of its epochs are still to come.
    what = "a trial to be done and the last to have a checkpoint"
    # Often: a trial takes a second on a fast machine.
    wait_for(lambda: TRIALS in interrupted(installation, job), what, interval=0.01)
    # First, and its runners with it, so that no trial ends while the other processes are ended.
    worker.kill()
    install_anew(installation, left=left)
    standing = interrupted(installation, job)
    before = len(read(installation.home, "SELECT 1 FROM jobs_attempt WHERE job_id = ?", job))
    installation.open()
    assert standing, "nothing was interrupted"
    round_.finish([])
    attempts = installation.ada.get(f"/jobs/{job}/attempts", sort="id")["items"]
    went_on = {attempt["trials"][0]: attempt["resumed_from"] for attempt in attempts[before:]}
    assert {number: went_on.get(number) for number in standing} == standing
    return round_


def test_a_search_resumes_from_the_database_and_the_artifact_store(
    chaos_installation: RunningYard, unbroken: dict[str, Any]
) -> None:
    round_ = lose_everything_else(chaos_installation, *LEFT, "*.key")
    assert round_.check() == [unbroken]


@pytest.mark.skipif(
    "TRAINYARD_CHAOS" not in os.environ, reason="one more installation: set TRAINYARD_CHAOS=1"
)
def test_without_its_keys_a_search_resumes_and_only_the_audit_log_is_invalid(
    own_installation: RunningYard, unbroken: dict[str, Any]
) -> None:
    round_ = lose_everything_else(own_installation, *LEFT)
    said = own_installation.call("tests.chaos.invariants", "report", round_.jobs[0][1])
    assert said["problems"] == ["the audit chain is not valid: other_key"]
    assert said["facts"] == {str(round_.jobs[0][1]): unbroken}
