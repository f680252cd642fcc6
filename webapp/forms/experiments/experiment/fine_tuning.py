"""Offers the versions that an experiment may train further, and begins its spec."""

from typing import Any

from jobs import access
from jobs.models import ModelVersion, Project, User
from jobs.queries.experiments import base_versions
from jobs.queries.registry import versions
from jobs.spec.checks import fine_tuning as fine_tuning_checks
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.version_model import ALL, VERSION

NEWEST = 200
"""How many versions the form offers; any other can be typed."""
Json = dict[str, Any]


def offered_versions(user: User, project: Project) -> list[Json]:
    """Return the newest versions that `user` may see and train further, the project's own first."""
    rows = access.visible_versions(user).filter(state=ModelVersion.State.CANDIDATE, needs_code=False)
    newest = rows.select_related("model__project").order_by("-pk")[:NEWEST]
    ordered = sorted(newest, key=lambda version: version.model.project_id != project.pk)
    return [{"name": name_of(version), "label": _version_label(version, project)} for version in ordered]


def name_of(version: ModelVersion) -> str:
    """Return a version's name in the field: its model's name and its number."""
    return f"{version.model.name}/{version.number}"


def _version_label(version: ModelVersion, project: Project) -> str:
    figures = [
        f"{name} {value:.4g}" for name, value in versions.metric_values(version).items() if value is not None
    ]
    home = version.model.project
    places = [home.name] if home != project else []
    return ", ".join([version.what or "version", *figures[:1], *places])


def start_spec(spec: Json, profile: Profile | None, base: ModelVersion) -> Json:
    """Return a new spec that trains a version further.

    Its head is kept if it fits the data. Else it is replaced, and at first only the new one is trained.
    """
    defaults: Json = VERSION.arguments().model_dump(mode="json")
    model = {"kind": "version", "model": base.model.name, "number": base.number}
    proposed = {**spec, "model": {**model, "args": defaults}}
    if profile is None:
        return proposed
    invalid = fine_tuning_checks.problems(
        ExperimentSpec.model_validate(proposed), profile, base_versions.describe_base(base)
    )
    if not any(problem.pointer == "/model/args/head" for problem in invalid):
        return proposed
    return {**proposed, "model": {**model, "args": {**defaults, "head": "new", "freeze_to": ALL}}}
