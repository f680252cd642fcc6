"""Opens searches whose trials run in external scripts, and assigns their trials for a chief.

A script holds one trial through an attempt, as a runner does: the attempt's number is the fencing token, and
the trial is queued again when the lease expires. `attempt_end` ends these attempts too. Any number of chiefs
may serve one search. Attempts are locked first, by key, and then the search, as in `attempt_end`.
"""

import logging
import time
from collections.abc import Collection
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F

from jobs import access, clock
from jobs.actions.audit import audit
from jobs.actions.people import quotas
from jobs.actions.runs import attempt_end, events, runner_events, submit
from jobs.actions.runs.kind_actions import JobError
from jobs.actions.runs.payloads import change_payload
from jobs.actions.search import suggest
from jobs.actions.transition import move
from jobs.errors import BadInput, StaleState
from jobs.kinds.external_search.payload import ExternalSearchPayload
from jobs.kinds.external_search.rows import external_searches
from jobs.messages import events as contract
from jobs.models import Attempt, Job, Lease, Project, Trial, User, Worker
from jobs.models.attempt import AttemptQuerySet
from jobs.queries.search.external_search import chief_command, external_payload
from jobs.spec.external_search import ChiefAddress, ExternalSearch, with_defaults
from jobs.spec.space.search_space import Values
from jobs.states import FINAL, WAITING, AttemptState, Desired, JobState, Outcome

log = logging.getLogger(__name__)

CHIEF_LEASE_SECONDS = 15.0
MAX_NAME_LENGTH = 200
MAX_ID_LENGTH = 200


class HeldTrial(NamedTuple):
    """The trial that a script holds, and the attempt through which it holds the trial."""

    attempt: Attempt
    trial: Trial


class NoTrial(Enum):
    """The answer to a script that gets no trial: wait, the search is over, or a suggestion is needed."""

    WAIT = auto()
    OVER = auto()
    SUGGEST = auto()


def open_search(project: Project, name: str, settings: ExternalSearch, *, by: User) -> tuple[Job, bool]:
    """Queue a search for external scripts, or return the open one with this name and its own settings.

    Returns:
        The search, and whether it is new.

    Raises:
        Forbidden: `by` may not run jobs in the project.
        BadInput: the name is empty or longer than 200 characters.
        QuotaReached: the project has too many unfinished jobs.
    """
    access.require(by, project, access.Action.WRITE)
    if not 0 < len(name) <= MAX_NAME_LENGTH:
        raise BadInput(f"the name of a search must have 1 to {MAX_NAME_LENGTH} characters")
    with transaction.atomic():
        # Locked, so that two chiefs with the same name open one search.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        named = Job.objects.filter(external_searches(), project=project, title=name)
        job = named.unfinished().order_by("-pk").first()
        is_new = job is None
        if job is None:
            quotas.require_room_for_job(project)
            payload = ExternalSearchPayload(search=settings)
            job = submit.queue(payload, project=project, title=name, created_by=by)
            audit.record("job.submit", f"job:{job.pk}", by=by, project=project, outside=True)
    return job, is_new


def record_address(job_id: int, *, host: str, port: int) -> None:
    """Store the address on which a search's chief listens, for its page and for the next chief."""
    with transaction.atomic():
        change_payload(Job.objects.get(pk=job_id), address=ChiefAddress(host=host, port=port))


def heartbeat(job_id: int, *, connected: Collection[int] = ()) -> Job:
    """Renew the chief's lease on a search, and apply the search's desired state.

    Args:
        job_id: the search.
        connected: the attempts whose scripts are connected, by number; their leases are renewed.

    Returns:
        The search, refreshed.
    """
    with transaction.atomic():
        connected_attempts = _lock_attempts(Attempt.objects.filter(job_id=job_id, number__in=connected))
        root = Job.objects.locked().get(pk=job_id)
        if root.state in FINAL:
            return root
        until = clock.seconds_from_now(CHIEF_LEASE_SECONDS)
        Lease.objects.update_or_create(name=_lease_name(root), defaults={"holder": "chief", "until": until})
        if root.desired == Desired.RUNNING:
            _mark_running(root)
        _renew_leases(root, [attempt.pk for attempt in connected_attempts])
    # After the commit: `finish` locks an attempt before the search, which was locked here.
    if root.desired == Desired.KILLED or root.payload.failing is not None:
        for attempt in open_attempts(root):
            _end_attempt(attempt, Outcome.KILLED)
    attempt_end.reap(root)
    return root


