"""A search's trials and curves as tables for a spreadsheet, read piece by piece."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import batched, groupby
from typing import Any

import numpy as np
from django.db.models import Prefetch

from jobs.models import Execution, Job, MetricSeries
from jobs.queries import outcomes
from jobs.queries.metrics import chunks_of, newest_at_each_x

Cell = str | int | float | None
AT_ONCE = 200
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cell(value: Any) -> Cell:
    """Return a value for a spreadsheet: a text that it would compute is shown as text.

    >>> cell("=1+1"), cell(-1.5), cell(True)
    ("'=1+1", -1.5, 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, int | float):
        return value
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def lines(rows: Iterable[Iterable[Any]]) -> Iterator[bytes]:
    """Yield rows as CSV, some hundred at a time."""
    for some in batched(rows, AT_ONCE):
        text = io.StringIO()
        csv.writer(text).writerows([[cell(value) for value in row] for row in some])
        yield text.getvalue().encode()


def trials(search: Job, numbers: Sequence[int] = ()) -> Iterator[list[Any]]:
    """Yield a header, then a row an execution of each trial; of all trials where no numbers are given.

    Raises:
        Conflict: the job is no search.
    """
    names = [parameter.name for parameter in outcomes.widest_space(search)]
    rows = search.trials.order_by("number")
    if numbers:
        rows = rows.filter(number__in=numbers)
    # The metrics of all of them make the header, so they are looked at before the first row.
    found = Execution.objects.filter(trial__in=rows).values_list("metrics", flat=True)
    metrics = sorted({name for kept in found.iterator(chunk_size=2000) for name in kept})
    yield [
        *("trial", "state", "source", "score", "std", "started", "finished", "restarts", *names),
        *("execution", "execution_state", "execution_score", "best_epoch", "epochs", "seed", *metrics),
    ]
    executions = Prefetch("executions", Execution.objects.order_by("number"))
    for trial in rows.prefetch_related(executions).iterator(chunk_size=AT_ONCE):
        when = [moment and moment.isoformat() for moment in (trial.started, trial.finished)]
        own = [trial.number, trial.state, trial.source, trial.score, trial.std, *when, trial.restarts]
        own += [trial.values.get(name) for name in names]
        for run in trial.executions.all():
            facts = [run.number, run.state, run.score, run.best_epoch, run.epochs, run.seed]
            yield [*own, *facts, *(run.metrics.get(name) for name in metrics)]


def metrics(job: Job, names: Sequence[str] = (), numbers: Sequence[int] = ()) -> Iterator[list[Any]]:
    """Yield a header, then a row a point of each curve of a job and its children; nothing is bucketed."""
    yield ["job", "trial", "execution", "metric", "x_is", "x", "value", "time"]
    rows = MetricSeries.objects.filter(job__in=[job.pk, *job.family.values_list("pk", flat=True)])
    if names:
        rows = rows.filter(name__in=names)
    if numbers:
        rows = rows.filter(trial__number__in=numbers)
    order = ("job_id", "trial__number", "execution", "name", "x")
    keyed = rows.order_by(*order, "attempt").values_list("pk", *order)
    curves = groupby(keyed.iterator(chunk_size=2000), key=lambda row: row[1:])
    for some in batched(((key, [row[0] for row in group]) for key, group in curves), AT_ONCE):
        chunks = chunks_of([pk for _, series in some for pk in series])
        for (owner, trial, execution, name, x), series in some:
            parts = [part for pk in series for part in chunks[pk]]
            joined = np.concatenate(parts, axis=1) if parts else np.empty((3, 0))
            for at, value, time in newest_at_each_x(joined).T:
                yield [owner, trial, execution or None, name, x, *_finite(at, value, time)]


def _finite(*values: float) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]
