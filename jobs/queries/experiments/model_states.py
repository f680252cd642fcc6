"""Finds the variables of models that a worker has built, for plans of models without formulas."""

import hashlib
import json
from typing import Any

from jobs.kinds.mesh_estimate.payload import MeshEstimateResult
from jobs.kinds.mesh_estimate.rows import estimates_of_model
from jobs.models import DatasetVersion, Job, Project
from jobs.spec.checks.dry_build import BuiltModel, DataShape
from jobs.spec.data.encoding import encoded, roles_differ
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.model_fields import KnownState
from jobs.spec.sections.code_model import FIT, CodeModel
from jobs.spec.sections.model import Model
from jobs.spec.space.hyperparameters import FixedParameter, first_value
from jobs.spec.space.search_space import Space
from jobs.states import JobState

RULES = 1
"""The version of the rules for builds without values. Estimates of other versions are made again."""
FIT_FIELDS = {
    "optimizer", "optimizer_args", "learning_rate", "schedule", "loss", "metrics", "clipnorm", "clipvalue",
    "global_clipnorm", "ema", "augmentation",
}  # fmt: skip
"""The fields of fit on which the variables or the training step depend, beside the size of a batch."""
SEARCHED = (
    "The variables are those of the model without the search: searched values may give others, and a worker "
    "checks the layout of each trial."
)
WITH_DEFAULTS = "The variables are those of the model with the defaults of its code's hyperparameters."


def known_state(
    project: Project,
    spec: ExperimentSpec,
    version: DatasetVersion | None,
    built: BuiltModel | None,
) -> KnownState | None:
    """Return the variables of a spec's model as a worker has built it, or None if none has.

    Args:
        project: the experiment's project.
        spec: the experiment.
        version: its data.
        built: the model that its own code builds with the defaults of all hyperparameters, if it is known.
    """
    profile = version.profile if version is not None else None
    if version is None or profile is None or has_formulas(spec, profile):
        return None
    searched = SEARCHED if spec.search is not None else ""
    rows = Job.objects.filter(estimates_of_model(model_key(spec, version, profile)), project=project)
    job = rows.filter(state=JobState.COMPLETED).order_by("-pk").first()
    if job is not None:
        return KnownState(MeshEstimateResult.model_validate(job.results_json).state, searched)
    if built is None or built.state is None or not _has_defaults(spec, built.space):
        return None
    return KnownState(built.state, searched or (WITH_DEFAULTS if built.space else ""))


def has_formulas(spec: ExperimentSpec, profile: Profile) -> bool:
    """Return whether the variables of a spec's model are known without building it."""
    return spec.model.info.layers is not None and not roles_differ(spec, profile)


def model_key(spec: ExperimentSpec, version: DatasetVersion, profile: Profile) -> str:
    """Return a digest that is the same for models with the same variables and the same training step."""
    data: Any = [version.pk, spec.required_data.model_dump(mode="json", exclude={"split"})]
    if isinstance(spec.model, CodeModel) and not roles_differ(spec, profile):
        data = DataShape.from_schema(encoded(spec, profile)).model_dump(mode="json")
    parts = [
        RULES,
        model_without_search(spec).model_dump(mode="json"),
        spec.precision.model_dump(mode="json"),
        spec.fit.model_dump(mode="json", include=FIT_FIELDS),
        spec.texts,
        data,
    ]
    return digest_of(parts)


def digest_of(value: object) -> str:
    """Return the digest of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def model_without_search(spec: ExperimentSpec) -> Model:
    """Return the section `model` without a search: own code keeps the values that the search fixes."""
    if not isinstance(spec.model, CodeModel) or spec.search is None:
        return spec.model
    fixed = {
        row.name: row.value
        for row in spec.search.space
        if isinstance(row, FixedParameter) and not row.name.startswith(FIT)
    }
    return spec.model.model_copy(update={"hyperparameters": {**spec.model.hyperparameters, **fixed}})


def _has_defaults(spec: ExperimentSpec, declared: Space) -> bool:
    """Return whether own code gets no other values than its defaults, apart from searched ones."""
    model = model_without_search(spec)
    given = model.hyperparameters if isinstance(model, CodeModel) else {}
    defaults = {row.name: first_value(row) for row in declared}
    return all(name in defaults and defaults[name] == value for name, value in given.items())
