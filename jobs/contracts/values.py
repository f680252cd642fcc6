"""Puts a trial's hyperparameter values into an experiment spec."""

from typing import Any

from jobs.contracts.base import Frozen
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.optimizers import ARGUMENTS
from jobs.contracts.schedules import KINDS
from jobs.contracts.search_space import Values
from jobs.contracts.searchable import is_known


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
    arguments = spec.model.info.arguments.model_fields
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
