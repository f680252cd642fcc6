"""Puts a trial's hyperparameter values into an experiment spec."""

from typing import Any

from jobs.contracts.base import Frozen
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.optimizers import ARGUMENTS
from jobs.contracts.schedules import KINDS
from jobs.contracts.search_space import Values
from jobs.contracts.searchable import is_known, unknown_name


def apply_values(spec: ExperimentSpec, values: Values) -> ExperimentSpec:
    """Return `spec` with each value in the template argument or fit field of the same name.

    If `values` set `optimizer` or `schedule/kind`, arguments of the spec that the new optimizer or schedule
    does not have are dropped. Arguments in `values` must be valid for it.

    Raises:
        pydantic.ValidationError: a value is invalid for its argument or field.
        ValueError: a name is neither an argument nor a field, or a schedule has no kind.
    """
    model: dict[str, Any] = spec.model.model_dump(mode="json", exclude_none=True)
    fit: dict[str, Any] = spec.fit.model_dump(mode="json", exclude_none=True)
    _drop_other_arguments(fit, values)
    arguments = spec.model.info.arguments.model_fields
    for name, value in values.items():
        if name in arguments:
            model.setdefault("args", {})[name] = value
        elif is_known(name, spec.model):
            _set_field(fit, name, value)
        else:
            raise ValueError(f"hyperparameter {unknown_name(name, spec.model)}")
    if fit.get("schedule") and "kind" not in fit["schedule"]:
        names = ", ".join(name for name in values if name.startswith("schedule/"))
        raise ValueError(f"{names} needs a schedule: set fit.schedule.kind, or search schedule/kind")
    # The other sections are instances, which are not validated again: a plan tries hundreds of values, and a
    # search space may be a thousand times larger than the rest.
    sections = {name: getattr(spec, name) for name in ExperimentSpec.model_fields}
    return ExperimentSpec.model_validate({**sections, "model": model, "fit": fit})


def _drop_other_arguments(fit: dict[str, Any], values: Values) -> None:
    """Drop arguments that the trial's optimizer or schedule does not have."""
    # A value of a wrong type is no key here. The validation of the whole spec reports it.
    chosen: dict[str, type[Frozen] | None] = {
        "optimizer_args": ARGUMENTS.get(values.get("optimizer")),  # type: ignore[call-overload]
        "schedule": KINDS.get(str(values.get("schedule/kind"))),
    }
    for field, kind in chosen.items():
        if kind is not None and fit.get(field):
            fit[field] = {name: value for name, value in fit[field].items() if name in kind.model_fields}


def _set_field(fit: dict[str, Any], path: str, value: Any) -> None:
    field, _, inside = path.partition("/")
    if not inside:
        fit[field] = value
        return
    # The field may be absent, or a name such as "balanced" for `class_weights`, which its parts replace.
    held = fit.get(field)
    fit[field] = {**(held if isinstance(held, dict) else {}), inside: value}
