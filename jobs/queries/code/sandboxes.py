"""Decides which workers offer the sandbox that a job with user code needs."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTransform
from pydantic import TypeAdapter

from jobs import access
from jobs.answers.code.sandbox import SandboxOut
from jobs.kinds.base import Payload
from jobs.messages.sandbox import (
    LEVELS,
    Level,
    LevelState,
    RecordedLevel,
    choose_level,
    present_level,
)
from jobs.models import Experiment, Job, User, Worker
from jobs.queries.code import installation
from jobs.spec.sections.model import Model
from jobs.spec.sections.model_base import ModelBase

_MODEL: TypeAdapter[ModelBase] = TypeAdapter(Model)
_WITHOUT_CODE = ("template", "hypermodel")
"""Model kinds that never need code: nearly all, so nothing else is read for them."""
_WITH_CODE = ("code", "script")
_MAX_REASONS = 300
"""How many characters one worker's reasons may have."""

type Minimum = Callable[[], Level]
"""Returns the installation's minimum. It is only called for jobs with user code."""


def jobs_with_models(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Return the jobs with their specs' models, so that `needs_sandbox` reads no whole spec."""
    return jobs.annotate(model_json=KeyTransform("model", "revision__spec_json"))


def needs_sandbox(job: Job) -> bool:
    """Return whether a job runs user code.

    Raises:
        ValueError: its spec no longer parses.
    """
    # A dry build has no spec. Few kinds have code in their payload, so others' payloads are not parsed.
    if job.facts.payload.code_digest is not Payload.code_digest:
        if job.payload.code_digest() is not None:
            return True
        if job.facts.payload.names_all_code:
            return False
    if "model_json" in vars(job):
        model = vars(job)["model_json"]
    else:
        model = job.revision.spec_json.get("model") if job.revision is not None else None
    if model is None or model.get("kind", _WITHOUT_CODE[0]) in _WITHOUT_CODE:
        return False
    return _MODEL.validate_python(model).code_digest is not None


def may_run(user: User, job: Job) -> bool:
    """Return whether a user may run a job again, or resume it."""
    if not access.can(user, job.project, access.Action.WRITE):
        return False
    return not needs_sandbox(job) or access.can(user, job.project, access.Action.RUN_CODE)


def may_run_spec(user: User, experiment: Experiment) -> bool:
    """Return whether a user may submit an experiment: its draft, else its newest revision."""
    spec = experiment.draft
    if spec is None:
        spec = experiment.revisions.order_by("-number").values_list("spec_json", flat=True).first()
    model = spec.get("model") if isinstance(spec, dict) else None
    # A draft may have anything in its place.
    has_code = isinstance(model, dict) and model.get("kind") in _WITH_CODE
    return access.can(user, experiment.project, access.Action.RUN_CODE if has_code else access.Action.WRITE)


def levels_of(worker: Worker) -> list[LevelState]:
    """Return a worker's levels, the strongest first. Empty until it has probed them."""
    return [LevelState.model_validate(state) for state in worker.info.get("sandbox", ())]


def workers_offering[W: Worker](
    job: Job, workers: Sequence[W], minimum: Minimum = installation.sandbox_minimum
) -> Sequence[W]:
    """Return the workers with a sandbox strong enough for a job. Without code, all are."""
    if not workers or not needs_sandbox(job):
        return workers
    weakest = minimum()
    return [worker for worker in workers if choose_level(levels_of(worker), weakest) is not None]


def why_none_offers(workers: Iterable[Worker]) -> str:
    """Return a sentence that states why none of these workers may run user code."""
    weakest = installation.sandbox_minimum()
    reasons = "; ".join(f"worker {worker.name}: {_describe_refusal(worker, weakest)}" for worker in workers)
    return (
        f"It runs code of users, which needs the sandbox {weakest} or a stronger one. {reasons}"[:499] + "."
    )


def _describe_refusal(worker: Worker, weakest: Level) -> str:
    states = levels_of(worker)
    if not states:
        return "it is still finding out which sandboxes it offers"
    missing = (f"no {state.level} ({state.reason})" for state in states if state.reaches(weakest))
    return ", ".join(missing)[:_MAX_REASONS]


class Shown(NamedTuple):
    """The sandbox that a job had, for people."""

    level: RecordedLevel
    summary: str
    network: bool


def sandbox_of_job(job: Job) -> Shown | None:
    """Return the weakest sandbox in which a job's code ran. None without one yet, or without code."""
    if job.sandbox_json is None:
        return None
    sandbox = SandboxOut.model_validate(job.sandbox_json)
    return Shown(sandbox.level, LEVELS[present_level(sandbox.level)].summary, sandbox.network)


class Offer(NamedTuple):
    """A worker and the strongest level that it offers; None if it offers none, or has not found out yet."""

    worker: Worker
    level: Level | None
    states: list[LevelState]


def sandbox_offers() -> list[Offer]:
    """Return the sandboxes that live workers offer."""
    workers = Worker.objects.live().order_by("name", "pk")
    levels = ((worker, levels_of(worker)) for worker in workers)
    return [Offer(worker, choose_level(states, Level.PROCESS), states) for worker, states in levels]
