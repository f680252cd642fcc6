"""The home on a disk that is full: new work waits with a reason, what runs loses nothing."""

import contextlib

import pytest

from tests.chaos.harness import TRAINING, Round
from tests.flow.disk import MEBIBYTE, leave, leave_nothing
from tests.flow.yard import RunningYard
from tests.ops.conftest import wait_for
from webapp.demo.client import DemoError

pytestmark = pytest.mark.timeout(3600)


def test_nothing_is_lost_on_a_full_disk_and_everything_goes_on_once_there_is_room(
    flow_yard: RunningYard,
) -> None:
    if flow_yard.no_disk:
        pytest.skip(flow_yard.no_disk)
    seen, told_before = Round(flow_yard, seed=0), len(flow_yard.said())

    ballast = leave(flow_yard.home, 32 * MEBIBYTE)  # less than new work needs
    wait_for(lambda: _is_reported(flow_yard), "the worker to notice")
    job_id = seen.submit_one("full disk", TRAINING | {"fit": {**TRAINING["fit"], "epochs": 600}})
    job = flow_yard.until(job_id, lambda job: "nearly full" in job["why_waiting"], "its reason to wait")
    assert job["state"] == "queued"
    ballast.unlink()

    flow_yard.until(job_id, lambda job: job["progress"]["done"] >= 1, "its first epoch")
    ballast = leave_nothing(flow_yard.home)
    # Either a write fails and says so, or there was just room for the heartbeat that reports it.
    wait_for(
        lambda: _is_noticed(flow_yard, told_before) or _is_reported(flow_yard), "a full disk to be noticed"
    )
    assert flow_yard.job(job_id)["state"] != "completed", "it had ended before the disk was full"
    ballast.unlink()
    flow_yard.until_completed(job_id)
    seen.look()


def _is_noticed(yard: RunningYard, told_before: int) -> bool:
    said = yard.said()[told_before:].lower()
    return "disk is full" in said or "no space left" in said


def _is_reported(yard: RunningYard) -> bool:
    with contextlib.suppress(DemoError):  # the dashboard, too, may find no room for an answer
        return bool(yard.ada.get("/workers")["items"][0]["info"].get("no_space"))
    return False
