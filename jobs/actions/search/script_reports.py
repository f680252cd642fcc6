"""Records external scripts' reports about their trials: metrics, ends and new hyperparameters."""

import math
import re
import time
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from django.db import transaction
from pydantic import ValidationError

from jobs.actions.runs import attempt_end, events, job_warnings, runner_events
from jobs.actions.runs.payloads import change_payload
from jobs.actions.search import external_search, suggest
from jobs.errors import BadInput, NotFound, StaleFence
from jobs.messages import events as contract
from jobs.models import Attempt, Job, Trial
from jobs.queries.search.external_search import external_payload
from jobs.queries.search.script_reports import TrialName, best_score, find_trial, reported_values
from jobs.spec.external_search import ExternalSearch, with_defaults
from jobs.spec.formats import keras_tuner
from jobs.spec.formats.reading import FormatError, Item, format_error
from jobs.spec.problems import first
from jobs.spec.sections.measures import LONGEST_NAME
from jobs.spec.space.search_space import Value, check_values
from jobs.states import TRIAL_FINAL, AttemptState, Outcome

MAX_METRICS = 200
MAX_REFUSED = 20
"""After so many hyperparameters that cannot be converted, the rest of a report is not tried."""
LAST_STEP = 2**31
RESERVED_NAME = re.compile(r"\0|^__.*__$")
"""Names that databases cannot store, or that languages reserve, such as `__proto__`."""


def record_metrics(job_id: int, name: TrialName, metrics: Mapping[str, float], step: int) -> None:
    """Record one step's metrics, all or none.

    Raises:
        BadInput: the objective is missing, or a name or the step is out of bounds.
        StaleFence: the trial has been assigned to another script; nothing was written.
    """
    with transaction.atomic():
        root, attempt = _locked_attempt(job_id, name)
        _check_metrics(root, metrics, step)
        now = time.time()
        # Steps are counted from 0, epochs from 1.
        points = tuple((metric, step + 1.0, _finite_or_none(value), now) for metric, value in metrics.items())
        event = contract.Metric(time=now, trial=name.trial, execution=1, points=points)
        events.append(job_id, *runner_events.record_events(attempt, [event], {}))


def _locked_attempt(job_id: int, name: TrialName) -> tuple[Job, Attempt]:
    """Return a script's search and attempt, locked, with the lease renewed."""
    # The attempt's number is the fencing token: after the trial was given to another script, no row matches.
    rows = Attempt.objects.filter(job_id=job_id, number=name.attempt, trials__number=name.trial)
    # The attempt is locked before its search, as in `attempt_end`, against deadlocks.
    attempt = rows.filter(state=AttemptState.RUNNING).select_for_update(of=("self",), no_key=True).first()
    root = Job.objects.locked().filter(pk=job_id).first()
    if root is None:
        raise NotFound(f"there is no search {job_id}")
    if attempt is None:
        raise StaleFence(
            f"trial {name.trial} is no longer assigned to this script: its lease expired, or the trial was "
            "stopped. Its reports are discarded; it gets another trial when it requests one."
        )
    attempt.job = root
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=external_search.lease_end(root))
    return root, attempt


def _check_metrics(root: Job, metrics: Mapping[str, float], step: int) -> None:
    metric = external_payload(root).search.metric
    if metric not in metrics:
        names = ", ".join(sorted(metrics))[:300] or "none"
        raise BadInput(f"the objective {metric!r} is not among the reported metrics: {names}")
    if len(metrics) > MAX_METRICS or not all(0 < len(name) <= LONGEST_NAME for name in metrics):
        raise BadInput(f"report at most {MAX_METRICS} metrics, with names of 1 to {LONGEST_NAME} characters")
    if wrong := next((name for name in metrics if RESERVED_NAME.search(name)), None):
        raise BadInput(f"{wrong!r} is reserved and cannot be the name of a metric")
    if not 0 <= step < LAST_STEP:
        raise BadInput(f"step {step} is not between 0 and {LAST_STEP - 1}")


def end_trial(
    job_id: int, name: TrialName, *, done: bool, space: dict[str, Any], values: Mapping[str, Value]
) -> None:
    """End a trial, and add the hyperparameters that it found to the search space.

    Args:
        job_id: the search.
        name: the trial's name.
        done: whether the trial was completed; if not, it failed in the script.
        space: the hyperparameters that the script knows, as KerasTuner's JSON.
        values: the trial's hyperparameter values.

    Raises:
        StaleFence: the trial has been assigned to another script; nothing was written.
        FormatError: the first reported space cannot be converted. The trial has failed, with the reason.
    """
    refused: FormatError | None = None
    with transaction.atomic():
        ended = Attempt.objects.filter(
            job_id=job_id, number=name.attempt, outcome=Outcome.COMPLETED, trials__state__in=TRIAL_FINAL
        )
        # The answer to the first call was lost, so the script repeats it.
        if ended.exists():
            return
        root, attempt = _locked_attempt(job_id, name)
        try:
            extend_space(root, space, trial=name.trial)
        except FormatError as error:
            refused = error
        trial = find_trial(job_id, name)
        if refused is None:
            _record_values(trial, external_payload(root).search, values)
        last = _final_events(root, name, done=done, refused=refused)
        events.append(job_id, *runner_events.record_events(attempt, last, {}))
        # A script without hyperparameters has nothing to vary: one trial is enough.
        if done and not external_payload(root).search.space and refused is None:
            change_payload(root, exhausted=True)
        attempt_end.finish(attempt.pk, Outcome.COMPLETED)
    # Raised after the commit, so that the trial's failure is kept.
    if refused is not None:
        raise refused


