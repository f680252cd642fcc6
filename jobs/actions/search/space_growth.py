"""Adds hyperparameters that a trial's code has asked for to the space of the running search.

A declaration is an event of the runner of a trial, so it is recorded once and under the fencing token of its
attempt. The space grows in the same transaction: no process can end between the two. A trial that is run
again declares the same, which changes nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import F
from pydantic import ValidationError

from jobs import hints
from jobs.actions.code import dry_builds
from jobs.actions.runs import events, job_warnings
from jobs.actions.search import suggest
from jobs.actions.search.search_changes import count_outside, withdraw_trial, withdrawable_trials
from jobs.messages.events import Declared
from jobs.models import Job, Trial
from jobs.queries.runs.codec import Event
from jobs.queries.search import outcomes
from jobs.queries.search import trials as queries
from jobs.queries.search.algorithm_state import AlgorithmState, algorithm_state
from jobs.spec.problems import first
from jobs.spec.sections.search import SearchSpec
from jobs.spec.sections.space_growth import FoundHyperparameter, with_rows
from jobs.spec.space.hyperparameters import describe_values, first_value
from jobs.spec.space.search_space import Parameter, value_errors

GROWN = "the space grew before this trial began; the algorithm chooses another one instead"


def record_declaration(trial: Trial, declared: Declared) -> None:
    """Add a trial's declaration to its search, inside the caller's transaction.

    Args:
        trial: held by an attempt, which the caller has locked.
        declared: its event.
    """
    root = Job.objects.locked().get(pk=trial.job_id)
    before = algorithm_state(root)
    known = {one.name for one in before.found} | {row.name for row in outcomes.search_of(root).space}
    after = before
    for one in _found(root, trial, declared, known):
        after = after.changed(found=(*after.found, one))
    if after != before:
        _record_found(root, before, after)
    _record_values(root, trial, declared)
    trial.job.payload_json = root.payload_json


def _found(root: Job, trial: Trial, declared: Declared, known: set[str]) -> Iterator[FoundHyperparameter]:
    """Yield the new hyperparameters of a declaration, with the reason for those that cannot be searched."""
    search = outcomes.search_of(root)
    state = algorithm_state(root)
    for row in declared.rows:
        if row.name in known:
            continue
        one = FoundHyperparameter(name=row.name, trial=trial.number, row=row, default=first_value(row))
        state = state.changed(found=(*state.found, one))
        if refused := _refusal(root, search, row, state):
            # Later rows may depend on it, and are then refused too.
            state = state.changed(found=state.found[:-1])
            one = FoundHyperparameter(name=row.name, trial=trial.number, refused=refused)
        else:
            search = with_rows(search, (row,), state.found)
        yield one
    for name, refused in declared.refused.items():
        if name not in known:
            yield FoundHyperparameter(name=name[:100], trial=trial.number, refused=refused[:500])


def _refusal(root: Job, search: SearchSpec, row: Parameter, state: AlgorithmState) -> str:
    """Return why a search cannot have a further row; empty if it can."""
    if not queries.accepts_trials(root):
        return "the search makes no more trials"
    larger = with_rows(search, (row,), state.found)
    body = larger.model_dump(mode="json", by_alias=True, exclude_none=True)
    try:
        SearchSpec.model_validate(body)
    except ValidationError as error:
        return first(error).message
    return ""


def _record_found(root: Job, before: AlgorithmState, after: AlgorithmState) -> None:
    """Store the hyperparameters that a trial has found, and search those that can be."""
    new = after.found[len(before.found) :]
    added, refused = [one for one in new if not one.refused], [one for one in new if one.refused]
    bodies = _grow(root, before, after, added) if added else []
    if not added:
        _store(root, after)
    for one in refused:
        bodies.append(_warn(root, one.trial, "hyperparameter_not_searched", _why_not_searched(one)))
    events.append(root.pk, bodies)


def _store(root: Job, state: AlgorithmState, **fields: Any) -> None:
    root.payload_json = state.to_json()
    Job.objects.filter(pk=root.pk).update(payload_json=root.payload_json, **fields)


def _grow(
    root: Job, before: AlgorithmState, after: AlgorithmState, added: Sequence[FoundHyperparameter]
) -> list[Event]:
    """Store a larger space, and have the algorithm choose again for trials that have not begun."""
    spec = root.revision.spec if root.revision is not None else None
    search = after.search_spec(spec)
    after = after.changed(exhausted=False, answered_empty=None)
    if search is not None and (search.info.enumerates_grid or after.beyond_space is not None):
        after = after.changed(beyond_space=count_outside(root, search, after))
    # Suggestions that are being computed for the smaller space are dropped: their token becomes stale.
    _store(root, after, suggest_fence=F("suggest_fence") + 1, suggest_until=None)
    trial, names = added[0].trial, " and ".join(one.name for one in added)
    dry_builds.add_to_space(root, after.found_rows(), trial)
    hints.send("schedule", job=root.pk)
    return [
        _growth_event(root, added),
        *_withdraw_incomplete(root, after),
        *(
            _warn(root, trial, "hyperparameter_found", f"Trial {trial} has found {names}, {consequence}")
            for consequence in _consequences(root, before.trials_planned(spec), after.trials_planned(spec))
        ),
    ]


def _growth_event(root: Job, added: Sequence[FoundHyperparameter]) -> Event:
    sentences = [
        f"trial {one.trial} has found {one.name}: {describe_values(one.row)}"
        for one in added
        if one.row is not None
    ]
    revision = root.revision.number if root.revision is not None else 0
    by = root.created_by.username if root.created_by is not None else ""
    return events.event("revised", root, revision=revision, by=by, changes=sentences)


def _withdraw_incomplete(root: Job, state: AlgorithmState) -> Iterator[Event]:
    """Withdraw the algorithm's waiting trials that lack a found value, so that they do not count."""
    for trial in withdrawable_trials(root).order_by("number"):
        if state.whole_values(trial.values) != trial.values:
            yield withdraw_trial(trial, GROWN)


