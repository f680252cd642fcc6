"""Suggestions: the rows of a search go to a worker, configurations come back, under a fence."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Count, F, Max, Q

from jobs import clock, hints, queue
from jobs.actions import events, rung_promotion
from jobs.actions.payloads import change_payload
from jobs.contracts.narrowing import contains
from jobs.contracts.search import SearchSpec
from jobs.contracts.search_space import Values, check_values
from jobs.contracts.suggest import Answer, Suggestion
from jobs.errors import StaleFence
from jobs.kinds.search.payload import SearchPayload
from jobs.models import Attempt, Execution, Job, Trial, User, Worker
from jobs.queries import batches, outcomes, warm_start
from jobs.states import FINAL, TRIAL_FINAL, Desired, TrialState

LEASE_SECONDS = 60.0

MOST_AT_ONCE = 1000

COPIED = ("state", "score", "best_epoch", "epochs", "metrics", "best")
"""What a trial that is answered takes over from the executions of the one that answers."""


class Ticket(NamedTuple):
    """The right to answer one request for suggestions. `request` is a SuggestRequest as JSON.

    `standing` is what an empty answer holds for.
    """

    job_id: int
    fence: int
    request: dict[str, Any]
    standing: str = ""


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
    if not search.info.needs_results and (each := batches.fill(root)) is not None:
        ahead, waiting = lanes * each, root.trials.waiting().count()
        return ahead - waiting if 2 * waiting <= ahead else 0
    # While a search runs, what is paused waits at a rung and takes no slot.
    return lanes - root.trials.exclude(state__in=[*TRIAL_FINAL, TrialState.PAUSED]).count()


def _lanes(root: Job, search: SearchSpec) -> int:
    """Return how many attempts of a search could run at once."""
    live = Worker.objects.live(root.pool)
    capacity = sum(slots // root.slots for slots in live.values_list("slots", flat=True))
    taken = Attempt.objects.open().filter(worker__pool=root.pool).exclude(job=root)
    capacity -= sum(taken.values_list("slots", flat=True)) // root.slots
    return min(search.parallel_trials or capacity, max(capacity, 1 if live else 0))


def _wanted(root: Job, search: SearchSpec) -> int:
    """Return how many suggestions could be taken now. With rungs, trials go on after all are made."""
    room = _room(root, search)
    if search.info.has_rungs:
        return room
    return min(room, outcomes.trials_planned(root) - root.trials.filter(source="algorithm").count())


def is_over(root: Job, search: SearchSpec) -> bool:
    """Say whether no further suggestion will ever come."""
    if root.payload_as(SearchPayload).exhausted:
        return not search.info.has_rungs or not _waits(root)  # one that was run again may wait
    made = root.trials.filter(source="algorithm").count()
    return not search.info.has_rungs and made >= outcomes.trials_planned(root)


def _waits(root: Job) -> bool:
    """Say whether a trial stands at the end of its rung."""
    return any(trial.waits_at_rung for trial in root.trials.filter(state=TrialState.PAUSED))


def _standing(root: Job) -> str:
    """Return what differs once a trial has begun, ended, or reached the end of a rung.

    Only an answer takes trials away from those that wait, and each that ends is newer than those before it:
    no two changes undo each other here.
    """
    by_state = root.trials.order_by("state").values_list("state").annotate(Count("pk"), Max("finished"))
    return " ".join(f"{state}:{count}:{newest}" for state, count, newest in by_state)


def ask(root: Job, search: SearchSpec) -> None:
    """Send a wake-up for suggestions if some are wanted and nobody works on it.

    An algorithm that waits for a rung to be complete is not asked again before a trial has changed.
    """
    if _wanted(root, search) <= 0:
        return
    nothing_for = root.payload_as(SearchPayload).nothing_for
    if nothing_for is not None and nothing_for == _standing(root):
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
        if not root.facts.has_trials:
            return None
        search = outcomes.search_of(root)
        wanted = 0 if is_over(root, search) else min(_wanted(root, search), MOST_AT_ONCE)
        claimed = wanted > 0 and Job.objects.filter(pk=job_id, suggest_fence=root.suggest_fence).filter(
            Q(suggest_until=None) | Q(suggest_until__lt=clock.seconds_from_now(3.5))
        ).update(suggest_fence=F("suggest_fence") + 1, suggest_until=clock.seconds_from_now(LEASE_SECONDS))
        if not claimed:
            return None
        return Ticket(job_id, root.suggest_fence + 1, _request(root, search, wanted), _standing(root))


COLUMNS = ("number", "state", "values", "score", "source", "bracket", "rung", "epochs", "until", "rungs")


def _request(root: Job, search: SearchSpec, wanted: int) -> dict[str, Any]:
    trials = list(root.trials.order_by("number").values("pk", *COLUMNS))
    if search.objectives is not None:
        scores = outcomes.scores_of(root.trials.all(), search.objectives)
        trials = [trial | {"scores": scores.get(trial["pk"])} for trial in trials]
    if root.payload_as(SearchPayload).beyond_space is not None:
        on_grid = search.info.enumerates_grid
        trials = [t | {"inside": contains(search.space, t["values"], on_grid=on_grid)} for t in trials]
    return {
        "search": search.model_dump(mode="json", by_alias=True, exclude_none=True),
        "epochs": root.revision.spec.fit.epochs if root.revision is not None else 1,
        "count": wanted,
        "trials": [*warm_start.trials(root, search), *(_without_key(trial) for trial in trials)],
    }


def _without_key(trial: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in trial.items() if name != "pk"}


def add(ticket: Ticket, answer: Answer) -> None:
    """Make trials of the suggestions, let others go on or end, and note when no more will come.

    Raises:
        StaleFence: the right was given to another worker meanwhile; nothing was written.
        ValueError: a configuration does not fit the space; nothing was written.
    """
    with transaction.atomic():
        root = _release(ticket)
        if root.state in FINAL:
            return  # stopped while somebody was still thinking: nothing would ever end these trials
        if answer.exhausted:
            change_payload(root, exhausted=True)
        elif answer.is_empty():
            change_payload(root, nothing_for=ticket.standing)
        _make_trials(root, [s for s in answer.suggestions if s.promotes is None], source="algorithm")
        for suggestion in answer.suggestions:
            if suggestion.promotes is not None:
                rung_promotion.promote(root, suggestion)
        for dropped in answer.dropped:
            rung_promotion.drop(root, dropped)
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
    return _make_trials(root, [Suggestion(values=dict(values))], source=source, by=by)[0]


def _make_trials(
    root: Job, suggestions: Sequence[Suggestion], *, source: str, by: User | None = None
) -> list[Trial]:
    search = outcomes.search_of(root)
    checked = [check_values(search.space, suggestion.values) for suggestion in suggestions]
    last = root.trials.order_by("-number").values_list("number", flat=True).first() or 0
    trials = Trial.objects.bulk_create(
        Trial(
            job=root,
            number=number,
            values=values,
            values_digest=values_digest(values),
            source=source,
            bracket=suggestion.bracket,
            rung=suggestion.rung,
            epochs=suggestion.epochs,
            created_by=by,
        )
        for number, (values, suggestion) in enumerate(zip(checked, suggestions, strict=True), last + 1)
    )
    Execution.objects.bulk_create(
        Execution(trial=trial, number=n, seed=execution_seed(search.seed, trial.number, n), **turn._asdict())
        for trial in trials
        for n, turn in enumerate(search.turns(), start=1)
    )
    for trial, suggestion in zip(trials, suggestions, strict=True):
        if suggestion.answered_by is not None:
            _answer(root, trial, suggestion.answered_by)
    return trials


def _answer(root: Job, trial: Trial, number: int) -> None:
    """Give a trial the scores of a completed one with the same values; nothing is trained."""
    first = root.trials.get(number=number)
    if first.state != TrialState.COMPLETED or first.values_digest != trial.values_digest:
        raise ValueError(f"trial {number} cannot answer for {trial.values}")
    measured = {execution.number: execution for execution in first.executions.all()}
    for execution in trial.executions.all():
        for name in COPIED:
            setattr(execution, name, getattr(measured[execution.number], name))
        execution.save(update_fields=COPIED)
    trial.state, trial.score, trial.std = TrialState.COMPLETED, first.score, first.std
    trial.answered_by, trial.finished = first, clock.now()
    trial.save(update_fields=["state", "score", "std", "answered_by", "finished"])
    body = events.event("trial", root, trial=trial.number, state=str(TrialState.COMPLETED))
    events.append(root.root_id_or_self, [body | {"score": trial.score, "std": trial.std}])
