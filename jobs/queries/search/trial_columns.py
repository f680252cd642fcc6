"""Reads a search's trials as columns, for its charts and its table."""

import datetime as dt
import math
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from django.db.models import TextField
from django.db.models.functions import Cast
from numpy.typing import NDArray

from jobs.models import Execution, Job
from jobs.queries.runs import events
from jobs.queries.runs.running_time import breaks_of_trials, seconds_without_break
from jobs.queries.search import baseline, outcomes, running_executions, waiting
from jobs.queries.search.algorithm_state import found_hyperparameters
from jobs.spec.space.search_space import FloatParameter, IntParameter, Parameter, Space, Value
from jobs.states import TrialState

Column = list[Any] | NDArray[np.float32]
Columns = dict[str, Any]

CURSOR = r"^\d{1,18}\.\d{1,9}$"
EVENTS_BEHIND = 2000
"""A reader that is more events behind than this gets all trials, which costs less than reading the events."""

STATES = [str(state) for state in TrialState]
_FIELDS = ("number", "state", "score", "std", "source", "restarts", "started", "finished", "pk")


def columns_cursor(search: Job) -> str:
    """Return a text that identifies the current state of all trials in a search."""
    newest = search.trials.order_by("-number").values_list("number", flat=True).first() or 0
    return f"{search.event_seq}.{newest}"


def columns_tag(search: Job) -> str:
    """Return the columns' entity tag. It includes why trials wait, which changes without any event."""
    reasons = " ".join(sorted(set(waiting.waiting_reasons(search).values())))
    return f"{columns_cursor(search)}.{zlib.crc32(reasons.encode())}"


def read_columns(search: Job, *, after: str | None = None) -> Columns:
    """Return a search's trials by ascending number, one list per column.

    Args:
        search: the job, freshly loaded.
        after: an earlier result's cursor; only trials that may have changed since then are returned.

    Returns:
        The columns. `whole` is true if they contain all trials. Floats are rounded to seven digits. A choice
        is an index into the parameter's `values`, a state an index into `states`. Times are seconds since
        1970. `under_way` maps trial number → execution number → its completed epochs `of` how many.

    Raises:
        Conflict: the job is not a search.
    """
    space = outcomes.widest_space(search)
    # The cursor is read before the rows: a change in between is then read twice rather than never.
    head = columns_cursor(search)
    numbers = _changed_trials(search, after) if after is not None else None
    rows = search.trials.order_by("number")
    executions = Execution.objects.filter(trial__job=search)
    if numbers is not None:
        rows, executions = rows.filter(number__in=numbers), executions.filter(trial__number__in=numbers)
    trials = list(rows.values_list(*_FIELDS, as_text("values")))
    running = running_executions.running_in_search(search)
    found_by = {one.name: {"found_by": one.trial} for one in found_hyperparameters(search)}
    compared = baseline.comparison_of_search(search)
    columns = {
        "cursor": head,
        "whole": numbers is None,
        "total": search.trials.count(),
        "unit": "step" if _runs_script(search) else "epoch",
        "objective": outcomes.objective_of(search).model_dump(),
        "objectives": [objective.model_dump() for objective in outcomes.search_of(search).ranked_by()],
        "states": STATES,
        "space": [_parameter_out(parameter) | found_by.get(parameter.name, {}) for parameter in space],
        "waiting": waiting.waiting_reasons(search),
        **_pareto_front_and_answers(search),
        "beats_constant": compared.is_beaten if compared is not None else None,
        **_trial_fields(trials, space, breaks_of_trials(search, numbers)),
        **_execution_columns([row[_FIELDS.index("pk")] for row in trials], executions, running),
        "under_way": _running_epochs(running),
    }
    return columns | {"nonfinite": True} if _has_infinity(columns) else columns


def _runs_script(search: Job) -> bool:
    return search.revision is not None and search.revision.spec.model.info.trains_itself


def _has_infinity(columns: Columns) -> bool:
    """Return whether a value lies beyond single precision. A value that does not exist is NaN."""
    floats = (columns["score"], columns["std"], *columns["values"].values(), *columns["metrics"].values())
    return any(isinstance(column, np.ndarray) and bool(np.isinf(column).any()) for column in floats)


