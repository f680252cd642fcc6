"""Exports a search's trials and metric series as CSV, in blocks that fit into memory."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import batched, groupby
from typing import Any

import numpy as np
from django.db.models import Prefetch

from jobs.models import Execution, Job, MetricSeries
from jobs.queries.runs.metrics import chunks_of, newest_at_each_x
from jobs.queries.search import outcomes

Cell = str | int | float | None

BLOCK_SIZE = 200
"""How many rows, trials or series are in memory at the same time."""

FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets evaluate a cell that starts with one of these as a formula."""


def csv_cell(value: Any) -> Cell:
    """Return a value for a spreadsheet. A text that it would evaluate as a formula is quoted.

    >>> csv_cell("=1+1"), csv_cell(-1.5), csv_cell(True)
    ("'=1+1", -1.5, 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, int | float):
        return value
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) else text


def csv_blocks(rows: Iterable[Iterable[Any]]) -> Iterator[bytes]:
    """Yield rows as CSV, in blocks as large as `BLOCK_SIZE`."""
    for block in batched(rows, BLOCK_SIZE):
        text = io.StringIO()
        csv.writer(text).writerows([[csv_cell(value) for value in row] for row in block])
        yield text.getvalue().encode()


def trial_rows(search: Job, numbers: Sequence[int] = ()) -> Iterator[list[Any]]:
    """Yield a header, then one row per trial and execution.

    Args:
        search: the job.
        numbers: trial numbers; all if empty.

    Raises:
        Conflict: the job is not a search.
    """
    names = [parameter.name for parameter in outcomes.widest_space(search)]
    rows = search.trials.order_by("number")
    if numbers:
        rows = rows.filter(number__in=numbers)
    # The header names the metrics of all executions, so they are read before the first row.
    stored = Execution.objects.filter(trial__in=rows).values_list("metrics", flat=True)
    metrics = sorted(
        {name for execution_metrics in stored.iterator(chunk_size=2000) for name in execution_metrics}
    )
    yield [
        *("trial", "state", "source", "score", "std", "started", "finished", "restarts", *names),
        *("execution", "execution_state", "execution_score", "best_epoch", "epochs", "seed", *metrics),
    ]
    executions = Prefetch("executions", Execution.objects.order_by("number"))
    for trial in rows.prefetch_related(executions).iterator(chunk_size=BLOCK_SIZE):
        times = [time and time.isoformat() for time in (trial.started, trial.finished)]
        cells = [trial.number, trial.state, trial.source, trial.score, trial.std, *times, trial.restarts]
        cells += [trial.values.get(name) for name in names]
        for run in trial.executions.all():
            facts = [run.number, run.shown_state, run.score, run.best_epoch, run.epochs, run.seed]
            yield [*cells, *facts, *(run.metrics.get(name) for name in metrics)]


def metric_rows(job: Job, names: Sequence[str] = (), numbers: Sequence[int] = ()) -> Iterator[list[Any]]:
    """Yield a header, then one row per unreduced metric point for a job and its children.

    Args:
        job: the job.
        names: metric names; all if empty.
        numbers: trial numbers; all series if empty.
    """
    yield ["job", "trial", "execution", "metric", "x_is", "x", "value", "time"]
    rows = MetricSeries.objects.filter(job__in=[job.pk, *job.descendants.values_list("pk", flat=True)])
    if names:
        rows = rows.filter(name__in=names)
    if numbers:
        rows = rows.filter(trial__number__in=numbers)
    order = ("job_id", "trial__number", "execution", "name", "x")
    # Each attempt has series of its own; those that differ only in the attempt are one series of the export.
    keyed = rows.order_by(*order, "attempt").values_list("pk", *order)
    series_by_key = groupby(keyed.iterator(chunk_size=2000), key=lambda row: row[1:])
    for block in batched(((key, [row[0] for row in group]) for key, group in series_by_key), BLOCK_SIZE):
        chunks = chunks_of([pk for _, series in block for pk in series])
        for (owner, trial, execution, name, x), series in block:
            parts = [part for pk in series for part in chunks[pk]]
            joined = np.concatenate(parts, axis=1) if parts else np.empty((3, 0))
            for at, value, time in newest_at_each_x(joined).T:
                point = [float(number) if np.isfinite(number) else None for number in (at, value, time)]
                yield [owner, trial, execution or None, name, x, *point]
