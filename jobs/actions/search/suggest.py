"""Requests new trials for a search from a worker, and adds them, under a fencing token."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Count, F, Max, Q

from jobs import clock, hints, queue
from jobs.actions.runs import events
from jobs.actions.runs.payloads import change_payload
from jobs.actions.search import rung_promotion
from jobs.errors import StaleFence
from jobs.messages.suggest import Answer, Suggestion
from jobs.models import Attempt, Execution, Job, Trial, User, Worker
from jobs.queries.experiments import warm_start
from jobs.queries.runs.devices import fitting_workers
from jobs.queries.search import batches, outcomes, trial_totals
from jobs.queries.search.algorithm_state import algorithm_state
from jobs.queries.search.waiting import CHOOSING_FAILED
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space.narrowing import contains
from jobs.spec.space.search_space import Values, check_values
from jobs.states import FINAL, TRIAL_FINAL, Desired, TrialState

REQUEST_SECONDS = 3.0
"""A request that no worker has claimed after this time is sent again: its message may be lost."""
LEASE_SECONDS = 60.0
"""A worker has this time to answer a request that it has claimed."""
RETRY_SECONDS = 5.0
"""The time until the next request after an error."""

MAX_PER_REQUEST = 1000

COLUMNS = ("number", "state", "values", "score", "source", "bracket", "rung", "epochs", "until", "rungs")
"""The trial columns in a request."""

COPIED = ("state", "score", "best_epoch", "epochs", "metrics", "best")
"""Execution fields that a duplicate trial copies."""


class SuggestionClaim(NamedTuple):
    """A worker's claim on one request for suggestions.

    Attributes:
        job_id: the search.
        fence: the claim's fencing token.
        request: a SuggestRequest as JSON.
        fingerprint: the trials' fingerprint. An empty answer is valid until it changes.
    """

    job_id: int
    fence: int
    request: dict[str, Any]
    fingerprint: str = ""


def values_digest(values: Values) -> str:
    """Return a digest that is the same for equal configurations."""
    return hashlib.sha256(json.dumps(dict(values), sort_keys=True).encode()).hexdigest()


def execution_seed(base: int, trial: int, execution: int) -> int:
    """Return an execution's training seed. It is deterministic, so a resumed search uses it again."""
    # The seeds within a search differ, up to 1,009 executions per trial.
    return (base * 1_000_003 + trial * 1_009 + execution) % 2**32


def _trials_to_create(root: Job, search: SearchSpec) -> int:
    """Return how many more trials to create now.

    There are as many open trials as the slots and the search allow. Once a trial's duration is known,
    algorithms that need no results also fill a queue for each slot, and refill it when it is half empty.
    """
    concurrency = _possible_attempts(root, search)
    if not search.info.needs_results and (per_attempt := batches.trials_in_target(root)) is not None:
        target, waiting = concurrency * per_attempt, trial_totals.count_waiting(root)
        return target - waiting if 2 * waiting <= target else 0
    # Paused trials of a running search wait at a rung and use no slot.
    return concurrency - root.trials.exclude(state__in=[*TRIAL_FINAL, TrialState.PAUSED]).count()


