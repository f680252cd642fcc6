"""Searches whose trials outside scripts run: opened, kept alive and handed out by their chief.

A script holds one trial through an attempt, as a runner does: its number is the fence, its lease gives the
trial back, and what ends attempts (`endings`) ends these too. Any number of chiefs may serve one search.
Whoever locks both locks attempts first, in the order of their keys, and then the search, as `endings` does.
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
from jobs.actions import attempt_end, audit, events, runner_events, submit, suggest
from jobs.actions.payloads import change_payload
from jobs.actions.transition import move
from jobs.contracts import events as said
from jobs.contracts.search_space import Values
from jobs.errors import BadInput, StaleState
from jobs.kinds.external_search.facts import EXTERNAL_SEARCH
from jobs.kinds.external_search.payload import Address, ExternalSearch, ExternalSearchPayload, completed
from jobs.models import Attempt, Job, Lease, Project, Trial, User, Worker
from jobs.models.attempt import AttemptQuerySet
from jobs.queries.external_search import command, external
from jobs.states import FINAL, WAITING, AttemptState, Desired, JobState, Outcome

log = logging.getLogger(__name__)

CHIEF_SECONDS = 15.0
LONGEST_ID = 200


class Held(NamedTuple):
    """The trial that a script holds."""

    attempt: Attempt
    trial: Trial


class Answer(Enum):
    """What a script is told that gets no trial."""

    WAIT = auto()
    OVER = auto()
    SUGGEST = auto()


def open_search(project: Project, name: str, wanted: ExternalSearch, *, by: User) -> tuple[Job, bool]:
    """Queue a search for outside scripts, or go on with the open one of this name, as it was asked for then.

    Returns:
        The search, and whether it is new.

    Raises:
        Forbidden: `by` may not run jobs in the project.
        BadInput: it has no name, or one of more than 200 characters.
    """
    access.require(by, project, access.Action.WRITE)
    if not 0 < len(name) <= 200:
        raise BadInput("a search has a name of 1 to 200 characters")
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)  # two chiefs of one name make one search
        mine = Job.objects.external_searches().filter(project=project, title=name)
        job = mine.unfinished().order_by("-pk").first()
        is_new = job is None
        if job is None:
            job = _queued(project, name, wanted, by=by)
            audit.record("job.submit", f"job:{job.pk}", by=by, project=project, outside=True)
    return job, is_new


def listens(job_id: int, *, host: str, port: int) -> None:
    """Note where the chief of a search listens, for its page and for the next chief."""
    with transaction.atomic():
        change_payload(Job.objects.get(pk=job_id), address=Address(host=host, port=port))


def _queued(project: Project, name: str, wanted: ExternalSearch, *, by: User) -> Job:
    payload = ExternalSearchPayload(search=wanted)
    return submit.queue(EXTERNAL_SEARCH, payload, project=project, title=name, created_by=by)


def beat(job_id: int, *, connected: Collection[int] = ()) -> Job:
    """Say that a chief lives, and let its search follow what people want of it.

    Args:
        job_id: the search.
        connected: the numbers of attempts whose scripts are known to be there, though they say nothing.

    Returns:
        The search as it is now.
    """
    with transaction.atomic():
        theirs = _locked(Attempt.objects.filter(job_id=job_id, number__in=connected))
        root = Job.objects.select_for_update(of=("self",)).get(pk=job_id)
        if root.state in FINAL:
            return root
        until = clock.seconds_from_now(CHIEF_SECONDS)
        Lease.objects.update_or_create(name=_lease_name(root), defaults={"holder": "chief", "until": until})
        if root.desired == Desired.RUNNING:
            _run(root)
        _renew(root, [attempt.pk for attempt in theirs])
    if root.desired == Desired.KILLED or root.payload.failing is not None:
        for attempt in open_attempts(root):
            _end(attempt, Outcome.KILLED)
    attempt_end.reap(root)
    return root


def _run(root: Job) -> None:
    if root.state in WAITING:
        move(root, JobState.STARTING)
    if root.state == JobState.STARTING:
        move(root, JobState.RUNNING, started=root.started or clock.now())


def _lease_name(root: Job) -> str:
    return f"chief {root.pk}"


def has_chief(root: Job) -> bool:
    """Say whether a chief has given a sign of life lately."""
    return Lease.objects.filter(name=_lease_name(root), until__gt=clock.now()).exists()


def rest_without_chief(root: Job) -> None:
    """Say of a search that nobody serves and no script works for that it waits, and for what."""
    if has_chief(root) or open_attempts(root).exists():
        return
    why = f"Its chief is gone. Start it again: {command(root)}"[:500]
    if root.state in (JobState.STARTING, JobState.RUNNING):
        move(root, JobState.RETRYING, why_waiting=why)
    elif root.state in WAITING and root.why_waiting != why:
        Job.objects.filter(pk=root.pk, state__in=WAITING).update(why_waiting=why)


def open_attempts(root: Job) -> Any:
    """Return the attempts of a search that hold trials."""
    return root.attempts.open()


def _locked(attempts: AttemptQuerySet) -> list[Attempt]:
    """Return those that are open, so that nobody ends them until the transaction does."""
    rows = attempts.open().select_for_update(of=("self",))
    return list(rows.order_by("pk"))


def _renew(root: Job, attempts: Collection[int]) -> None:
    Attempt.objects.filter(pk__in=list(attempts)).update(lease_until=lease_end(root))


def lease_end(root: Job) -> datetime:
    """Return until when a script that spoke just now keeps its trial."""
    return clock.now() + timedelta(seconds=external(root).search.lease_seconds)


def hand_out(job_id: int, script: str, *, host: str = "") -> Held | Answer:
    """Return the trial that a script holds, the next one that waits for one, or why there is none.

    Asking twice returns the same: a script that was started again goes on with the trial it had.

    Args:
        job_id: the search.
        script: the id that the script was given; it holds one trial at a time.
        host: from where it asks, for people.

    Raises:
        BadInput: the id is empty or too long, or no text.
    """
    if not 0 < len(script) <= LONGEST_ID:
        raise BadInput(f"KERASTUNER_TUNER_ID has 1 to {LONGEST_ID} characters, not {len(script)}")
    if "\0" in script:
        raise BadInput("KERASTUNER_TUNER_ID has no NUL characters")
    with transaction.atomic():
        _locked(Attempt.objects.filter(job_id=job_id, worker__name=script, worker__pool=_pool(job_id)))
        root = Job.objects.select_for_update(of=("self",)).get(pk=job_id)
        if (
            root.state in FINAL
            or root.desired in (Desired.STOPPED, Desired.KILLED)
            or root.payload.failing is not None
        ):
            return Answer.OVER
        worker = _worker(root, script, host)
        held = open_attempts(root).filter(worker=worker).order_by("-number").first()
        if held is not None:
            _renew(root, [held.pk])
            return Held(held, held.trials.get())
        if root.desired == Desired.PAUSED:
            return Answer.WAIT
        _run(root)
        trial = root.trials.waiting().order_by("number").first() or _discovery(root)
        return _hold(root, worker, trial) if trial is not None else _why_none(root)


def _pool(job_id: int) -> str:
    return f"search {job_id}"  # no name that a job's pool may have


def _worker(root: Job, script: str, host: str) -> Worker:
    """Return the row that stands for a script. It has left before it came: no slot, no pool to place on."""
    worker, _ = Worker.objects.get_or_create(
        name=script,
        pool=_pool(root.pk),
        defaults={
            "host": host[:200],
            "pid": 0,
            "slots": 0,
            "state": Worker.State.GONE,
            "lease_until": clock.now(),
        },
    )
    return worker


def _discovery(root: Job) -> Trial | None:
    """Return the first trial of a search whose space nobody knows: a script runs its own defaults.

    A script of KerasTuner tells its hyperparameters when a trial ends, and never before.
    """
    outside = external(root).search
    made = root.trials.filter(source="algorithm")
    if outside.space or made.count() >= outside.max_trials or external(root).exhausted:
        return None
    if made.unfinished().exists():
        return None
    return suggest.make_trial(root, {}, source="algorithm")


def _hold(root: Job, worker: Worker, trial: Trial) -> Held:
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
    moment = time.time()
    begun = said.TrialBegun(time=moment, trial=trial.number)
    running = said.ExecutionDone(time=moment, trial=trial.number, execution=1, state="running")
    events.append(root.pk, runner_events.take_in(attempt, [begun, running], {}))
    return Held(attempt, trial)


def _why_none(root: Job) -> Answer:
    """Tell a script to wait while a trial may still come back from another one."""
    outside = external(root).search
    made = root.trials.filter(source="algorithm").count()
    if outside.space and made < outside.planned() and not external(root).exhausted:
        return Answer.SUGGEST
    return Answer.WAIT  # `pipeline` ends the search once all its trials are final


class Question(NamedTuple):
    """A request for one suggestion, and how many trials there were when it was asked."""

    request: dict[str, Any]
    made: int


def question(job_id: int) -> Question | None:
    """Return what an algorithm is to be asked, as a SuggestRequest in JSON; None where no trial is wanted."""
    root = Job.objects.get(pk=job_id)
    if _why_none(root) is not Answer.SUGGEST or root.trials.waiting().exists():
        return None
    outside = external(root).search
    rows = list(root.trials.order_by("number").values("number", "state", "values", "score", "source"))
    trials = [row | {"values": completed(outside.space, row["values"])} for row in rows]
    search = outside.asked().model_dump(mode="json", by_alias=True, exclude_none=True)
    return Question({"search": search, "count": 1, "trials": trials}, len(rows))


def suggested(job_id: int, asked: Question, values: Values | None) -> None:
    """Make a trial of a suggestion, for whoever asks next; None says that the space is used up.

    Raises:
        StaleState: trials were made meanwhile; the suggestion does not know them and is dropped.
        ValueError: the values do not fit the space.
    """
    with transaction.atomic():
        root = Job.objects.select_for_update(of=("self",)).get(pk=job_id)
        if root.state in FINAL or root.trials.count() != asked.made:
            raise StaleState(f"search {job_id} has changed while its next trial was chosen")
        if values is None:
            change_payload(root, exhausted=True)
            return
        suggest.make_trial(root, values, source="algorithm")


def give_back(job_id: int, attempt: int, why: str) -> None:
    """End the attempt of a script that is gone: its trial, with its number and values, is the next one's."""
    error = {"code": "script_gone", "message": why}
    held = Attempt.objects.filter(job_id=job_id, number=attempt).open().first()
    if held is not None:
        _end(held, Outcome.LOST, error)


def _end(attempt: Attempt, outcome: Outcome, error: attempt_end.JobError | None = None) -> None:
    """End an attempt, unless its script or the scheduler ends it at this moment."""
    try:
        attempt_end.finish(attempt.pk, outcome, error=error)
    except StaleState as other:
        log.info("attempt %s was ended by somebody else: %s", attempt.number, other)
