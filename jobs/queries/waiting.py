"""Why a search's queued trials wait, as a sentence: read from the rows, as the scheduler would find them.

A page says one sentence of all trials for which it is true, so each reads well of one and of many.
"""

from django.db.models import Sum

from jobs.models import Attempt, Job, Trial, Worker
from jobs.queries import outcomes
from jobs.states import WAITING, Desired, TrialState

NEXT = "The same runner comes to this after the trials before."
AT_RUNG = "Done up to the end of a rung; once the others are there too, the best go on."
PAUSED = "Paused at the newest checkpoint; Resume continues from there."

MOST_VALUES = ("number", "state", "restarts", "rung", "rungs", "until")
"""What the reason follows from: a poll asks for it, and thousands may wait at a rung."""


def reasons(search: Job) -> dict[int, str]:
    """Return the reason of each queued or paused trial by its number."""
    held = search.trials.filter(state__in=(TrialState.QUEUED, TrialState.PAUSED))
    rows = list(held.order_by("number").only(*MOST_VALUES))
    if not rows:
        return {}
    free = set(search.trials.waiting().values_list("number", flat=True))
    shared = _of_all(search)
    return {
        trial.number: NEXT
        if trial.state == TrialState.QUEUED and trial.number not in free
        else _of_one(trial, shared, by_scheduler=shared != search.facts.trial_waits_for)
        for trial in rows
    }


def _of_one(trial: Trial, shared: str, *, by_scheduler: bool) -> str:
    if trial.waits_at_rung:
        return AT_RUNG
    if trial.state == TrialState.PAUSED:
        return PAUSED
    if trial.restarts and by_scheduler:
        return f"The runner was lost; this goes on from the newest checkpoint. {shared}"
    return shared


def _of_all(search: Job) -> str:
    """Return what every queued trial of the search waits for."""
    elsewhere = search.facts.trial_waits_for
    if elsewhere and search.state not in WAITING and search.desired == Desired.RUNNING:
        return elsewhere
    if search.desired != Desired.RUNNING:
        return f"The search is told to be {search.desired}."
    if search.state in WAITING and search.why_waiting:
        return search.why_waiting
    live = Worker.objects.live(search.pool)
    workers = dict(live.values_list("pk", "slots"))
    if not workers:
        return f"No worker runs in pool {search.pool}."
    running = search.trials.running().count()
    limit = outcomes.search_of(search).parallel_trials
    if limit is not None and running >= limit:
        return at_limit(limit)
    busy = dict(
        Attempt.objects.open().filter(worker__in=workers).values_list("worker").annotate(Sum("slots"))
    )
    free = max(slots - busy.get(worker, 0) for worker, slots in workers.items())
    if free < search.slots:
        total = sum(workers.values())
        return f"Needed: {search.slots} of the {slots_of(total)} of pool {search.pool}; {free} free now."
    return "A slot is free: this begins in a moment."


def at_limit(limit: int) -> str:
    """Say that a search runs as many trials as it may."""
    return f"The search runs {limit} trial{'' if limit == 1 else 's'} at once, as its spec says."


def slots_of(count: int) -> str:
    """Return a number of slots in words."""
    return f"{count} slot{'' if count == 1 else 's'}"
