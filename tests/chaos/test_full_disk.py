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
    chaos_installation: RunningYard,
) -> None:
    if chaos_installation.no_disk:
        pytest.skip(chaos_installation.no_disk)
    seen, told_before = Round(chaos_installation, seed=0), len(chaos_installation.printed())

    with leave(chaos_installation.home, 32 * MEBIBYTE):  # less than new work needs
        wait_for(lambda: _is_reported(chaos_installation), "the worker to notice")
        job_id = seen.submit_one("full disk", LONG_TRAINING)
        job = chaos_installation.until(
            job_id, lambda job: "nearly full" in job["why_waiting"], "its reason to wait"
        )
        assert job["state"] == "queued"

    chaos_installation.until(job_id, lambda job: job["progress"]["done"] >= 1, "its first epoch")
    with leave_nothing(chaos_installation.home):
        # Either a write fails with a report, or there was just room for the heartbeat that reports it.
        wait_for(
            lambda: _is_noticed(chaos_installation, told_before) or _is_reported(chaos_installation),
            "a full disk to be noticed",
        )
        assert chaos_installation.job(job_id)["state"] != "completed", "it had ended before the disk was full"
    chaos_installation.until_completed(job_id)
    seen.check()


def _is_noticed(installation: RunningYard, told_before: int) -> bool:
    said = installation.printed()[told_before:].lower()
    return "disk is full" in said or "no space left" in said


def _is_reported(installation: RunningYard) -> bool:
    with contextlib.suppress(DemoError):  # the dashboard, too, may find no room for an answer
        return bool(installation.ada.get("/workers")["items"][0]["info"].get("no_space"))
    return False