def _mark_running(root: Job) -> None:
    """Move a waiting search to `running`: its scripts run without a placement by the scheduler."""
    if root.state in WAITING:
        move(root, JobState.STARTING)
    if root.state == JobState.STARTING:
        move(root, JobState.RUNNING, started=root.started or clock.now())


def _lease_name(root: Job) -> str:
    return f"chief {root.pk}"


def has_chief(root: Job) -> bool:
    """Return whether a chief holds an unexpired lease on the search."""
    return Lease.objects.filter(name=_lease_name(root), until__gt=clock.now()).exists()


def wait_for_chief(root: Job) -> None:
    """Mark a search without a chief and without open attempts as waiting for a chief."""
    if has_chief(root) or open_attempts(root).exists():
        return
    why = f"Its chief has ended. Start it again: {chief_command(root)}"[:500]
    if root.state in (JobState.STARTING, JobState.RUNNING):
        move(root, JobState.RETRYING, why_waiting=why)
    elif root.state in WAITING and root.why_waiting != why:
        # Another process may have stored a newer reason since the row was read.
        rows = Job.objects.filter(pk=root.pk, state__in=WAITING, why_waiting=root.why_waiting)
        rows.update(why_waiting=why)


def open_attempts(root: Job) -> AttemptQuerySet:
    """Return a search's attempts that hold trials."""
    return Attempt.objects.open().filter(job=root)


def _lock_attempts(attempts: AttemptQuerySet) -> list[Attempt]:
    """Return the open attempts among these, locked until the transaction ends."""
    # In one order, against deadlocks between calls that lock several.
    return list(attempts.open().select_for_update(of=("self",), no_key=True).order_by("pk"))


def _renew_leases(root: Job, attempts: Collection[int]) -> None:
    Attempt.objects.filter(pk__in=list(attempts)).update(lease_until=lease_end(root))


def lease_end(root: Job) -> datetime:
    """Return when a script's lease ends if it has just sent a message."""
    return clock.now() + timedelta(seconds=external_payload(root).search.lease_seconds)


def claim_trial(job_id: int, script: str, *, host: str = "") -> HeldTrial | NoTrial:
    """Return the trial that a script holds, or claim the next waiting one for it.

    The call is idempotent: a script that was restarted continues with the trial it held.

    Args:
        job_id: the search.
        script: the script's id, which holds one trial at a time.
        host: the script's host, for display.

    Returns:
        The trial, or an answer if there is none.

    Raises:
        BadInput: the id is empty, too long or contains a NUL character.
    """
    if not 0 < len(script) <= MAX_ID_LENGTH:
        raise BadInput(f"KERASTUNER_TUNER_ID must have 1 to {MAX_ID_LENGTH} characters; it has {len(script)}")
    if "\0" in script:
        raise BadInput("KERASTUNER_TUNER_ID must not contain NUL characters")
    with transaction.atomic():
        # Locked before the search, since its lease may be renewed below.
        _lock_attempts(
            Attempt.objects.filter(job_id=job_id, worker__name=script, worker__pool=_pool_name(job_id))
        )
        root = Job.objects.locked().get(pk=job_id)
        if (
            root.state in FINAL
            or root.desired in (Desired.STOPPED, Desired.KILLED)
            or root.payload.failing is not None
            or root.payload.finishing
        ):
            return NoTrial.OVER
        worker = _worker_of_script(root, script, host)
        held = open_attempts(root).filter(worker=worker).order_by("-number").first()
        if held is not None:
            _renew_leases(root, [held.pk])
            return HeldTrial(held, held.trials.get())
        if root.desired == Desired.PAUSED:
            return NoTrial.WAIT
        _mark_running(root)
        trial = root.trials.waiting().order_by("number").first() or _discovery_trial(root)
        return _hold_trial(root, worker, trial) if trial is not None else _answer_without_trial(root)


def _pool_name(job_id: int) -> str:
    # A job cannot name this pool: the names of pools contain no space.
    return f"search {job_id}"


def _worker_of_script(root: Job, script: str, host: str) -> Worker:
    """Return a script's worker row. It is `gone` from the start, so that nothing is placed on it."""
    worker, _ = Worker.objects.get_or_create(
        name=script,
        pool=_pool_name(root.pk),
        defaults={
            "host": host[:200],
            "pid": 0,
            "slots": 0,
            "state": Worker.State.GONE,
            "lease_until": clock.now(),
        },
    )
    return worker


