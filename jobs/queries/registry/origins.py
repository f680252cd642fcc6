"""Reads the sources of a quantized, cast or pooled version."""

from collections.abc import Sequence
from typing import NamedTuple

from jobs.kinds.base import LargerModel
from jobs.models import Job, ModelVersion, User
from jobs.queries.registry import versions
from jobs.spec.exports import QUANTIZATIONS


class Origin(NamedTuple):
    """A model from which a version was made.

    Attributes:
        kind: how it was used: `quantized from`, `cast from` or `pooled from`.
        job: the one that made the model.
        version: the registered version of the model that the user may see; None if there is none.
        detail: the format, or the weight of the model.
    """

    kind: str
    job: Job
    version: ModelVersion | None
    detail: str

    @property
    def title(self) -> str:
        """Return the model's name for people."""
        return str(self.version or self.job.title)


def origins_of(version: ModelVersion, user: User) -> list[Origin]:
    """Return the models from which a version was made; none for one that was trained or uploaded."""
    job = version.source_job
    if job is None:
        return []
    if (larger := job.payload.larger_model()) is not None:
        return _made_smaller_from(version, larger, user)
    return _pooled_from(version, job, user) if job.facts.pools else []


def _made_smaller_from(version: ModelVersion, larger: LargerModel, user: User) -> list[Origin]:
    source = Job.objects.filter(pk=larger.job).first()
    if source is None:
        return []
    if larger.artifact:
        registered = versions.versions_by_artifact(user, [larger.artifact]).get(larger.artifact, [])
    else:
        registered = versions.versions_by_job(user, [source.pk]).get(source.pk, [])
    job = version.source_job
    spec = job.revision.spec if job is not None and job.revision is not None else None
    step = spec.after.quantize if spec is not None else None
    mode = larger.mode or (step.mode if step is not None else "")
    entry = QUANTIZATIONS.get(mode)
    kind = "cast from" if entry is not None and entry.verb == "Cast" else "quantized from"
    label = f"to {entry.label}, " if entry is not None else ""
    return [Origin(kind, source, _nearest(version, registered), f"{label}job {source.pk}")]


def _pooled_from(version: ModelVersion, job: Job, user: User) -> list[Origin]:
    weights, names = job.results.member_weights(), job.payload.member_names()
    trainings = Job.objects.filter(pk__in=names)
    registered = versions.versions_by_job(user, [*names])
    members = [
        Origin(
            "pooled from",
            training,
            _nearest(version, registered.get(training.pk, [])),
            f"{_weight_text(weights.get(names[training.pk]))}job {training.pk}",
        )
        for training in trainings
    ]
    return sorted(members, key=lambda member: (-weights.get(names[member.job.pk], 0.0), member.job.pk))


def _weight_text(weight: float | None) -> str:
    if weight is None:
        return ""
    return f"weight {weight:.3g}, " if weight else "weight 0: left out, "


def _nearest(version: ModelVersion, registered: Sequence[ModelVersion]) -> ModelVersion | None:
    """Return the version to name: one of the same model, if there is one."""
    others = [each for each in registered if each.pk != version.pk]
    return next((each for each in others if each.model_id == version.model_id), next(iter(others), None))
