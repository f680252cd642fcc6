"""The jobs that a spec's `after` asks for: retraining, ensemble, quantization, registration.

Each function makes its step's jobs once, or returns those it made before.
"""

from collections.abc import Iterable
from typing import Any

from jobs import clock
from jobs.actions import registration
from jobs.contracts.chosen_trials import ChosenTrial
from jobs.contracts.experiment import ExperimentSpec
from jobs.models import Job
from jobs.queries import outcomes
from jobs.queries.steps import has_after
from jobs.states import JobKind


def _child(
    root: Job, kind: JobKind, ordinal: int, *, title: str, payload: dict[str, Any], slots: int = 1
) -> Job:
    child, _ = Job.objects.get_or_create(
        parent=root,
        kind=kind,
        ordinal=ordinal,
        defaults={
            "root": root,
            "project": root.project,
            "experiment": root.experiment,
            "revision": root.revision,
            "title": title,
            "payload": {"dataset_version": root.payload.get("dataset_version")} | payload,
            "pool": root.pool,
            "priority": root.priority,
            "slots": slots,
            "max_restarts": root.max_restarts,
            "queued": clock.now(),
            "created_by": root.created_by,
        },
    )
    return child


def train(root: Job, spec: ExperimentSpec) -> list[Job]:
    """Retrain the best trials, or those that somebody chose."""
    if root.kind == JobKind.TRAIN or not has_after(spec):
        return []
    existing = list(root.children.filter(kind=JobKind.TRAIN).order_by("ordinal"))
    if existing:
        return existing
    pooled = outcomes.pooled_of(root)
    members = pooled.chosen if pooled is not None else _best(root, spec)
    return [
        _child(
            root,
            JobKind.TRAIN,
            rank,
            title=f"Retrain trial {member.trial}",
            payload=member.model_dump(),
            slots=root.slots,
        )
        for rank, member in enumerate(members, start=1)
    ]


def _best(root: Job, spec: ExperimentSpec) -> Iterable[ChosenTrial]:
    top = spec.after.retrain.top if spec.after.retrain else 1
    best = outcomes.best_trials(root, limit=top)
    return (ChosenTrial(trial=trial.number, values=trial.values) for trial in best)


def ensemble(root: Job, spec: ExperimentSpec) -> list[Job]:
    """Weigh the retrained models against each other."""
    if spec.after.ensemble is None:
        return []
    members = list(root.children.filter(kind=JobKind.TRAIN).order_by("ordinal").values_list("pk", flat=True))
    return [_child(root, JobKind.ENSEMBLE, 1, title="Ensemble", payload={"members": members})]


def quantize(root: Job, spec: ExperimentSpec) -> list[Job]:
    """Make the final candidate smaller."""
    if spec.after.quantize is None:
        return []
    source = outcomes.final_candidate(root)
    title = f"Quantize to {spec.after.quantize.mode}"
    return [_child(root, JobKind.QUANTIZE, 1, title=title, payload={"source": source.pk})]


def register(root: Job, spec: ExperimentSpec) -> list[Job]:
    """Make versions of what came out, and jobs that validate them."""
    if spec.after.register_ is None:
        return []
    existing = list(root.children.filter(kind=JobKind.REGISTER).order_by("ordinal"))
    if len(existing) == len(spec.after.register_.what):
        return existing
    versions = registration.register_outputs(root)
    return [
        _child(
            root,
            JobKind.REGISTER,
            ordinal,
            title=f"Register {version.model.name} v{version.number}",
            payload={"version": version.pk},
        )
        for ordinal, version in enumerate(versions, start=1)
    ]