def _discovery_trial(root: Job) -> Trial | None:
    """Create a search's first trial while its space is unknown: the script runs its own defaults.

    A KerasTuner script reports its hyperparameters when a trial ends, never before.
    """
    settings = external_payload(root).search
    trials = root.trials.filter(source="algorithm")
    if settings.space or trials.count() >= settings.max_trials or external_payload(root).exhausted:
        return None
    if trials.unfinished().exists():
        return None
    return suggest.make_trial(root, {}, source="algorithm")


def _hold_trial(root: Job, worker: Worker, trial: Trial) -> HeldTrial:
    Job.objects.filter(pk=root.pk).update(fence=F("fence") + 1)
    root.refresh_from_db(fields=["fence"])
    now = clock.now()
    attempt = Attempt.objects.create(
        job=root,
        number=root.fence,
        worker=worker,
        slots=0,
        state=AttemptState.RUNNING,
        assigned=now,
        claimed=now,
        lease_until=lease_end(root),
    )
    Trial.objects.filter(pk=trial.pk).update(attempt=attempt.number)
    attempt.trials.add(trial)
    trial.refresh_from_db()
    # The events of a runner, so that rows and pages need not distinguish scripts from runners.
    moment = time.time()
    begun = contract.TrialBegun(time=moment, trial=trial.number)
    running = contract.ExecutionDone(time=moment, trial=trial.number, execution=1, state="running")
    events.append(root.pk, *runner_events.record_events(attempt, [begun, running], {}))
    return HeldTrial(attempt, trial)


def _answer_without_trial(root: Job) -> NoTrial:
    """Return the answer to a script if no trial waits. Other scripts' trials may be queued again later."""
    settings = external_payload(root).search
    trials = root.trials.filter(source="algorithm").count()
    if settings.space and trials < settings.planned() and not external_payload(root).exhausted:
        return NoTrial.SUGGEST
    # `pipeline` ends the search once all its trials are final.
    return NoTrial.WAIT


class SuggestionRequest(NamedTuple):
    """A request for one suggestion, and how many trials there were at its time."""

    request: dict[str, Any]
    trial_count: int


def suggestion_request(job_id: int) -> SuggestionRequest | None:
    """Return the request for the algorithm, a SuggestRequest as JSON, or None if no trial is needed."""
    root = Job.objects.get(pk=job_id)
    if _answer_without_trial(root) is not NoTrial.SUGGEST or root.trials.waiting().exists():
        return None
    settings = external_payload(root).search
    rows = list(root.trials.order_by("number").values("number", "state", "values", "score", "source"))
    trials = [row | {"values": with_defaults(settings.space, row["values"])} for row in rows]
    search = settings.algorithm_spec().model_dump(mode="json", by_alias=True, exclude_none=True)
    return SuggestionRequest({"search": search, "count": 1, "trials": trials}, len(rows))


def add_suggestion(job_id: int, request: SuggestionRequest, values: Values | None) -> None:
    """Create a waiting trial from a suggestion. None marks the algorithm as exhausted.

    Raises:
        StaleState: trials were created since the request; the suggestion is dropped.
        ValueError: the values do not fit the space.
    """
    with transaction.atomic():
        root = Job.objects.locked().get(pk=job_id)
        # Another chief may have added the suggestion to the same request.
        if root.state in FINAL or root.payload.finishing or root.trials.count() != request.trial_count:
            raise StaleState(f"search {job_id} has changed while its next trial was being chosen")
        if values is None:
            change_payload(root, exhausted=True)
            return
        suggest.make_trial(root, values, source="algorithm")


def release_trial(job_id: int, attempt: int, why: str) -> None:
    """End a disconnected script's attempt; its trial is queued again with its number and values.

    Args:
        job_id: the search.
        attempt: the attempt's number.
        why: the reason, for display.
    """
    error = {"code": "script_gone", "message": why}
    held = Attempt.objects.filter(job_id=job_id, number=attempt).open().first()
    if held is not None:
        _end_attempt(held, Outcome.LOST, error)


def _end_attempt(attempt: Attempt, outcome: Outcome, error: JobError | None = None) -> None:
    """End an attempt, unless its script or the scheduler has just ended it."""
    try:
        attempt_end.finish(attempt.pk, outcome, error=error)
    except StaleState as other:
        log.info("attempt %s was ended by another process: %s", attempt.number, other)