def _possible_attempts(root: Job, search: SearchSpec) -> int:
    """Return how many of a search's attempts could run at once."""
    live = list(Worker.objects.live_at(clock.estimate()).filter(pool=root.pool))
    fitting = fitting_workers(root, live)
    held: dict[int, int] = defaultdict(int)
    held_by_others = Attempt.objects.open().exclude(job=root)
    for worker_id, slots in held_by_others.values_list("worker_id", "slots"):
        held[worker_id] += slots
    # Each worker on its own: an attempt needs all of its slots on one.
    capacity = sum(max(worker.slots - held[worker.pk], 0) // root.slots for worker in fitting)
    # At least one with a live worker: its trial waits in the queue while no slots are free, and shows why.
    concurrency = max(capacity, 1 if live else 0)
    return min(search.parallel_trials or concurrency, concurrency)


def _suggestions_to_request(root: Job, search: SearchSpec) -> int:
    """Count the suggestions that are needed now. With rungs, promotions follow after the last new trial."""
    new_trials = _trials_to_create(root, search)
    if search.info.has_rungs or new_trials <= 0:
        return new_trials
    return min(new_trials, outcomes.trials_planned(root) - trial_totals.count_suggested(root))


def algorithm_has_ended(root: Job, search: SearchSpec) -> bool:
    """Return whether the algorithm will make no further suggestion."""
    if root.payload.finishing:
        return True
    if algorithm_state(root).exhausted:
        if not search.info.has_rungs:
            return True
        # A trial that was run again may still wait for a decision at the end of its rung.
        return not any(trial.waits_at_rung for trial in root.trials.filter(state=TrialState.PAUSED))
    suggested = trial_totals.count_suggested(root)
    # With rungs, promotions follow after the last new trial; then only the algorithm knows when it is over.
    return not search.info.has_rungs and suggested >= outcomes.trials_planned(root)


def _fingerprint(root: Job) -> str:
    """Return a text that changes when a trial begins, ends, or completes a rung."""
    # No two changes cancel out: only suggestions remove trials from the waiting ones, and a trial that ends
    # has a newer time than those before it.
    by_state = root.trials.order_by("state").values_list("state").annotate(Count("pk"), Max("finished"))
    return " ".join(f"{state}:{count}:{newest}" for state, count, newest in by_state)


def make_first_trials(root: Job, search: SearchSpec) -> None:
    """Create the trials in `start_with`, once, inside the caller's transaction."""
    if search.start_with and not root.trials.filter(source="start").exists():
        suggestions = [Suggestion(values=dict(values)) for values in search.start_with]
        _make_trials(root, suggestions, source="start")
        hints.send("schedule", job=root.pk)


def request_suggestions(root: Job, search: SearchSpec) -> None:
    """Send a request for suggestions to the workers if trials are needed and no worker has claimed it.

    After an empty answer, as while a rung is incomplete, a trial must change before the next request.
    """
    if _suggestions_to_request(root, search) <= 0:
        return
    answered_empty = algorithm_state(root).answered_empty
    if answered_empty is not None and answered_empty == _fingerprint(root):
        return
    if root.suggest_until is not None and root.suggest_until > clock.now():
        return
    Job.objects.filter(pk=root.pk).update(suggest_until=clock.seconds_from_now(REQUEST_SECONDS))
    queue.ask_for_suggestions(root.pool, root.pk)


def claim_request(job_id: int) -> SuggestionClaim | None:
    """Claim a search's request. Return None if no trial is needed or another worker holds the lease."""
    with transaction.atomic():
        root = Job.objects.locked().filter(pk=job_id).first()
        if root is None or root.revision is None or root.state in FINAL or root.desired != Desired.RUNNING:
            return None
        if not root.facts.has_trials:
            return None
        search = outcomes.search_of(root)
        needed = (
            0
            if algorithm_has_ended(root, search)
            else min(_suggestions_to_request(root, search), MAX_PER_REQUEST)
        )
        if needed <= 0:
            return None
        # `suggest_until` is soon if a request set it, and late if another worker holds the claim.
        newest_request = clock.seconds_from_now(REQUEST_SECONDS + 0.5)
        unclaimed = Job.objects.filter(pk=job_id, suggest_fence=root.suggest_fence).filter(
            Q(suggest_until=None) | Q(suggest_until__lt=newest_request)
        )
        if not unclaimed.update(
            suggest_fence=F("suggest_fence") + 1, suggest_until=clock.seconds_from_now(LEASE_SECONDS)
        ):
            return None
        return SuggestionClaim(
            job_id, root.suggest_fence + 1, _request_json(root, search, needed), _fingerprint(root)
        )


def _request_json(root: Job, search: SearchSpec, count: int) -> dict[str, Any]:
    """Return a SuggestRequest as JSON, for `count` suggestions."""
    trials: list[dict[str, Any]] = list(root.trials.order_by("number").values("pk", *COLUMNS))
    several = search.objectives
    scores = outcomes.scores_of(root.trials.all(), several) if several is not None else {}
    state = algorithm_state(root)
    is_narrowed = state.beyond_space is not None
    for trial in trials:
        pk = trial.pop("pk")
        if state.found:
            trial["values"] = state.whole_values(trial["values"])
        if several is not None:
            trial["scores"] = scores.get(pk)
        if is_narrowed:
            on_grid = search.info.enumerates_grid
            trial["inside"] = contains(search.space, trial["values"], on_grid=on_grid)
    return {
        "search": search.model_dump(mode="json", by_alias=True, exclude_none=True),
        "epochs": root.revision.spec.fit.epochs if root.revision is not None else 1,
        "count": count,
        "trials": [*warm_start.warm_start_trials(root, search), *trials],
    }


def add_suggestions(claimed: SuggestionClaim, answer: Answer) -> None:
    """Create trials from an answer, promote or prune others, and store whether the algorithm is exhausted.

    Raises:
        StaleFence: another worker has claimed the request; nothing was written.
        ValueError: a configuration does not fit the space; nothing was written.
    """
    with transaction.atomic():
        root = _release_claim(claimed)
        # Ended while the answer was computed: nothing would ever end these trials.
        if root.state in FINAL or root.payload.finishing:
            return
        if answer.exhausted:
            change_payload(root, exhausted=True)
        elif answer.is_empty():
            change_payload(root, answered_empty=claimed.fingerprint)
        _make_trials(root, [s for s in answer.suggestions if s.promotes is None], source="algorithm")
        for suggestion in answer.suggestions:
            if suggestion.promotes is not None:
                rung_promotion.promote_trial(root, suggestion)
        for dropped in answer.dropped:
            rung_promotion.prune_trial(root, dropped)
        hints.send("schedule", job=root.pk)


def report_failure(claimed: SuggestionClaim, error: str) -> None:
    """Release the claim after an error. The request is sent again after a delay."""
    Job.objects.filter(pk=claimed.job_id, suggest_fence=claimed.fence).update(
        suggest_until=clock.seconds_from_now(RETRY_SECONDS),
        why_waiting=f"{CHOOSING_FAILED}{error}"[:500],
    )


def _release_claim(claimed: SuggestionClaim) -> Job:
    """Release the claim and return its search, whose row is locked by this update until commit."""
    rows = Job.objects.filter(pk=claimed.job_id, suggest_fence=claimed.fence, suggest_until__isnull=False)
    if not rows.update(suggest_until=None):
        raise StaleFence(
            f"the suggestions for job {claimed.job_id} arrived after claim {claimed.fence} had expired"
        )
    return Job.objects.select_related("revision").get(pk=claimed.job_id)


def make_trial(root: Job, values: Values, *, source: str, by: User | None = None) -> Trial:
    """Create a queued trial with its executions, inside the caller's transaction."""
    return _make_trials(root, [Suggestion(values=dict(values))], source=source, by=by)[0]


def _make_trials(
    root: Job, suggestions: Sequence[Suggestion], *, source: str, by: User | None = None
) -> list[Trial]:
    """Create queued trials with their executions. A trial that repeats an earlier one gets its results."""
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
            _copy_results(root, trial, suggestion.answered_by)
    return trials


def _copy_results(root: Job, trial: Trial, number: int) -> None:
    """Copy the scores from a completed trial with the same values. Nothing is trained."""
    first = root.trials.get(number=number)
    digest = values_digest(root.payload.whole_values(first.values))
    if first.state != TrialState.COMPLETED or digest != trial.values_digest:
        raise ValueError(f"the results of trial {number} cannot be used for {trial.values}")
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
