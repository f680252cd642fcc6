"""Changes a search while it runs: its budget, how much runs at once, and a narrower space."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F, QuerySet
from pydantic import ValidationError

from jobs import access, hints
from jobs.actions import audit, events, experiments
from jobs.actions.transition import shift_trial
from jobs.actions.trials import searching
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.narrowing import NotNarrower, changes, contains, narrowed
from jobs.contracts.problems import Problem, problems
from jobs.contracts.search import SearchSpec
from jobs.errors import BadInput, Conflict, StaleState
from jobs.kinds.search.payload import SearchPayload
from jobs.models import Job, Revision, Trial, User
from jobs.queries import jobs as queries
from jobs.queries import outcomes
from jobs.queries.codec import Event
from jobs.queries.outcomes import WITHDRAWN
from jobs.states import Desired, TrialState

BUDGET = {
    "max_trials": "Trials, at most",
    "parallel_trials": "Trials at once",
    "max_consecutive_failures": "Give up after so many failures in a row",
}
"""Numbers that may be changed, and what people read."""


class Change(NamedTuple):
    """What a revision of a search comes to.

    Attributes:
        spec: the experiment's, with the search changed.
        told: what changes, a sentence each.
        withdrawn: queued trials of the algorithm that lie outside the narrowed space and have not begun.
    """

    spec: ExperimentSpec
    told: list[str]
    withdrawn: list[Trial]


def preview(job: Job, sent: Mapping[str, Any]) -> Change:
    """Say what `revise` would do now; writes nothing.

    Raises:
        Conflict, StaleState, BadInput: as `revise` does.
    """
    _require_search(job)
    if not queries.takes_trials(job):
        raise StaleState(f"search {job.pk} takes no more trials: there is nothing left to change")
    spec = _revision_of(job).spec
    before = outcomes.search_of(job)
    _require_known(sent)
    try:
        after = _changed(spec, before, sent)
    except BadInput as refusal:
        found = [*refusal.problems, *_too_few(job, sent, withdrawn=_withdrawable(job).count())]
        raise BadInput(refusal.message, found) from refusal
    withdrawn = _withdrawn(job, after.search, before) if after.search is not None else []
    told = _told(before, after.search or before)
    if not told:
        raise BadInput("nothing would change", [Problem("/search", "everything is so already")])
    if few := _too_few(job, sent, withdrawn=len(withdrawn)):
        raise BadInput(few[0].message, few)
    return Change(after, told, withdrawn)


def _require_known(sent: Mapping[str, Any]) -> None:
    if unknown := sorted(set(sent) - {*BUDGET, "space"}):
        found = [Problem(f"/search/{name}", "this cannot be changed while it runs") for name in unknown]
        raise BadInput(found[0].message, found)


def _too_few(job: Job, sent: Mapping[str, Any], *, withdrawn: int) -> list[Problem]:
    """Say so if fewer trials are asked for than the algorithm has made, less those that are withdrawn."""
    made = job.trials.filter(source="algorithm").count() - withdrawn
    if sent.get("max_trials") is None or sent["max_trials"] >= made:
        return []
    return [Problem("/search/max_trials", f"{made} trials were made already: give that many or more")]


def revise(
    job: Job, sent: Mapping[str, Any], *, by: User, seen: int | None = None, comment: str = ""
) -> Revision:
    """Freeze a changed search as a new revision of its experiment, and let the job go on with it.

    Trials that run go on. Queued ones of the algorithm that lie outside a narrowed space are stopped and
    count as none; those queued by hand stay. Whoever is choosing trials at this moment chooses in vain.

    Args:
        job: a search that still takes trials.
        sent: of `max_trials`, `parallel_trials`, `max_consecutive_failures` and `space` what shall change.
        by: who does it.
        seen: the number of the revision that they saw; None takes any.
        comment: why, for people.

    Raises:
        Conflict: the job is no search of an experiment.
        StaleState: it has ended, or somebody else has revised it since `seen`. Nothing was changed.
        BadInput: a change does not hold; names every place, below `/search`.
    """
    access.require(by, job.project, access.Action.WRITE)
    _require_search(job)
    with transaction.atomic():
        root = searching(job.pk)
        old = _revision_of(root)
        if seen is not None and old.number != seen:
            raise StaleState(f"job {root.pk} is at revision {old.number}, not {seen}: look at it again")
        change = preview(root, sent)
        new = experiments.freeze(old.experiment, change.spec, by=by, reason=comment)
        bodies = [_withdraw(trial) for trial in change.withdrawn]
        _move_to(root, new)
        event = events.event("revised", root, revision=new.number, by=by.username, changes=change.told)
        events.append(root.root_id_or_self, [event, *bodies])
        audit.record(
            "job.revise",
            f"job:{root.pk}",
            by=by,
            project=root.project,
            revision=new.number,
            digest=new.digest,
            before=old.number,
            changes=change.told,
            comment=comment,
        )
        hints.send("schedule", job=root.pk)
    job.refresh_from_db()
    return new


def _require_search(job: Job) -> None:
    if not job.facts.has_trials or job.revision is None:
        raise Conflict(f"job {job.pk} is a {job.public_kind}, not a search")
    if job.desired not in (Desired.RUNNING, Desired.PAUSED):
        raise StaleState(f"job {job.pk} is to be {job.desired}: there is nothing left to change")


def _revision_of(job: Job) -> Revision:
    if job.revision is None:
        raise Conflict(f"job {job.pk} does not come from an experiment")
    return job.revision


def _changed(spec: ExperimentSpec, search: SearchSpec, sent: Mapping[str, Any]) -> ExperimentSpec:
    """Return the spec with a changed search, checked as a whole."""
    body = search.model_dump(mode="json", by_alias=True, exclude_none=True)
    body |= {name: value for name, value in sent.items() if name in BUDGET}
    if sent.get("space") is not None:
        try:
            space = narrowed(search.space, sent["space"])
        except NotNarrower as wider:
            raise BadInput(str(wider), wider.problems) from wider
        dumped = search.model_copy(update={"space": space}).model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
        body["space"] = dumped["space"]
    whole = spec.to_json() | {"search": body}
    try:
        return ExperimentSpec.model_validate(whole)
    except ValidationError as error:
        found = [
            p if p.pointer.startswith("/search/") else Problem("/search/max_trials", p.message)
            for p in problems(error, whole)
        ]
        raise BadInput(found[0].message, found) from error


def _told(before: SearchSpec, after: SearchSpec) -> list[str]:
    numbers = [
        f"{label}: {_number(getattr(after, name))}, before {_number(getattr(before, name))}"
        for name, label in BUDGET.items()
        if getattr(after, name) != getattr(before, name)
    ]
    return numbers + changes(before.space, after.space)


def _number(value: int | None) -> str:
    return "as many as there are slots" if value is None else str(value)


def _withdrawn(job: Job, after: SearchSpec | None, before: SearchSpec) -> list[Trial]:
    """List the algorithm's trials that wait, have not begun, and lie outside the new space."""
    if after is None or after.space == before.space:
        return []
    return [trial for trial in _withdrawable(job).order_by("number") if not _inside(after, trial)]


