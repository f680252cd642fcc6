"""Searches with rungs that are paused, resumed and stopped while several trials train."""

from typing import Any

import pytest

from tests.flow.specs import search, spec
from tests.flow.yard import RunningYard

pytestmark = pytest.mark.timeout(1800)

Body = dict[str, Any]
FIRST, LAST = 600, 3600
"""Epochs of the rungs: most trials are short, and the promoted one is long enough to be interrupted."""
TRIES = 3
"""On a busy machine a promoted trial may end before the order arrives: then another search is interrupted."""
SPACE = [{"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-2, "sampling": "log"}]


class EndedBefore(Exception):
    """The promoted trial had ended before the order."""


def submit_rung_search(installation: RunningYard, algorithm: str) -> int:
    """Submit a search with eight trials, two at a time. The first rung promotes one in six."""
    options = {"factor": 6, "min_epochs": FIRST}
    asked = search(algorithm, space=SPACE, max_trials=8, executions_per_trial=1, options=options)
    fit = {"epochs": LAST, "batch_size": 16, "seed": 1}
    return installation.submit(spec(search=asked, fit=fit), name=algorithm)


def trials(installation: RunningYard, job: int) -> dict[int, Body]:
    return {trial["number"]: trial for trial in installation.ada.get(f"/jobs/{job}/trials")["items"]}


def attempts(installation: RunningYard, job: int) -> list[Body]:
    return list(installation.ada.get(f"/jobs/{job}/attempts", sort="id")["items"])


def interrupt(installation: RunningYard, job: int, order: str, state: str) -> dict[int, Body]:
    """Give the order while a promoted trial trains on; return the trials once the job is in that state.

    Raises:
        EndedBefore: it came too late.
    """

    def climbs(job_out: Body) -> bool:
        if job_out["state"] == "completed":
            raise EndedBefore
        return any(
            t["state"] == "running" and t["score"] is not None for t in trials(installation, job).values()
        )

    installation.until(job, climbs, "a promoted trial that trains", of="event_seq")
    installation.ada.post(f"/jobs/{job}/{order}", okay=(409,))  # it has ended
    ended = installation.until(
        job, lambda job_out: job_out["state"] in (state, "completed"), f"{state} after {order}"
    )
    ends = [(attempt["outcome"], attempt["resumed_from"]) for attempt in attempts(installation, job)]
    if ended["state"] == "completed" or not any(outcome == state and step for outcome, step in ends):
        raise EndedBefore
    return trials(installation, job)


def pause_resume_and_stop(installation: RunningYard, job: int) -> dict[int, Body]:
    """Interrupt a search twice; return its trials as they are then.

    Raises:
        EndedBefore: see `interrupt`.
    """
    paused = interrupt(installation, job, "pause", "paused")
    assert {trial["state"] for trial in paused.values()} <= {"paused", "pruned", "completed"}
    cursor = installation.events_of(job)[-1]["cursor"]
    installation.until_completed(installation.submit(spec(), name="in its slots"))
    assert installation.events_of(job)[-1]["cursor"] == cursor, "something trained on"
    installation.ada.post(f"/jobs/{job}/resume")
    return interrupt(installation, job, "stop", "stopped")


def reported_epochs(installation: RunningYard, job: int) -> dict[int, list[float]]:
    """Return the epochs at which each trial's loss was reported, in order."""
    epochs: dict[int, list[float]] = {}
    for event in installation.events_of(job):
        if event["type"] == "metric":
            xs = [x for name, x, *_ in event["points"] if name == "val_loss"]
            epochs.setdefault(event["trial"], []).extend(xs)
    return epochs


@pytest.mark.parametrize("algorithm", ["hyperband", "asha"])
def test_a_rung_search_that_is_paused_and_stopped_keeps_the_best_and_resumes_from_checkpoints(
    flow_installation: RunningYard, algorithm: str
) -> None:
    for left in reversed(range(TRIES)):
        job = submit_rung_search(flow_installation, algorithm)
        try:
            stopped = pause_resume_and_stop(flow_installation, job)
            break
        except EndedBefore:
            assert left, f"the promoted trial had ended before the order, {TRIES} times"
    scores = {n: trial["score"] for n, trial in stopped.items() if trial["score"] is not None}
    whole = {n: score for n, score in scores.items() if stopped[n]["state"] == "completed"}
    best = min(whole or scores, key=lambda number: scores[number])
    assert flow_installation.job(job)["results"]["best_trial"]["number"] == best
    flow_installation.ada.post(f"/jobs/{job}/retry")

    flow_installation.until_completed(job)
    ended = trials(flow_installation, job)
    assert sorted(ended) == list(range(1, 9))
    assert {trial["state"] for trial in ended.values()} <= {"completed", "pruned"}
    for number, epochs in reported_epochs(flow_installation, job).items():
        assert epochs == list(range(1, ended[number]["executions"][0]["epochs"] + 1))
