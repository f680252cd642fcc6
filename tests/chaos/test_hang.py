"""A runner that is alive but makes no progress."""

import pytest

from tests.chaos.harness import LONG_TRAINING, Round, find
from tests.flow.yard import RunningYard
from tests.ops.conftest import wait_for

pytestmark = pytest.mark.timeout(3600)


def test_a_suspended_runner_is_killed_and_its_work_is_repeated(chaos_yard: RunningYard) -> None:
    stuck = Round(chaos_yard, seed=0)
    job = stuck.submit_one("training", LONG_TRAINING)
    chaos_yard.until(job, lambda job: job["progress"]["done"] >= 1, "its first epoch")
    wait_for(lambda: find(chaos_yard, "runner"), "its runner")[0].suspend()
    chaos_yard.until_completed(job)
    outcomes = [
        (attempt["outcome"], (attempt["error"] or {}).get("code"))
        for attempt in chaos_yard.ada.get(f"/jobs/{job}/attempts", sort="id")["items"]
    ]
    assert outcomes == [("lost", "hung"), ("completed", None)]
    stuck.check()