def _trial_fields(rows: Sequence[tuple[Any, ...]], space: Space, breaks: Mapping[int, float]) -> Columns:
    """Return the columns for the trials' own fields."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(len(_FIELDS) + 1)]
    number, state, score, std, source, restarts, started, finished, keys, texts = columns
    values = _parse_documents(texts)
    return {
        "number": number,
        "state": [STATES.index(word) for word in state],
        "score": _float_column(score),
        "std": _float_column(std),
        "by_hand": [int(word == "hand") for word in source],
        "restarts": restarts,
        "started": _time_column(started),
        "finished": _time_column(finished),
        "seconds": [
            None if (ran := seconds_without_break(begin, end, breaks.get(pk, 0.0))) is None else round(ran, 1)
            for pk, begin, end in zip(keys, started, finished, strict=True)
        ],
        "values": {parameter.name: _value_column(parameter, values) for parameter in space},
    }


def _running_epochs(
    running: Mapping[running_executions.Key, running_executions.RunningExecution],
) -> dict[str, dict[str, Any]]:
    epochs: dict[str, dict[str, Any]] = defaultdict(dict)
    for (_, execution), row in sorted(running.items()):
        epochs[str(row.trial)][str(execution)] = {"epochs": row.epochs, "of": row.last_epoch}
    return epochs


def _pareto_front_and_answers(search: Job) -> Columns:
    """Return the Pareto front, and the trial from which each copied score comes."""
    front = outcomes.pareto_front(search).members
    answers = search.trials.exclude(answered_by=None).values_list("number", "answered_by__number")
    return {
        "front": sorted(search.trials.filter(pk__in=front).values_list("number", flat=True)) if front else [],
        "answers": {str(number): first for number, first in answers},
    }


def _changed_trials(search: Job, after: str) -> set[int] | None:
    """Return the trials that may have changed since a cursor, by number. None for all."""
    seq, newest = (int(part) for part in after.split("."))
    if not 0 <= search.event_seq - seq <= EVENTS_BEHIND:
        return None
    numbers: set[int] = set()
    # Usually one slice; more if it ends early because its events have many points.
    while seq < search.event_seq:
        part = events.read_events(search.root_id_or_self, after=seq, limit=EVENTS_BEHIND)
        numbers.update(event["trial"] for event in part.items if event.get("trial"))
        if part.cursor == seq:
            break  # no further event is stored
        seq = part.cursor
    # A new trial has no events yet, and an unfinished one may change without an event.
    numbers.update(search.trials.filter(number__gt=newest).values_list("number", flat=True))
    numbers.update(search.trials.unfinished().values_list("number", flat=True))
    return numbers


def as_text(name: str) -> Cast:
    """Return a column as stored text. Django would parse value by value, ten times as slowly."""
    return Cast(name, TextField())


def _parse_documents(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Parse many small documents at once, in a tenth of the time that one by one takes."""
    documents: list[dict[str, Any]] = orjson.loads(f"[{','.join(texts)}]")
    return documents


def _float_column(values: Iterable[float | None]) -> NDArray[np.float32]:
    """Return a float column in single precision, which takes half the characters in JSON."""
    # Values beyond the range of float32 become infinite, which is null in JSON.
    with np.errstate(over="ignore"):
        return np.array([np.nan if value is None else value for value in values], dtype=np.float32)


def _time_column(moments: Iterable[dt.datetime | None]) -> list[float | None]:
    # To tenths, because many trials take less than a second.
    return [None if moment is None else round(moment.timestamp(), 1) for moment in moments]


def _parameter_out(parameter: Parameter) -> dict[str, Any]:
    if isinstance(parameter, IntParameter | FloatParameter):
        span = {"min": parameter.min, "max": parameter.max, "sampling": parameter.sampling}
        return {"name": parameter.name, "kind": parameter.kind, **span}
    return {"name": parameter.name, "kind": parameter.kind, "values": list(parameter.grid())}


def _value_column(parameter: Parameter, rows: Sequence[dict[str, Value]]) -> Column:
    column = [row.get(parameter.name) for row in rows]
    if isinstance(parameter, FloatParameter):
        return _float_column(value if isinstance(value, int | float) else None for value in column)
    if isinstance(parameter, IntParameter):
        return column
    choices = list(parameter.grid())
    return [choices.index(value) if value in choices else None for value in column]


def _execution_columns(
    trials: Sequence[int],
    executions: Any,
    running: Mapping[running_executions.Key, running_executions.RunningExecution],
) -> dict[str, Any]:
    """Return completed executions, epochs and mean metrics per trial.

    `nonfinite` is there if an execution has a metric that was not finite, which is left out of the mean.
    """
    index_of = {pk: index for index, pk in enumerate(trials)}
    completed, epochs = [0] * len(trials), [0] * len(trials)
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(trials))
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * len(trials))
    is_finite = True
    rows = list(executions.values_list("trial_id", "state", "epochs", as_text("metrics")))
    for (trial, state, trained, _), metrics in zip(
        rows, _parse_documents([row[3] for row in rows]), strict=True
    ):
        index = index_of.get(trial)
        if index is None:
            continue  # created after the trials were read
        completed[index] += state == TrialState.COMPLETED
        epochs[index] += trained
        for name, value in metrics.items():
            if isinstance(value, int | float) and math.isfinite(value):
                sums[name][index] += value
                counts[name][index] += 1
            else:
                is_finite = False
    # The row of a running execution is updated only at its end; its newer epochs come from its metrics.
    for (trial, _), running_execution in running.items():
        if (index := index_of.get(trial)) is not None:
            epochs[index] += running_execution.epochs - running_execution.stored_epochs
    means = {
        name: _float_column(
            total / count if count else None for total, count in zip(sums[name], counts[name], strict=True)
        )
        for name in sorted(sums)
    }
    columns: dict[str, Any] = {"executions": completed, "epochs": epochs, "metrics": means}
    return columns if is_finite else columns | {"nonfinite": True}
