"""Revises a search while it runs: changes its budget and parallelism, and narrows its space."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F, QuerySet
from pydantic import ValidationError

from jobs import hints
from jobs.actions.audit import audit
from jobs.actions.code import own_code
from jobs.actions.experiments import experiments
from jobs.actions.runs import events
from jobs.actions.search.trials import locked_open_search
from jobs.actions.transition import move_trial_unlogged
from jobs.errors import BadInput, Conflict, StaleState
from jobs.models import Job, Revision, Trial, User
from jobs.queries.runs.codec import Event
from jobs.queries.search import outcomes
from jobs.queries.search import trials as queries
from jobs.queries.search.algorithm_state import AlgorithmState, algorithm_state
from jobs.queries.search.outcomes import WITHDRAWN
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem, problems
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space.narrowing import NotNarrower, changes, contains, narrow_space
from jobs.states import Desired, TrialState

BUDGET = {
    "max_trials": "Trials, at most",
    "max_minutes": "Minutes, at most",
    "parallel_trials": "Trials at once",
    "max_consecutive_failures": "Consecutive failures, at most",
}
"""Numbers that may be changed, with their labels."""
UNSET = {"max_minutes": "no limit", "parallel_trials": "one per available slot"}
"""What applies if a number is left out."""


NARROWED = "the space was narrowed before this trial began, and the trial is outside the new space"


class Change(NamedTuple):
    """The effect of a search's revision.

    Attributes:
        spec: the experiment's spec with the changed search.
        descriptions: a sentence for each change.
        withdrawn: the algorithm's queued trials that are outside the narrowed space and have not begun.
    """

    spec: ExperimentSpec
    descriptions: list[str]
    withdrawn: list[Trial]


def preview_change(job: Job, sent: Mapping[str, Any]) -> Change:
    """Return the effect that `revise_search` would have now, without writing anything.

    Raises:
        Conflict, StaleState, BadInput: as `revise_search` does.
    """
    _require_search(job)
    if not queries.accepts_trials(job):
        raise StaleState(f"search {job.pk} accepts no more trials: it can no longer be changed")
    spec = _revision_of(job).spec
    before = outcomes.search_of(job)
    if unknown := sorted(set(sent) - {*BUDGET, "space"}):
        message = "this cannot be changed while the search runs"
        raise BadInput(message, [Problem(f"/search/{name}", message) for name in unknown])
    try:
        after = _change_spec(spec, before, sent)
    except BadInput as refusal:
        # Without a valid space it is unknown which trials would be withdrawn; all that could be are counted.
        all_problems = [*refusal.problems, *_too_few(job, sent, withdrawn=withdrawable_trials(job).count())]
        raise BadInput(refusal.message, all_problems) from refusal
    search = after.search or before
    withdrawn = []
    if search.space != before.space:
        state = algorithm_state(job)
        withdrawn = [
            t for t in withdrawable_trials(job).order_by("number") if not _is_inside_space(search, state, t)
        ]
    descriptions = _describe_changes(before, search)
    if not descriptions:
        raise BadInput("nothing would change", [Problem("/search", "all values are the same as before")])
    if few := _too_few(job, sent, withdrawn=len(withdrawn)):
        raise BadInput(few[0].message, few)
    return Change(after, descriptions, withdrawn)


def _too_few(job: Job, sent: Mapping[str, Any], *, withdrawn: int) -> list[Problem]:
    """Return a problem if the budget is below the number of created trials, without withdrawn ones."""
    created = job.trials.filter(source="algorithm").count() - withdrawn
    if sent.get("max_trials") is None or sent["max_trials"] >= created:
        return []
    return [
        Problem("/search/max_trials", f"{created} trials have already been created: use at least this number")
    ]


def revise_search(
    job: Job, sent: Mapping[str, Any], *, by: User, seen: int | None = None, comment: str = ""
) -> Revision:
    """Freeze a changed search as a new revision of its experiment, and continue the job with it.

    Running trials continue. The algorithm's queued trials outside a narrowed space are stopped and do not
    count; trials that a user queued stay. Suggestions that are being computed at this moment are dropped.

    Args:
        job: a search that still accepts trials.
        sent: the changed fields among those of `BUDGET`, and `space`.
        by: the acting user.
        seen: the number of the revision that the user read; None accepts any.
        comment: the reason, for display.

    Raises:
        Conflict: the job is not an experiment's search.
        StaleState: the search has ended, or was revised since `seen`. Nothing was changed.
        BadInput: a change is invalid; has a problem for each invalid field, below `/search`.
    """
    own_code.require_right(by, job.project, job.revision)
    _require_search(job)
    with transaction.atomic():
        root = locked_open_search(job.pk)
        old = _revision_of(root)
        if seen is not None and old.number != seen:
            raise StaleState(
                f"job {root.pk} is at revision {old.number}, not {seen}: reload it and try again"
            )
        # Computed under the lock, not taken from a preview that the user saw: trials may have begun since.
        change = preview_change(root, sent)
        new = experiments.freeze(old.experiment, change.spec, by=by, reason=comment)
        bodies = [withdraw_trial(trial, NARROWED) for trial in change.withdrawn]
        _set_revision(root, new)
        _record_revision(root, change.descriptions, bodies, before=old, after=new, by=by, comment=comment)
        hints.send("schedule", job=root.pk)
    job.refresh_from_db()
    return new


def _record_revision(
    root: Job,
    changes: list[str],
    withdrawn: list[Event],
    *,
    before: Revision,
    after: Revision,
    by: User,
    comment: str,
) -> None:
    """Append the events of a revision and of the trials that it withdraws, and its audit row."""
    event = events.event("revised", root, revision=after.number, by=by.username, changes=changes)
    events.append(root.root_id_or_self, [event, *withdrawn])
    audit.record(
        "job.revise",
        f"job:{root.pk}",
        by=by,
        project=root.project,
        revision=after.number,
        digest=after.digest,
        before=before.number,
        changes=changes,
        comment=comment,
    )


def _require_search(job: Job) -> None:
    if not job.facts.has_trials or job.revision is None:
        raise Conflict(f"job {job.pk} ({job.facts.noun}) is not a search")
    if job.desired not in (Desired.RUNNING, Desired.PAUSED):
        raise StaleState(f"job {job.pk} is to be {job.desired}: it can no longer be changed")


def _revision_of(job: Job) -> Revision:
    if job.revision is None:
        raise Conflict(f"job {job.pk} does not come from an experiment")
    return job.revision


def _change_spec(spec: ExperimentSpec, search: SearchSpec, sent: Mapping[str, Any]) -> ExperimentSpec:
    """Return the spec with the changed search, validated as a whole.

    Raises:
        BadInput: it is invalid; has a problem for each invalid field, below `/search`.
    """
    body = search.model_dump(mode="json", by_alias=True, exclude_none=True)
    body |= {name: value for name, value in sent.items() if name in BUDGET}
    if sent.get("space") is not None:
        try:
            space = narrow_space(search.space, sent["space"])
        except NotNarrower as wider:
            raise BadInput(str(wider), wider.problems) from wider
        dumped = search.model_copy(update={"space": space}).model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
        body["space"] = dumped["space"]
        body["start_with"] = [
            values for values in search.start_with if contains(space, values, on_grid=False)
        ]
    whole = spec.to_json() | {"search": body}
    try:
        return ExperimentSpec.model_validate(whole)
    except ValidationError as error:
        # Problems elsewhere are shown at a field of the form: only the search was changed.
        search_problems = [
            p if p.pointer.startswith("/search/") else Problem("/search/max_trials", p.message)
            for p in problems(error, whole)
        ]
        raise BadInput(search_problems[0].message, search_problems) from error


def _describe_changes(before: SearchSpec, after: SearchSpec) -> list[str]:
    numbers = [
        f"{label}: {_value_text(name, getattr(after, name))}, "
        f"previously {_value_text(name, getattr(before, name))}"
        for name, label in BUDGET.items()
        if getattr(after, name) != getattr(before, name)
    ]
    return numbers + changes(before.space, after.space)


def _value_text(name: str, value: float | None) -> str:
    return UNSET.get(name, "") if value is None else f"{value:g}"


def withdrawable_trials(job: Job) -> QuerySet[Trial]:
    """Return the algorithm's waiting trials that have not begun and that no attempt holds."""
    waiting = job.trials.filter(source="algorithm", state__in=(TrialState.QUEUED, TrialState.PAUSED))
    # A promoted or continued trial also waits without a start time, but it has trained.
    untrained = waiting.filter(started=None, rung=0, rungs=[], checkpoints=None).exclude(
        executions__epochs__gt=0
    )
    return untrained.not_held()


