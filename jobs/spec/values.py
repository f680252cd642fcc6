"""Puts a trial's hyperparameter values into an experiment spec."""

from typing import Any

from jobs.spec.experiment import ExperimentSpec
from jobs.spec.fit import FitSpec
from jobs.spec.model import TEMPLATES, TemplateModel
from jobs.spec.search_space import Values

SEARCHABLE_FIT_FIELDS = frozenset(FitSpec.model_fields) - {
    "early_stopping",
    "metrics",
    "loss",
    "optimizer_args",
}


def known_names(model: TemplateModel) -> frozenset[str]:
    """Return the hyperparameter names that mean something for this model and its fit."""
    return frozenset(TEMPLATES[model.template].model_fields) | SEARCHABLE_FIT_FIELDS


def apply_values(spec: ExperimentSpec, values: Values) -> ExperimentSpec:
    """Return `spec` with each value in the template argument or fit field of its name.

    Raises:
        pydantic.ValidationError: a value does not fit where it goes.
        ValueError: a name means nothing for this model.
    """
    body: dict[str, Any] = spec.to_json()
    arguments = TEMPLATES[spec.model.template].model_fields
    for name, value in values.items():
        if name in arguments:
            body["model"].setdefault("args", {})[name] = value
        elif name in SEARCHABLE_FIT_FIELDS:
            body.setdefault("fit", {})[name] = value
        else:
            raise ValueError(
                f"hyperparameter {name!r} is neither an argument of {spec.model.template} nor a fit field"
            )
    return ExperimentSpec.model_validate(body)
