"""A runner that is alive but makes no progress."""

import psutil
import pytest

from tests.chaos.harness import LONG_TRAINING, Round, find
from tests.flow.yard import RunningYard
from tests.ops.conftest import wait_for

pytestmark = pytest.mark.timeout(3600)
BUSY_SECONDS = 0.5


def busy_runner(installation: RunningYard) -> psutil.Process:
    """Return the runner that trains. Others are idle, or are being prepared for the next job."""
    before = {process.pid: cpu_of(process) for process in find(installation, "runner")}

    def grown() -> psutil.Process | None:
        used = {
            process: cpu_of(process) - before.get(process.pid, 0.0)
            for process in find(installation, "runner")
        }
        most = max(used, key=used.__getitem__, default=None)
        return most if most is not None and used[most] > BUSY_SECONDS else None

    return wait_for(grown, "a runner that trains")


def cpu_of(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def test_a_suspended_runner_is_killed_and_its_work_is_repeated(chaos_installation: RunningYard) -> None:
    stuck = Round(chaos_installation, seed=0)
    job = stuck.submit_one("training", LONG_TRAINING)
    chaos_installation.until(job, lambda job: job["progress"]["done"] >= 1, "its first epoch")
    busy_runner(chaos_installation).suspend()
    chaos_installation.until_completed(job)
    outcomes = [
        (attempt["outcome"], (attempt["error"] or {}).get("code"))
        for attempt in chaos_installation.ada.get(f"/jobs/{job}/attempts", sort="id")["items"]
    ]
    assert outcomes == [("lost", "hung"), ("completed", None)]
    stuck.check()