def _is_inside_space(search: SearchSpec, state: AlgorithmState, trial: Trial) -> bool:
    values = state.whole_values(trial.values)
    return contains(search.space, values, on_grid=search.info.enumerates_grid)


def count_outside(root: Job, search: SearchSpec, state: AlgorithmState) -> int:
    """Count the algorithm's trials that are outside a space."""
    suggested = root.trials.filter(source="algorithm")
    return sum(not _is_inside_space(search, state, trial) for trial in suggested.only("values", "job_id"))


def withdraw_trial(trial: Trial, message: str) -> Event:
    """Stop a trial that is outside the changed space. Return its event."""
    trial.executions.update(state=TrialState.STOPPED)
    return move_trial_unlogged(
        trial,
        TrialState.STOPPED,
        source=WITHDRAWN,
        error={"code": "outside_space", "message": message},
    )


def _set_revision(root: Job, new: Revision) -> None:
    """Set the job's revision by compare-and-set on the old one.

    Suggestions that are being computed for the old revision are dropped: their fencing token becomes stale.
    """
    search, payload = new.spec.search, algorithm_state(root)
    first = payload.first_revision or root.revision_id
    # The state of the old search's algorithm does not apply to the new one.
    payload = payload.changed(exhausted=False, answered_empty=None, first_revision=first)
    is_narrowed = payload.beyond_space is not None
    if search is not None and (is_narrowed or search.space != outcomes.search_of(root).space):
        payload = payload.changed(beyond_space=count_outside(root, search, payload))
    # The new revision has the rows that trials have added.
    found = tuple(one.model_copy(update={"in_revision": True}) for one in payload.found)
    payload = payload.changed(found=found)
    moved = Job.objects.filter(pk=root.pk, revision=root.revision, suggest_fence=root.suggest_fence)
    if not moved.update(
        revision=new, payload_json=payload.to_json(), suggest_fence=F("suggest_fence") + 1, suggest_until=None
    ):
        raise StaleState(
            f"job {root.pk} was changed by another user in the meantime: reload it and try again"
        )
