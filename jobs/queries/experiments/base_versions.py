"""Finds the version that a spec trains further, and describes it for the checks and the plan."""

from django.db.models import QuerySet
from pydantic import ValidationError

from jobs import access
from jobs.messages.reports.model_summary import ModelSummary
from jobs.models import ModelVersion, Project, User
from jobs.queries.experiments.base_layers import layers_of
from jobs.queries.registry import versions
from jobs.queries.runs import model_reports
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.base_version import BaseVersion
from jobs.spec.problems import Problem
from jobs.spec.sections.version_model import VersionModel
from jobs.spec.signature import Signature


def find_base_version(
    project: Project, spec: ExperimentSpec, by: User | None
) -> tuple[ModelVersion | None, list[Problem]]:
    """Return the version from which a spec starts, or problems. Other models have neither.

    Args:
        project: the experiment's project.
        spec: the experiment.
        by: the acting user, who has to see the version; without one, it is a version in the project.
    """
    model = spec.model
    if not isinstance(model, VersionModel):
        return None, []
    rows = access.visible_versions(by) if by is not None else _versions_of_project(project)
    named = rows.filter(model__name=model.model).select_related("model", "source_job__revision")
    if not named.exists():
        return None, [Problem("/model/model", f"there is no registered model {model.model!r} with a version")]
    if model.alias is not None:
        version = named.filter(aliases__name=model.alias).first()
        pointer, description = "/model/alias", f"alias {model.alias!r}"
    else:
        version = named.filter(number=model.number or 0).first()
        pointer, description = "/model/number", f"version {model.number}"
    if version is None:
        numbers = ", ".join(map(str, named.order_by("-number").values_list("number", flat=True)[:10]))
        return None, [Problem(pointer, f"{model.model} has no {description}; its versions are {numbers}")]
    if version.state != ModelVersion.State.CANDIDATE:
        reason = (
            "is still being validated" if version.state == ModelVersion.State.VALIDATING else "is invalid"
        )
        return None, [Problem(pointer, f"{version} {reason}, so it cannot be trained further")]
    if version.needs_code:
        message = f"{version} needs code of its own to be loaded, and such versions cannot be trained further"
        return None, [Problem(pointer, message)]
    if model.digest not in (None, version.artifact_id):
        return None, [
            Problem("/model/digest", f"{version} has the digest {version.artifact_id}; leave the digest out")
        ]
    return version, []


def _versions_of_project(project: Project) -> QuerySet[ModelVersion]:
    return ModelVersion.objects.filter(model__project=project, model__deletion=None)


def pin_version(spec: ExperimentSpec, version: ModelVersion) -> ExperimentSpec:
    """Return a spec that pins its version by number and digest."""
    if not isinstance(spec.model, VersionModel):
        return spec
    return spec.model_copy(update={"model": spec.model.pinned(version.number, version.artifact_id)})


def describe_base(version: ModelVersion) -> BaseVersion:
    """Return a version's properties without opening its file."""
    try:
        signature = Signature.model_validate(version.signature)
    except ValidationError:
        signature = None
    summary = model_summary(version)
    layers, models, features = layers_of(summary) if summary is not None else ((), (), None)
    return BaseVersion(
        name=f"{version.model.name}/{version.number}",
        signature=signature,
        class_labels=tuple(map(str, version.class_labels)),
        task=versions.task_of(version),
        layers=layers,
        models=models,
        features=features,
    )


def model_summary(version: ModelVersion) -> ModelSummary | None:
    """Return a version's report about its layers. None without a readable one."""
    for stored in model_reports.reports_of_version(version, ["summary"]):
        if isinstance(report := model_reports.read_report(stored), ModelSummary):
            return report
    return None


def pinned_version(spec: ExperimentSpec) -> ModelVersion | None:
    """Return the version that a pinned spec starts from. None for other models, or if it was purged."""
    model = spec.model
    if not isinstance(model, VersionModel) or model.digest is None:
        return None
    rows = ModelVersion.everything.filter(
        model__name=model.model, number=model.number or 0, artifact=model.digest
    )
    return rows.select_related("model__project").first()


def versions_trained_from(version: ModelVersion, by: User) -> QuerySet[ModelVersion]:
    """Return the visible versions that were trained further from a version, the newest first."""
    rows = access.visible_versions(by).filter(
        lineage__fine_tuned_from__model=version.model.name, lineage__fine_tuned_from__number=version.number
    )
    return rows.select_related("model").order_by("-pk")
