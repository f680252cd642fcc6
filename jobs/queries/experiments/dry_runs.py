"""Reads dry runs, which compare a precision with float32, and the gains that they measured."""

from collections.abc import Sequence
from typing import NamedTuple

from jobs.answers.experiments.precision import DryRunOut
from jobs.kinds.dry_run.payload import DryRunPayload, DryRunResult
from jobs.kinds.dry_run.rows import all_dry_runs, dry_runs_of
from jobs.messages.reports.precision_comparison import PrecisionComparison, PrecisionRun
from jobs.models import DatasetVersion, Job, Project
from jobs.models.job import JobQuerySet
from jobs.queries.data.causes import cause_of
from jobs.queries.requested_jobs import NOT_REQUESTED, answering_job, key_of
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.after import AfterSpec
from jobs.spec.sections.precision import Policy
from jobs.states import WAITING, JobState

NEWEST = 50
"""How many dry runs of a project are looked at for measured gains."""
SAME = 0.05
"""Speeds and sizes that differ by less than this share count as equal."""


class DryRunRequest(NamedTuple):
    """An experiment whose precision is compared with float32, and its project."""

    project: Project
    payload: DryRunPayload

    @property
    def title(self) -> str:
        """Return the job's title."""
        return f"Dry run in {self.payload.spec.precision.policy}"

    @property
    def jobs(self) -> JobQuerySet:
        """Return the project's dry runs of the same, newest first."""
        return Job.objects.filter(dry_runs_of(self.payload.key), project=self.project).order_by("-pk")


class DryRun(NamedTuple):
    """A dry run for its job's page.

    Attributes:
        policy: the compared policy.
        result: None before the job is completed.
        finding: the comparison in a sentence; empty before.
        losses: the mean losses of each group of steps: the last step's number, float32, the policy.
    """

    policy: Policy
    result: PrecisionComparison | None
    finding: str
    losses: list[tuple[int, float | None, float | None]]


def dry_run_request(
    project: Project, spec: ExperimentSpec, version: DatasetVersion, steps: int
) -> DryRunRequest:
    """Return the dry run of an experiment's first steps, on one device and with default hyperparameters."""
    # The data may have a newer version later.
    data = spec.required_data.model_copy(update={"dataset_version": version.number})
    fit = spec.fit.model_copy(update={"early_stopping": None})
    changes = {"data": data, "fit": fit, "search": None, "mesh": None, "after": AfterSpec()}
    body = spec.model_copy(update=changes).to_json()
    key = key_of([body, version.pk, steps])
    payload = DryRunPayload(dataset_version=version.pk, spec_json=body, steps=steps, key=key)
    return DryRunRequest(project, payload)


def dry_run_out(request: DryRunRequest) -> DryRunOut:
    """Return a dry run's API representation: a completed one, else an open one, else the last."""
    policy, job = request.payload.spec.precision.policy, answering_job(request)
    if job is None:
        return DryRunOut(
            state=NOT_REQUESTED, job=None, policy=policy, result=None, finding="", error=None, why_waiting=""
        )
    result = _result_of(job)
    return DryRunOut(
        state=job.state,
        job=job.pk,
        policy=policy,
        result=result,
        finding="" if result is None else finding_of(result),
        error=cause_of(job.error),
        why_waiting=job.why_waiting if job.state in WAITING else "",
    )


def dry_run_of_job(job: Job) -> DryRun:
    """Return the dry run that a job does."""
    policy, result = job.payload_as(DryRunPayload).spec.precision.policy, _result_of(job)
    if result is None:
        return DryRun(policy, None, "", [])
    size = result.steps_per_loss
    pairs = _paired(result.baseline.losses, result.compared.losses)
    losses = [(size * number, first, second) for number, (first, second) in enumerate(pairs, start=1)]
    return DryRun(policy, result, finding_of(result), losses)


def _paired(
    first: Sequence[float | None], second: Sequence[float | None]
) -> list[tuple[float | None, float | None]]:
    count = max(len(first), len(second))
    return [
        (first[i] if i < len(first) else None, second[i] if i < len(second) else None) for i in range(count)
    ]


def _result_of(job: Job) -> PrecisionComparison | None:
    if job.state != JobState.COMPLETED:
        return None
    return DryRunResult.model_validate(job.results_json).comparison


def finding_of(result: PrecisionComparison) -> str:
    """Return a dry run's comparison in a sentence."""
    before, after = result.baseline, result.compared
    where = "on this CPU" if result.platform == "cpu" else f"on {result.hardware.split(',')[0]}"
    if not after.is_finite:
        return f"{after.policy} does not train here: its loss became NaN or infinite ({where})."
    steps = result.steps_per_loss * min(len(before.losses), len(after.losses))
    losses = f"after {steps} steps its loss is {_figure(after.losses)}, in float32 {_figure(before.losses)}"
    ratio = after.variable_bytes / max(before.variable_bytes, 1)
    amount = "as much memory" if abs(ratio - 1) < SAME else f"{ratio:.2f}× the memory"
    memory = f"its variables take {amount}"
    skipped = f"; {after.skipped_steps} steps were skipped" if after.skipped_steps else ""
    return f"{after.policy} {_speed(before, after)} {where}; {losses}; {memory}{skipped}."


def _speed(before: PrecisionRun, after: PrecisionRun) -> str:
    ratio = speed_ratio(before, after)
    if ratio is None:
        return "was too slow to be timed"
    if abs(ratio - 1) < SAME:
        return "is as fast as float32"
    return f"is {ratio:.1f}× faster" if ratio > 1 else f"is {1 / ratio:.1f}× slower"


def speed_ratio(before: PrecisionRun, after: PrecisionRun) -> float | None:
    """Return how much faster the second run was; None if one was not timed."""
    if not before.seconds_per_step or not after.seconds_per_step:
        return None
    return before.seconds_per_step / after.seconds_per_step


def _figure(losses: Sequence[float | None]) -> str:
    last = losses[-1] if losses else None
    return "unknown" if last is None else f"{last:.4g}"


def measured_gains(project: Project) -> dict[Policy, str]:
    """Return the finding of the newest dry run of each policy in a project."""
    rows = Job.objects.filter(all_dry_runs(), project=project, state=JobState.COMPLETED).order_by("-pk")
    gains: dict[Policy, str] = {}
    for job in rows[:NEWEST]:
        run = dry_run_of_job(job)
        if run.finding:
            gains.setdefault(run.policy, run.finding)
    return gains
