"""Puts a trial's hyperparameter values into an experiment spec."""

from typing import Any

from jobs.spec.base import Frozen
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.code_model import CodeModel
from jobs.spec.sections.model import model_json
from jobs.spec.sections.model_base import ModelBase
from jobs.spec.sections.optimizers import ARGUMENTS
from jobs.spec.sections.schedules import KINDS
from jobs.spec.sections.script_model import ScriptModel
from jobs.spec.space.search_space import Value, Values
from jobs.spec.space.searchable import TEMPLATE, TEMPLATE_ARGUMENTS, is_known, unknown_name
from jobs.spec.templates import TEMPLATES


def apply_values(spec: ExperimentSpec, values: Values) -> ExperimentSpec:
    """Return `spec` with each value in the template argument or fit field that it names.

    For own code, values are the code's hyperparameters, apart from `fit/…`.

    If `values` set `optimizer` or `schedule/kind`, the spec's arguments that the new optimizer or schedule
    does not have are dropped. Arguments in `values` must be valid for it. If they set another `template`, it
    has its defaults apart from the arguments in `values`; fields without effect on a chosen template get
    their defaults. In a search over a script, values are the script's arguments.

    Raises:
        pydantic.ValidationError: a value is invalid for its argument or field.
        ValueError: a name is neither an argument nor a field, belongs to another template, or a schedule has
            no kind.
    """
    if isinstance(spec.model, ScriptModel):
        return spec.model_copy(update={"model": spec.model.with_arguments(values)})
    if isinstance(spec.model, CodeModel):
        return _applied_to_code(spec, spec.model, values)
    chosen, args = _chosen(spec.model, values)
    of_fit: dict[str, Value] = {}
    for name, value in values.items():
        owner, _, argument = name.rpartition("/")
        if name == TEMPLATE:
            continue
        if name in TEMPLATE_ARGUMENTS or name in spec.model.info.arguments.model_fields:
            if (owner or spec.model.info.name) != chosen:
                raise ValueError(
                    f"{name} is no argument of the template {chosen}; make it depend on {TEMPLATE}"
                )
            args[argument] = value
        elif is_known(name, spec.model):
            of_fit[name] = value
        else:
            raise ValueError(f"hyperparameter {unknown_name(name, spec.model)}")
    fit = _fit_with(spec, of_fit, str(values[TEMPLATE]) if TEMPLATE in values else "")
    model = spec.model.with_args(args) if chosen == spec.model.info.name else model_json(chosen, args)
    changed_spec = _with_sections(spec, model=model, fit=fit)
    if changed_spec.texts == spec.texts:
        return changed_spec
    # All trials of a search take the same input, or their models could not become an ensemble.
    data = spec.required_data.model_copy(update={"texts": spec.texts})
    return changed_spec.model_copy(update={"data": data})


def _applied_to_code(spec: ExperimentSpec, model: CodeModel, values: Values) -> ExperimentSpec:
    fields = {name: model.info.fit_field(name) for name in values}
    of_code = {name: value for name, value in values.items() if fields[name] is None}
    of_fit = {field: values[name] for name, field in fields.items() if field is not None}
    held = model.model_copy(update={"hyperparameters": {**model.hyperparameters, **of_code}})
    if not of_fit:
        return spec.model_copy(update={"model": held})
    return _with_sections(spec, model=held, fit=_fit_with(spec, of_fit))


def _with_sections(spec: ExperimentSpec, **changed: Any) -> ExperimentSpec:
    """Return a spec with other sections, validated."""
    # The others are instances, which are not validated again: a plan tries hundreds of values, and a search
    # space may be a thousand times larger than the rest.
    sections = {name: getattr(spec, name) for name in ExperimentSpec.model_fields}
    return ExperimentSpec.model_validate({**sections, **changed})


def _fit_with(spec: ExperimentSpec, values: Values, template: str = "") -> dict[str, Any]:
    """Return the section `fit` with other values in its fields.

    Args:
        spec: the experiment.
        values: by field path, such as `schedule/kind`.
        template: the one that a trial chooses; empty for the spec's.
    """
    fit: dict[str, Any] = spec.fit.model_dump(mode="json", exclude_none=True)
    _drop_other_arguments(fit, values)
    if template:
        _drop_unused(fit, template)
    for name, value in values.items():
        _set_field(fit, name, value)
    if fit.get("schedule") and "kind" not in fit["schedule"]:
        names = ", ".join(name for name in values if name.startswith("schedule/"))
        raise ValueError(f"{names} needs a schedule: set fit.schedule.kind, or search schedule/kind")
    return fit


def _chosen(model: ModelBase, values: Values) -> tuple[str, dict[str, Any]]:
    """Return the template that `values` choose, and the arguments that the spec has for it."""
    chosen = str(values.get(TEMPLATE, model.info.name))
    return chosen, dict(model.args) if chosen == model.info.name else {}


def _drop_unused(fit: dict[str, Any], template: str) -> None:
    # A template that does not exist is reported by the validation of the whole spec.
    unused = TEMPLATES[template].unused if template in TEMPLATES else {}
    for pointer in unused:
        section, _, name = pointer[1:].partition("/")
        if section == "fit":
            fit.pop(name, None)


def _drop_other_arguments(fit: dict[str, Any], values: Values) -> None:
    """Drop arguments that the trial's optimizer or schedule does not have."""
    # A value with a wrong type is no key here. The validation of the whole spec reports it.
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