def _final_events(
    root: Job, name: TrialName, *, done: bool, refused: FormatError | None
) -> list[contract.RunnerEvent]:
    """Return the events for a trial's end."""
    now, trial = time.time(), name.trial
    observed = reported_values(root.pk, name)
    best = best_score(observed, external_payload(root).search)
    error = None
    if refused is not None:
        error = contract.TrialError(
            code="space_refused", message=f"its search space cannot be converted: {refused}"
        )
    elif not done:
        message = (
            "the script reported a failure: its build or run raised an exception; see the script's output"
        )
        error = contract.TrialError(code="script_failed", message=message)
    elif best is None:
        message = f"no finite value of {external_payload(root).search.metric!r} was reported"
        error = contract.TrialError(code="no_score", message=message)
    if error is not None or best is None:
        return [contract.TrialDone(time=now, trial=trial, state="failed", error=error)]
    at_best = {metric: steps[best.step] for metric, steps in observed.items() if best.step in steps}
    execution = contract.ExecutionDone(
        time=now,
        trial=trial,
        execution=1,
        state="completed",
        score=best.score,
        best_epoch=best.step + 1,
        epochs=max(max(steps) for steps in observed.values()) + 1,
        metrics={metric: _finite_or_none(fmean(values)) for metric, values in at_best.items()},
    )
    return [execution, contract.TrialDone(time=now, trial=trial, state="completed")]


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def add_space(job_id: int, space: dict[str, Any]) -> None:
    """Add hyperparameters that a script reports outside a trial to the search space.

    Raises:
        FormatError: it is the first reported space and cannot be converted; nothing was written.
    """
    with transaction.atomic():
        extend_space(Job.objects.locked().get(pk=job_id), space)


def extend_space(root: Job, space: dict[str, Any], *, trial: int | None = None) -> None:
    """Add new hyperparameters to the search space, inside the caller's transaction.

    A hyperparameter that cannot be added to a known space is logged and keeps its default in the scripts.

    Raises:
        FormatError: no space is known yet, and this one cannot be converted.
    """
    search = external_payload(root).search
    names = {parameter.name for parameter in search.space}
    new = [entry for entry in space["space"] if entry["config"]["name"] not in names]
    if not new:
        return
    larger = (
        _extend_search(search, new)
        if not search.space
        else _extend_search_one_by_one(root, search, new, trial)
    )
    if larger is search:
        return
    change_payload(root, search=larger, exhausted=False)
    _log_line(
        root,
        f"search space, revision {len(larger.reported)}: added {', '.join(larger.reported[-1])}",
        "info",
        trial,
    )


def _extend_search_one_by_one(
    root: Job, search: ExternalSearch, new: Sequence[dict[str, Any]], trial: int | None
) -> ExternalSearch:
    """Return the search with those new hyperparameters that can be converted. Log the others, in one line."""
    larger, fitting = search, list[dict[str, Any]]()
    refused, reason = list[str](), ""
    for entry in new:
        # Each attempt takes milliseconds, and a script may report any number of hyperparameters.
        if len(refused) == MAX_REFUSED:
            refused.append(f"{len(new) - len(fitting) - MAX_REFUSED} more")
            break
        try:
            larger = _extend_search(search, [*fitting, entry])
        except FormatError as error:
            refused.append(repr(str(entry["config"]["name"])[:100]))
            reason = reason or str(error)
        else:
            fitting.append(entry)
    if refused:
        keep = "keeps its default" if len(refused) == 1 else "keep their defaults; the first"
        _log_line(root, f"{', '.join(refused)} {keep}: {reason}", "warning", trial)
    return larger


def _extend_search(search: ExternalSearch, new: Sequence[dict[str, Any]]) -> ExternalSearch:
    """Return the search with new hyperparameters in KerasTuner's format, converted together."""
    # Known entries come first, since conditions refer to entries before them.
    rows = [*keras_tuner.write(search.space)["space"], *new]
    converted = keras_tuner.read(Item({"space": rows}, ""))
    body = search.model_dump() | {"space": converted.search["space"]}
    try:
        return search.extended(ExternalSearch.model_validate(body).space)
    except ValidationError as error:
        raise format_error("/space", first(error).message) from None


def _record_values(trial: Trial, search: ExternalSearch, values: Mapping[str, Value]) -> None:
    """Add values for hyperparameters that the trial found to its own values."""
    more = {name: value for name, value in values.items() if name not in trial.values}
    try:
        whole = check_values(search.space, with_defaults(search.space, trial.values | more))
    # A script may set any values; the assigned ones are kept.
    except ValueError:
        return
    if whole != trial.values:
        trial.values, trial.values_digest = whole, suggest.values_digest(whole)
        trial.save(update_fields=["values", "values_digest"])


def warn_over_quota(job_id: int) -> None:
    """Warn that reports wait, because the scripts exceed their share of the event quota."""
    message = (
        "The scripts of this search reported more events a second than their share of the quota of the "
        "project. Their calls wait, and nothing is lost. Report metrics less often, or ask an administrator "
        "of the installation to raise the quota."
    )
    with transaction.atomic():
        root = Job.objects.locked().get(pk=job_id)
        job_warnings.add_warning(root.pk, code="events_over_quota", message=message)
        _log_line(root, message, "warning", None)


def _log_line(root: Job, line: str, level: str, trial: int | None) -> None:
    body = events.event("log", root, trial=trial, level=level, source="chief", line=line)
    events.append(root.pk, [body])
