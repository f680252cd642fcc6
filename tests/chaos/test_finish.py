"""SIGKILL right after a user ends a search early: its steps run once, and no trial runs again."""

import pytest

from tests.chaos.harness import TIMEOUT, Round, find
from tests.flow.specs import search, spec
from tests.flow.yard import RunningYard
from tests.ops.conftest import wait_for

pytestmark = pytest.mark.timeout(3600)

LONG = spec(
    fit={"epochs": 3000, "batch_size": 16, "learning_rate": 0.01},
    search=search(
        max_trials=60,
        executions_per_trial=1,
        space=[
            {"name": "epochs", "kind": "choice", "values": [5, 3000]},
            {"name": "units", "kind": "int", "min": 8, "max": 64},
        ],
    ),
    after={"retrain": {"top": 1, "patience": 5, "epochs_cap": 20}},
    resources={"max_restarts": 100},
)


@pytest.mark.parametrize("kind", ["scheduler", "worker", "runner"])
def test_a_finished_search_continues_with_its_steps_after_a_kill(
    kind: str, chaos_installation: RunningYard
) -> None:
    round_ = Round(chaos_installation, seed=0)
    job = round_.submit_one("search", LONG)
    wait_for(lambda: chaos_installation.job(job)["results"].get("best_trial"), "the first score", TIMEOUT)
    wait_for(lambda: _states(chaos_installation, job).count("running") == 2, "a trial in each slot", TIMEOUT)
    victim = find(chaos_installation, kind)[0]
    answer = chaos_installation.ada.post(f"/jobs/{job}/finish")
    victim.kill()
    assert (answer["finishing"], answer["desired"]) == (True, "running")
    steps = len(_states(chaos_installation, job))
    ended = chaos_installation.until_completed(job)
    assert set(_states(chaos_installation, job)) <= {"completed", "stopped"}
    assert len(_states(chaos_installation, job)) == steps
    assert [(step["kind"], step["state"]) for step in ended["steps"]] == [
        ("search", "completed"),
        ("train", "completed"),
    ]
    cursors = [event["cursor"] for event in chaos_installation.events_of(job)]
    assert cursors == list(range(1, len(cursors) + 1)), "an event is missing or repeated"


def _states(installation: RunningYard, job: int) -> list[str]:
    return [trial["state"] for trial in installation.ada.get(f"/jobs/{job}/trials", limit=200)["items"]]
