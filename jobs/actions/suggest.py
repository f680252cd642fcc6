"""Suggestions: the rows of a search go to a worker, configurations come back, under a fence."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F, Q

from jobs import clock, hints, queue
from jobs.errors import StaleFence
from jobs.models import Attempt, Execution, Job, Trial, User, Worker
from jobs.queries import batches, outcomes
from jobs.spec.search import SearchSpec
from jobs.spec.search_space import Value, Values, check_values
from jobs.states import FINAL, TRIAL_FINAL, AttemptState, Desired, JobKind, TrialState

LEASE_SECONDS = 60.0

MOST_AT_ONCE = 1000

WITHOUT_RESULTS = frozenset({"random", "grid"})
"""Algorithms whose next trials do not hang on what became of the others: these can be made ahead."""


class Ticket(NamedTuple):
    """The right to answer one request for suggestions. `request` is a SuggestRequest as JSON."""

    job_id: int
    fence: int
    request: dict[str, Any]


def values_digest(values: Values) -> str:
    """Return the key by which equal configurations are recognised."""
    return hashlib.sha256(json.dumps(dict(values), sort_keys=True).encode()).hexdigest()


def execution_seed(base: int, trial: int, execution: int) -> int:
    """Return the training seed of an execution: a function of numbers, so a resumed search repeats it."""
    return (base * 1_000_003 + trial * 1_009 + execution) % 2**32


def _room(root: Job, search: SearchSpec) -> int:
    """Return how many more trials to make now.

    As many are open as slots could take, bounded by the search. Once it is known how long a trial takes,
    algorithms that need no results also fill a queue for each of these slots, anew when half of it is gone.
    """
    lanes = _lanes(root, search)
    if search.algorithm in WITHOUT_RESULTS and (each := batches.fill(root)) is not None:
        ahead, waiting = lanes * each, batches.waiting(root.trials.all()).count()
        return ahead - waiting if 2 * waiting <= ahead else 0
    return lanes - root.trials.exclude(state__in=TRIAL_FINAL).count()


def _lanes(root: Job, search: SearchSpec) -> int:
    """Return how many attempts of a search could run at once."""
    live = Worker.objects.filter(state=Worker.State.UP, pool=root.pool, lease_until__gt=clock.now())
    capacity = sum(slots // root.slots for slots in live.values_list("slots", flat=True))
    taken = Attempt.objects.exclude(state=AttemptState.ENDED).filter(worker__pool=root.pool).exclude(job=root)
    capacity -= sum(taken.values_list("slots", flat=True)) // root.slots
    return min(search.parallel_trials or capacity, max(capacity, 1 if live else 0))


def ask(root: Job, search: SearchSpec, made: int) -> None:
    """Send a wake-up for suggestions if some are wanted and nobody works on it."""
    if min(_room(root, search), search.trials_planned() - made) <= 0:
        return
    if root.suggest_until is not None and root.suggest_until > clock.now():
        return
    # A short lease now, so that a lost message is sent again; the claim makes it longer.
    Job.objects.filter(pk=root.pk).update(suggest_until=clock.seconds_from_now(3))
    queue.ask_for_suggestions(root.pool, root.pk)


def claim(job_id: int) -> Ticket | None:
    """Take the right to suggest; None when nothing is wanted or another worker is at it."""
    with transaction.atomic():
        root = (
            Job.objects.select_for_update(of=("self",)).select_related("revision").filter(pk=job_id).first()
        )
        if root is None or root.revision is None or root.state in FINAL or root.desired != Desired.RUNNING:
            return None
        if root.kind != JobKind.SEARCH:
            return None
        search = outcomes.search_of(root)
        made = root.trials.filter(source="algorithm").count()
        wanted = min(_room(root, search), search.trials_planned() - made, MOST_AT_ONCE)
        claimed = wanted > 0 and Job.objects.filter(pk=job_id, suggest_fence=root.suggest_fence).filter(
            Q(suggest_until=None) | Q(suggest_until__lt=clock.seconds_from_now(3.5))
        ).update(suggest_fence=F("suggest_fence") + 1, suggest_until=clock.seconds_from_now(LEASE_SECONDS))
        if not claimed:
            return None
        return Ticket(job_id, root.suggest_fence + 1, _request(root, search, wanted))


def _request(root: Job, search: SearchSpec, wanted: int) -> dict[str, Any]:
    trials = root.trials.order_by("number").values("number", "state", "values", "score", "source")
    body = search.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"search": body, "count": wanted, "trials": list(trials)}


def add(ticket: Ticket, values: list[dict[str, Value]]) -> None:
    """Make trials of the suggestions. An empty list says that the space is used up.

    Raises:
        StaleFence: the right was given to another worker meanwhile; nothing was written.
    """
    with transaction.atomic():
        root = _release(ticket)
        if root.state in FINAL:
            return  # stopped while somebody was still thinking: nothing would ever end these trials
        if not values:
            root.payload = root.payload | {"exhausted": True}
            root.save(update_fields=["payload"])
        _make_trials(root, values, source="algorithm")
        hints.send("schedule", job=root.pk)


def failed(ticket: Ticket, error: str) -> None:
    """Give the right back after an error; it is asked for again in a while."""
    Job.objects.filter(pk=ticket.job_id, suggest_fence=ticket.fence).update(
        suggest_until=clock.seconds_from_now(5), why_waiting=f"Choosing the next trial failed: {error}"[:500]
    )


def _release(ticket: Ticket) -> Job:
    rows = Job.objects.filter(pk=ticket.job_id, suggest_fence=ticket.fence, suggest_until__isnull=False)
    if not rows.update(suggest_until=None):
        raise StaleFence(f"suggestions {ticket.fence} for job {ticket.job_id} came too late")
    return Job.objects.select_related("revision").get(pk=ticket.job_id)


def make_trial(root: Job, values: Values, *, source: str, by: User | None = None) -> Trial:
    """Make a queued trial with its executions, inside the caller's transaction."""
    return _make_trials(root, [values], source=source, by=by)[0]


def _make_trials(
    root: Job, configurations: Sequence[Values], *, source: str, by: User | None = None
) -> list[Trial]:
    search = outcomes.search_of(root)
    checked = [check_values(search.space, values) for values in configurations]
    last = root.trials.order_by("-number").values_list("number", flat=True).first() or 0
    trials = Trial.objects.bulk_create(
        Trial(
            job=root,
            number=number,
            values=values,
            values_digest=values_digest(values),
            source=source,
            state=TrialState.QUEUED,
            created_by=by,
        )
        for number, values in enumerate(checked, last + 1)
    )
    Execution.objects.bulk_create(
        Execution(trial=trial, number=n, seed=execution_seed(search.seed, trial.number, n), **turn._asdict())
        for trial in trials
        for n, turn in enumerate(search.turns(), start=1)
    )
    return trials
