"""Identifies the model of a spec, whose variables a worker finds if there are no formulas for them."""

from typing import Any

from jobs.models import DatasetVersion
from jobs.queries.requested_jobs import key_of
from jobs.spec.checks.dry_build import DataShape
from jobs.spec.data.encoding import encoded, roles_differ
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.code_model import FIT, CodeModel
from jobs.spec.sections.model import Model
from jobs.spec.space.hyperparameters import FixedParameter, first_value
from jobs.spec.space.search_space import Space

RULES = 1
"""The version of the rules for builds without values. Estimates of other versions are made again."""
FIT_FIELDS = {
    "optimizer", "optimizer_args", "learning_rate", "schedule", "loss", "metrics", "clipnorm", "clipvalue",
    "global_clipnorm", "ema", "augmentation",
}  # fmt: skip
"""The fields of fit on which the variables or the training step depend, beside the size of a batch."""


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
    return key_of(parts)


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


def has_defaults(spec: ExperimentSpec, declared: Space) -> bool:
    """Return whether own code gets no other values than its defaults, apart from searched ones."""
    model = model_without_search(spec)
    given = model.hyperparameters if isinstance(model, CodeModel) else {}
    defaults = {row.name: first_value(row) for row in declared}
    return all(name in defaults and defaults[name] == value for name, value in given.items())
