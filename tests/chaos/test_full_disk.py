"""The home on a full disk: new work waits with a reason, and running work loses nothing."""

import contextlib

import pytest

from tests.chaos.harness import LONG_TRAINING, Round
from tests.flow.disk import MEBIBYTE, leave, leave_nothing
from tests.flow.yard import RunningYard
from tests.ops.conftest import wait_for
from webapp.demo.client import DemoError

pytestmark = pytest.mark.timeout(3600)


def test_nothing_is_lost_on_a_full_disk_and_work_resumes_once_there_is_space(
    chaos_yard: RunningYard,
) -> None:
    if chaos_yard.no_disk:
        pytest.skip(chaos_yard.no_disk)
    seen, told_before = Round(chaos_yard, seed=0), len(chaos_yard.printed())

    with leave(chaos_yard.home, 32 * MEBIBYTE):  # less than new work needs
        wait_for(lambda: _is_reported(chaos_yard), "the worker to notice")
        job_id = seen.submit_one("full disk", LONG_TRAINING)
        job = chaos_yard.until(job_id, lambda job: "nearly full" in job["why_waiting"], "its reason to wait")
        assert job["state"] == "queued"

    chaos_yard.until(job_id, lambda job: job["progress"]["done"] >= 1, "its first epoch")
    with leave_nothing(chaos_yard.home):
        # Either a write fails with a report, or there was just room for the heartbeat that reports it.
        wait_for(
            lambda: _is_noticed(chaos_yard, told_before) or _is_reported(chaos_yard),
            "a full disk to be noticed",
        )
        assert chaos_yard.job(job_id)["state"] != "completed", "it had ended before the disk was full"
    chaos_yard.until_completed(job_id)
    seen.check()


def _is_noticed(yard: RunningYard, told_before: int) -> bool:
    said = yard.printed()[told_before:].lower()
    return "disk is full" in said or "no space left" in said


def _is_reported(yard: RunningYard) -> bool:
    with contextlib.suppress(DemoError):  # the dashboard, too, may find no room for an answer
        return bool(yard.ada.get("/workers")["items"][0]["info"].get("no_space"))
    return False
