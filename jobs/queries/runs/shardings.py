"""Reads how a job's model was divided over its mesh, as its training has reported it, and how fast it was."""

from statistics import median

from pydantic import ValidationError

from jobs.answers.runs.shardings import DeviceBytesOut, LiveVariableOut, ShardingsOut
from jobs.errors import NotFound
from jobs.messages.reports.shardings import LiveVariable, Shardings
from jobs.models import Job, JobArtifact, MetricSeries
from jobs.queries.runs.metrics import chunks_of
from jobs.queries.runs.model_reports import read_content

ROLE = "shardings"
SPEEDS = ("system/steps_per_second", "system/rows_per_second")
"""Metrics of each epoch on a mesh."""


def shardings_of(job: Job) -> ShardingsOut | None:
    """Return the shardings of a job's live arrays beside the designed ones; None before there are some.

    Args:
        job: a training or a search; of a search with later steps, its own trial is preferred.
    """
    row = _newest(job)
    shardings = None if row is None else _read(row)
    if row is None or shardings is None:
        return None
    steps, rows = (_median_speed(row, name) for name in SPEEDS)
    return ShardingsOut(
        job=row.job_id,
        trial=row.trial.number if row.trial is not None else None,
        attempt=row.attempt,
        shape=list(shardings.shape),
        axis_names=list(shardings.axis_names),
        batch_axis=shardings.batch_axis,
        batch_size=shardings.batch_size,
        devices=[
            DeviceBytesOut(name=name, bytes=size)
            for name, size in zip(shardings.devices, shardings.bytes_per_device, strict=False)
        ],
        variables=[_variable_out(variable) for variable in shardings.variables],
        left_out=shardings.left_out,
        differences=sum(not variable.is_as_designed for variable in shardings.variables),
        unmatched=list(shardings.unmatched),
        steps_per_second=steps,
        rows_per_second=rows,
    )


def _newest(job: Job) -> JobArtifact | None:
    """Return the newest report of the job, or of one of its children if it has none."""
    reports = JobArtifact.objects.filter(role=ROLE).select_related("trial")
    own = reports.filter(job=job).order_by("-attempt", "-pk").first()
    return own or reports.filter(job__in=job.children.all()).order_by("-job", "-attempt", "-pk").first()


def _read(row: JobArtifact) -> Shardings | None:
    """Return the report; None if its file is missing or no such report, since code of users may have run."""
    try:
        return Shardings.model_validate_json(read_content(row.artifact_id))
    except (NotFound, OSError, ValidationError):
        return None


def _median_speed(row: JobArtifact, name: str) -> float | None:
    """Return the median of a speed over the epochs of the attempt that wrote the report."""
    series = MetricSeries.objects.filter(job=row.job_id, trial=row.trial, attempt=row.attempt, name=name)
    parts = chunks_of(list(series.values_list("pk", flat=True))).values()
    values = [float(value) for chunks in parts for chunk in chunks for value in chunk[1]]
    return median(values) if values else None


def _variable_out(variable: LiveVariable) -> LiveVariableOut:
    return LiveVariableOut(
        path=variable.path,
        shape=list(variable.shape),
        dtype=variable.dtype,
        rule=variable.rule,
        designed=list(variable.designed),
        live=list(variable.live),
        as_designed=variable.is_as_designed,
        shard_shape=list(variable.shard_shape),
        shard_bytes=variable.shard_bytes,
        devices=variable.devices,
    )
