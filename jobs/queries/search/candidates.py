"""Reads the models that a root job's steps made, with what decides between them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jobs.kinds.base import value_of
from jobs.messages.reports.base import MetricValue
from jobs.messages.reports.quantization import CallTime
from jobs.models import Job, JobArtifact
from jobs.queries.runs import model_reports
from jobs.queries.search import outcomes
from jobs.spec.sections.search import Objective


class Latency(NamedTuple):
    """The time of one call, as the quantization step measured it.

    Attributes:
        rows: the batch size.
        hardware: the machine on which it was measured.
    """

    call: CallTime
    rows: int
    hardware: str


class Candidate(NamedTuple):
    """A model that was evaluated on test data.

    Attributes:
        validation: the objective on validation rows; None if it is unknown.
        test: the metrics on test rows by name, that of the objective first, with intervals where the report
            has them.
        rows: the number of test rows.
        digest: that of the model's file; empty if it made none.
        bytes: the size of the file.
        latency: None if no step measured it.
    """

    job: Job
    validation: MetricValue | None
    test: dict[str, MetricValue]
    rows: int
    digest: str
    bytes: int | None
    latency: Latency | None

    @property
    def label(self) -> str:
        """Return the name for the job that made it."""
        return self.job.label


def candidates_of(root: Job, members: Sequence[Job]) -> list[Candidate]:
    """Return the evaluated models of a root job, the best objective on validation rows first.

    Those without one are last. Test data does not decide the order.

    Args:
        root: the job whose objective decides.
        members: the jobs that may have made a candidate, in step order.
    """
    measured = [job for job in members if job.results.metrics.get("test")]
    if not measured:
        return []
    objective = outcomes.objective_of(root)
    intervals, files, times = _test_metrics(root), _model_files(measured), _latencies(measured)
    found = [
        Candidate(
            job=job,
            validation=_validation_of(job, objective),
            test=_objective_first(_test_of(job, intervals.get(job.pk, {})), objective),
            rows=job.results.test_rows or 0,
            digest=files[job.pk].artifact_id if job.pk in files else "",
            bytes=files[job.pk].artifact.bytes if job.pk in files else None,
            latency=times.get(job.pk),
        )
        for job in measured
    ]
    return sorted(found, key=lambda one: _cost(one, objective))


def _cost(candidate: Candidate, objective: Objective) -> float:
    known = candidate.validation.value if candidate.validation is not None else None
    return float("inf") if known is None else objective.cost(known)


def _validation_of(job: Job, objective: Objective) -> MetricValue | None:
    measured = job.results.measured_on("validation")
    if measured is not None and measured.metric == objective.metric:
        return MetricValue(**measured.model_dump(exclude={"metric"}))
    value = outcomes.validation_score(job, objective)
    return MetricValue(value=value, rows=0) if value is not None else None


def _test_metrics(root: Job) -> dict[int, Mapping[str, MetricValue]]:
    """Return the metrics in the evaluations of a root job and its steps, by job."""
    reports = {
        stored.job.pk: model_reports.read_report(stored)
        for stored in model_reports.reports_of_job(root, ("evaluation",))
    }
    return {pk: getattr(report, "metrics", {}) for pk, report in reports.items()}


def _test_of(job: Job, reported: Mapping[str, MetricValue]) -> dict[str, MetricValue]:
    """Return a job's test metrics, with the interval of its report where it is about the same value."""
    values = {name: value_of(m) for name, m in job.results.metrics["test"].items()}
    return {
        name: reported[name]
        if name in reported and reported[name].value == value
        else MetricValue(value=value, rows=job.results.test_rows or 0)
        for name, value in values.items()
    }


def _objective_first(test: dict[str, MetricValue], objective: Objective) -> dict[str, MetricValue]:
    deciding = objective.metric.removeprefix("val_")
    return {name: test[name] for name in sorted(test, key=lambda name: name != deciding)}


def _model_files(jobs: Sequence[Job]) -> dict[int, JobArtifact]:
    """Return the newest model file of each job."""
    rows = JobArtifact.objects.filter(job__in=[job.pk for job in jobs], role="model")
    return {row.job_id: row for row in rows.select_related("artifact").order_by("attempt", "pk")}


def _latencies(jobs: Sequence[Job]) -> dict[int, Latency]:
    """Return what quantizations measured of their own models and of those that they made smaller."""
    times = {}
    for job in jobs:
        measured = job.results.call_times()
        for which, calls in measured.by_model.items():
            larger = job.payload.larger_model()
            of = job.pk if which == "quantized" or larger is None else larger.job
            rows = min((int(size) for size in calls), default=None)
            if rows is not None:
                times[of] = Latency(calls[str(rows)], rows, measured.hardware)
    return times