def _consequences(root: Job, planned_before: int, planned: int) -> Iterator[str]:
    """Yield the consequences of a larger space that a person has to know."""
    search = outcomes.search_of(root)
    chosen = root.trials.filter(source="algorithm").count()
    if not search.info.has_rungs and chosen >= planned:
        yield (
            f"but all {chosen} trials of the search were chosen by then, so none tries another value than "
            "the default. Raise the number of trials, or run the search again, which begins with the whole "
            "space."
        )
    if search.info.enumerates_grid:
        yield (
            f"so the grid has more configurations: {planned} trials instead of {planned_before}, at most "
            f"{search.max_trials}. Raise the number of trials to try all of them."
        )


def _why_not_searched(one: FoundHyperparameter) -> str:
    return (
        f"Trial {one.trial} asks for {one.name!r}, which the search space lacks, and it cannot be added: "
        f"{one.refused.rstrip('.')}. It has its default in all trials. To search it, add a row with this "
        "name to the space of a new search, or change the code."
    )


def _warn(root: Job, trial: int, code: str, message: str) -> Event:
    job_warnings.add_warning(root.pk, code=code, message=message)
    return events.event("warning", root, trial=trial, code=code, message=message)


def _record_values(root: Job, trial: Trial, declared: Declared) -> None:
    """Add the values with which a trial trains to its own."""
    whole = dict(trial.values)
    added = {row.name for row in algorithm_state(root).found_rows()}
    for row in outcomes.search_of(root).space:
        value = declared.values.get(row.name)
        if value is None or row.name in whole or row.name not in added or not row.is_active(whole):
            continue
        # A user may have narrowed the space, so that it excludes the default.
        if not any(value_errors((row.model_copy(update={"when": None}),), {row.name: value})):
            whole[row.name] = value
    if whole != trial.values:
        trial.values, trial.values_digest = whole, suggest.values_digest(whole)
        trial.save(update_fields=["values", "values_digest"])
