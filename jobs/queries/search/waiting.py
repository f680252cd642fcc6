"""Computes why a search's queued and paused trials wait, and reads the phases of running ones.

A page shows each sentence once for all trials to which it applies, so sentences must fit one trial and many.
"""

from django.db.models import Sum

from jobs.messages.events import PhaseName
from jobs.models import Attempt, Job, Trial, User, Worker
from jobs.placement.sentences import format_slots
from jobs.queries.code import package_installs
from jobs.queries.runs.devices import fitting_workers, why_none_fits
from jobs.queries.runs.gpus.reserved import reserved_gpus
from jobs.queries.runs.held_gpus import HeldGpus
from jobs.queries.runs.reservations import name_holders
from jobs.queries.search import outcomes
from jobs.states import PLACEABLE, WAITING, Desired, TrialState

NEXT = "Queued at a runner, after other trials."
AT_RUNG = "At the end of a rung. When the other trials have reached it, the best ones continue."
PAUSED = "Paused at the newest checkpoint; Resume continues from there."

CHOOSING_TRIALS = "A worker is choosing the values of its next trials."
BUILDING_FIRST = "Its hyperparameters are found by a dry build of its code: job "
CHOOSING_FAILED = "Choosing the next trial failed: "
"""How the reason begins that is stored after an error; the request is sent again."""

FIELDS = ("number", "state", "restarts", "rung", "rungs", "until")
"""The fields on which the reasons depend. No others are read, since thousands of trials may wait."""


def waiting_reasons(search: Job, reader: User | None = None) -> dict[int, str]:
    """Return trial number → reason for a search's queued and paused trials.

    Args:
        search: the job.
        reader: who reads the reasons; without one, holders of reservations are not named.
    """
    waiting = search.trials.filter(state__in=(TrialState.QUEUED, TrialState.PAUSED))
    rows = list(waiting.order_by("number").only(*FIELDS))
    if not rows:
        return {}
    # The trials of an open attempt are queued too, until its runner begins them.
    unassigned = set(search.trials.waiting().values_list("number", flat=True))
    shared = _shared_reason(search)
    reasons = {
        trial.number: NEXT
        if trial.state == TrialState.QUEUED and trial.number not in unassigned
        else _waiting_reason(trial, shared, by_scheduler=shared != search.facts.trial_waits_for)
        for trial in rows
    }
    return reasons if reader is None else name_holders(reasons, reader)


def _waiting_reason(trial: Trial, shared: str, *, by_scheduler: bool) -> str:
    if trial.waits_at_rung:
        return AT_RUNG
    if trial.state == TrialState.PAUSED:
        return PAUSED
    if trial.restarts and by_scheduler:
        return f"The runner was lost. Training will continue from the newest checkpoint. {shared}"
    return shared


def _shared_reason(search: Job) -> str:
    """Return the reason that applies to every queued trial in the search."""
    by_kind = search.facts.trial_waits_for
    if by_kind and search.state not in WAITING and search.desired == Desired.RUNNING:
        return by_kind
    if search.desired != Desired.RUNNING:
        return f"The search was requested to be {search.desired}."
    # The scheduler's reason, which also knows limits, reservations and shares of persons.
    if search.state in PLACEABLE and search.why_waiting:
        return search.why_waiting
    live = list(Worker.objects.live(search.pool))
    fitting = fitting_workers(search, live)
    workers = {worker.pk: worker.slots for worker in fitting}
    if not workers:
        return why_none_fits(search, live)
    held = HeldGpus(fitting, reserved_gpus(fitting, search.pool))
    if not any(held.is_able(search, worker) for worker in fitting):
        return held.why_wait(search, fitting)
    if (reason := package_installs.describe_wait(search)) is not None:
        return reason
    running = search.trials.running().count()
    limit = outcomes.search_of(search).parallel_trials
    if limit is not None and running >= limit:
        return limit_reason(limit)
    busy = dict(
        Attempt.objects.open().filter(worker__in=workers).values_list("worker").annotate(Sum("slots"))
    )
    # A trial needs all of its slots on one worker.
    free = 0
    for worker in fitting:
        slots, room = worker.slots - busy.get(worker.pk, 0), held.room(search, worker)
        free = max(free, slots if room is None else room.slots(slots))
    if free < search.slots:
        total = sum(workers.values())
        needed = f"{search.slots} of the {format_slots(total)} of pool {search.pool}; {free} free now."
        return f"Needed: {needed} {held.describe(search, fitting)}".strip()
    return "A slot is free. The trial starts in a moment."


def limit_reason(limit: int) -> str:
    """Return the reason for a search that runs as many trials as its spec allows."""
    return f"The search runs at most {limit} trial{'' if limit == 1 else 's'} at a time, as set in its spec."


def phases_of_search(search: Job) -> dict[int, PhaseName]:
    """Return the running trials' phases, such as compiling, by number. Trials without one are left out."""
    records = search.attempts.open().values_list("record", flat=True)
    phases = {phase["trial"]: phase["name"] for record in records if (phase := record.get("phase"))}
    running = search.trials.running().filter(number__in=phases).order_by("number")
    return {number: phases[number] for number in running.values_list("number", flat=True)} if phases else {}
