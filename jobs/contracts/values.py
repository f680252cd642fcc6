"""Puts a trial's hyperparameter values into an experiment spec.

A hyperparameter is named after a template argument or a fit field; one inside a field by its path:
`schedule/kind`, `augmentation/rotation`, `optimizer_args/weight_decay`, `class_weights/<label>`.
"""

from collections.abc import Iterable
from typing import Any

from jobs.contracts.augmentation import Augmentation
from jobs.contracts.base import Frozen
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.fit import Ema, FitSpec
from jobs.contracts.model import TEMPLATES, TemplateModel
from jobs.contracts.optimizers import ARGUMENTS
from jobs.contracts.schedules import KINDS
from jobs.contracts.search_space import Values

NOT_SEARCHED = frozenset({"early_stopping", "metrics", "loss", "schedule/monitor", "schedule/at"})
"""What changes how trainings are judged, and lists, which no hyperparameter holds."""
INSIDE: dict[str, Iterable[type[Frozen]]] = {
    "optimizer_args": ARGUMENTS.values(),
    "schedule": KINDS.values(),
    "ema": (Ema,),
    "augmentation": (Augmentation,),
}
"""The fields that are searched by paths into them, and what may stand there."""


def _searchable() -> frozenset[str]:
    whole = set(FitSpec.model_fields) - set(INSIDE)
    inside = {
        f"{field}/{name}" for field, kinds in INSIDE.items() for kind in kinds for name in kind.model_fields
    }
    return frozenset((whole | inside) - NOT_SEARCHED)


SEARCHABLE_FIT_FIELDS = _searchable()


def known_names(model: TemplateModel) -> frozenset[str]:
    """Return the hyperparameter names that mean something for this model and its fit."""
    return frozenset(TEMPLATES[model.template].model_fields) | SEARCHABLE_FIT_FIELDS


def is_known(name: str, model: TemplateModel) -> bool:
    """Say whether a hyperparameter of this name means something; the labels of classes are free."""
    return name in known_names(model) or _is_of_a_class(name)


def _is_of_a_class(name: str) -> bool:
    return name.startswith("class_weights/") and not name.endswith("/")


def apply_values(spec: ExperimentSpec, values: Values) -> ExperimentSpec:
    """Return `spec` with each value in the template argument or fit field of its name.

    Where `optimizer` or `schedule/kind` is among the values, arguments that the spec gives for another
    one are left out. What the values themselves name must fit.

    Raises:
        pydantic.ValidationError: a value does not fit where it goes.
        ValueError: a name means nothing for this model, or a schedule has no kind.
    """
    body: dict[str, Any] = spec.to_json()
    fit: dict[str, Any] = body.setdefault("fit", {})
    _choose(fit, values)
    arguments = TEMPLATES[spec.model.template].model_fields
    for name, value in values.items():
        if name in arguments:
            body["model"].setdefault("args", {})[name] = value
        elif is_known(name, spec.model):
            _put(fit, name, value)
        else:
            raise ValueError(
                f"hyperparameter {name!r} is neither an argument of {spec.model.template} nor a fit field"
            )
    if fit.get("schedule") and "kind" not in fit["schedule"]:
        names = ", ".join(name for name in values if name.startswith("schedule/"))
        raise ValueError(f"{names} needs a schedule: choose its kind in fit, or search schedule/kind before")
    return ExperimentSpec.model_validate(body)


def _choose(fit: dict[str, Any], values: Values) -> None:
    """Leave out the arguments that the optimizer or schedule of this trial does not take."""
    chosen: dict[str, type[Frozen] | None] = {
        "optimizer_args": ARGUMENTS.get(values.get("optimizer")),  # type: ignore[call-overload]
        "schedule": KINDS.get(str(values.get("schedule/kind"))),
    }
    for field, kind in chosen.items():
        if kind is not None and fit.get(field):
            fit[field] = {name: value for name, value in fit[field].items() if name in kind.model_fields}


def _put(fit: dict[str, Any], path: str, value: Any) -> None:
    field, _, inside = path.partition("/")
    if not inside:
        fit[field] = value
        return
    held = fit.get(field)
    fit[field] = {**(held if isinstance(held, dict) else {}), inside: value}
