"""Finds settings in a spec that cannot work with any data.

The checks are not validators in the spec's classes, since specs that were stored before a check existed must
still be read.
"""

from collections.abc import Iterator

from jobs.spec.checks import patterns
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.number_formats import FORMATS
from jobs.spec.plan.layout_rules import pattern_problems
from jobs.spec.policies import POLICIES
from jobs.spec.problems import Problem
from jobs.spec.sections import measures
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.sections.model import Hypermodel, TemplateModel
from jobs.spec.sections.precision import UNSUPPORTED_POLICIES, PrecisionSpec
from jobs.spec.space.searchable import TEMPLATE, refusal_of_field
from jobs.spec.templates import TEMPLATES
from jobs.spec.templates.info import TemplateInfo


def problems(spec: ExperimentSpec) -> Iterator[Problem]:
    """Yield the settings that would make a run fail, or that would have no effect on it.

    The spec is as it was sent: one that was completed has other rows, and all defaults.
    """
    yield from _check_unused(spec)
    yield from _check_template(spec)
    yield from _check_directions(spec)
    yield from _check_overrides(spec.precision)
    yield from _check_loss_scale(spec)
    yield from _check_smaller_model(spec)
    yield from _check_time_limit(spec)
    if spec.mesh is not None:
        yield from pattern_problems(spec.mesh)
        yield from _check_gpu_memory(spec.mesh)


def _check_directions(spec: ExperimentSpec) -> Iterator[Problem]:
    """Yield own code's objectives whose better direction is neither set nor known."""
    for pointer, objective in spec.placed_objectives() if spec.model.info.own_names else ():
        is_lower = measures.is_known(objective.metric) and measures.direction(objective.metric) == "min"
        if "direction" not in objective.model_fields_set and not is_lower:
            yield Problem(
                f"{pointer}/direction",
                f"choose whether higher or lower values of {objective.metric} are better: max or min",
            )


def _check_unused(spec: ExperimentSpec) -> Iterator[Problem]:
    """Yield settings that affect no template that is tried, and steps that cannot follow one."""
    tried = tried_templates(spec)
    names = " and ".join(info.name for info in tried)
    for pointer, reason in tried[0].unused.items():
        if all(pointer in info.unused for info in tried) and _is_set(spec, pointer):
            yield Problem(pointer, f"has no effect on {names}, since {reason}; leave it out")
    for info in tried:
        for pointer, reason in info.refused.items():
            if _is_set(spec, pointer):
                yield Problem(pointer, f"cannot follow {info.name}, since {reason}; leave it out")
        if info.no_rungs and spec.search is not None and spec.search.info.has_rungs:
            message = f"{spec.search.algorithm} cannot search over {info.name}, since {info.no_rungs}"
            yield Problem("/search/algorithm", f"{message}; use another algorithm, with a pruner")
    for i, parameter in enumerate(spec.search.space if spec.search is not None else ()):
        here = f"/search/space/{i}/name"
        if not any(info.uses(parameter.name) for info in tried):
            yield Problem(here, f"{parameter.name!r} has no effect on {names}; leave it out")
        elif (refusal := refusal_of_field(parameter.name, spec.model)) is not None:
            yield Problem(here, refusal)


def _check_template(spec: ExperimentSpec) -> Iterator[Problem]:
    for i, parameter in enumerate(spec.search.space if spec.search is not None else ()):
        if parameter.name == TEMPLATE and not spec.model.info.is_listed:
            yield Problem(
                f"/search/space/{i}/name",
                f"a search over templates needs a template in model, not {spec.model.info.label.lower()}",
            )


def tried_templates(spec: ExperimentSpec) -> list[TemplateInfo]:
    """Return the templates that a search tries, or the only one."""
    if spec.model.info.own_names:
        return [spec.model.info]
    rows = spec.search.space if spec.search is not None else ()
    values = [value for row in rows if row.name == TEMPLATE for value in row.grid()]
    return [TEMPLATES[str(name)] for name in values if name in TEMPLATES] or [spec.model.info]


def _is_set(spec: ExperimentSpec, pointer: str) -> bool:
    """Return whether a section, or a field in one, has another value than its default."""
    section, _, name = pointer[1:].partition("/")
    holder, field = (getattr(spec, section), name) if name else (spec, section)
    if holder is None:  # an absent section
        return False
    default = type(holder).model_fields[field].get_default(call_default_factory=True)
    return bool(getattr(holder, field) != default)


def _check_overrides(precision: PrecisionSpec) -> Iterator[Problem]:
    for i, override in enumerate(precision.overrides):
        place = f"/precision/overrides/{i}"
        if reason := UNSUPPORTED_POLICIES.get(override.policy):
            yield Problem(f"{place}/policy", f"policy {override.policy}: {reason}")
        if reason := patterns.refusal(override.match):
            yield Problem(f"{place}/match", reason)


def _check_loss_scale(spec: ExperimentSpec) -> Iterator[Problem]:
    """Yield the loss scale if no layer computes in float16, whose small gradients it keeps from being 0."""
    precision = spec.precision
    # Code and versions may have layers in float16 by themselves.
    if precision.loss_scale == "dynamic" or not isinstance(spec.model, TemplateModel | Hypermodel):
        return
    if all("/precision" in info.unused for info in tried_templates(spec)):
        return
    policies = (precision.policy, *(override.policy for override in precision.overrides))
    if all(POLICIES[policy].computes is not FORMATS["float16"] for policy in policies):
        yield Problem(
            "/precision/loss_scale",
            f"has no effect under {' and '.join(dict.fromkeys(policies))}, since it is for layers in "
            "float16; leave it out, or choose mixed_float16",
        )


def _check_smaller_model(spec: ExperimentSpec) -> Iterator[Problem]:
    """Yield the step that makes a model smaller, if its layers are trained in 8 bits."""
    policies = (spec.precision.policy, *(override.policy for override in spec.precision.overrides))
    if spec.after.quantize is not None and "float8" in policies:
        yield Problem(
            "/after/quantize",
            "layers that are trained in float8 have their own scales and cannot be quantized or cast; leave "
            "the step out, or train in mixed_bfloat16",
        )


def _check_time_limit(spec: ExperimentSpec) -> Iterator[Problem]:
    """Yield the time limit of trainings, if all trainings are those of a search's trials."""
    if spec.resources.max_minutes is not None and spec.search is not None and not spec.after.has_steps():
        yield Problem(
            "/resources/max_minutes",
            "ends no trial, and no step follows this search, so it has no effect; set search.max_minutes to "
            "end the search",
        )


def _check_gpu_memory(mesh: MeshSpec) -> Iterator[Problem]:
    kind = mesh.kind
    if kind in ("cpu", "tpu"):
        sentence = f"sets the memory of GPUs, but the mesh has {kind} devices; leave it out"
        if mesh.preallocate:
            yield Problem("/mesh/preallocate", sentence)
        if mesh.memory_fraction is not None:
            yield Problem("/mesh/memory_fraction", sentence)