def _withdrawable(job: Job) -> QuerySet[Trial]:
    """Return the algorithm's trials that wait, have not begun, and are held by no runner."""
    waiting = job.trials.filter(source="algorithm", state__in=(TrialState.QUEUED, TrialState.PAUSED))
    # One that was promoted or continued waits without a start, too, but has trained.
    untrained = waiting.filter(started=None, rung=0, rungs=[], checkpoints=None).exclude(
        executions__epochs__gt=0
    )
    return untrained.not_held()


def _inside(search: SearchSpec, trial: Trial) -> bool:
    return contains(search.space, trial.values, on_grid=search.info.enumerates_grid)


def _withdraw(trial: Trial) -> Event:
    message = "the space was made narrower before this trial began, and it lies outside"
    trial.executions.update(state=TrialState.STOPPED)
    return shift_trial(
        trial,
        TrialState.STOPPED,
        source=WITHDRAWN,
        error={"code": "outside_space", "message": message},
    )


def _move_to(root: Job, new: Revision) -> None:
    """Move the job to its new revision, if it still is at the old one.

    Suggestions that are being made for the old one are not taken: their right is given back.
    """
    search, payload = new.spec.search, root.payload_as(SearchPayload)
    first = payload.first_revision or root.revision_id
    # What was said of the old search holds for no other.
    payload = payload.changed(exhausted=False, nothing_for=None, first_revision=first)
    is_narrowed = payload.beyond_space is not None
    if search is not None and (is_narrowed or search.space != outcomes.search_of(root).space):
        own = root.trials.filter(source="algorithm")
        beyond = sum(not _inside(search, trial) for trial in own.only("values", "job_id"))
        payload = payload.changed(beyond_space=beyond)
    moved = Job.objects.filter(pk=root.pk, revision=root.revision, suggest_fence=root.suggest_fence)
    if not moved.update(
        revision=new, payload_json=payload.to_json(), suggest_fence=F("suggest_fence") + 1, suggest_until=None
    ):
        raise StaleState(f"job {root.pk} was changed by somebody else meanwhile: look at it again")
