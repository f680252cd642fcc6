"""Checks a mesh's layout rules for every model that an experiment may build."""

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from jobs.spec.data.encoding import encoded
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.largest import extreme_shapes, with_values
from jobs.spec.plan.layout_rules import check_layout, unmatched_rules
from jobs.spec.plan.variables import variables
from jobs.spec.problems import Problem
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.space.probes import MOST_VALUES
from jobs.spec.space.search_space import Value
from jobs.spec.space.searchable import TEMPLATE
from jobs.spec.space.values import apply_values
from jobs.spec.templates.layers import Variable


class _Variant(NamedTuple):
    """A model that a search may build.

    Attributes:
        where: the values that make it, for messages; empty for the only one.
        variables: its variables; None if they are unknown before it is built.
        batch_size: rows in a batch.
    """

    where: str
    variables: list[Variable] | None
    batch_size: int


def problems(spec: ExperimentSpec, profile: Profile) -> list[Problem]:
    """Return the layout rules that do not fit a model, for each searched value that affects shapes.

    A rule must divide every variable to which it applies, in every model. It may match nothing in some
    models of a search if it matches in another one.

    Args:
        spec: an experiment without other problems.
        profile: the data's, as they were uploaded.
    """
    if spec.mesh is None:
        return []
    variants = list(_variants(spec, profile))
    where_by_problem: dict[Problem, list[str]] = {}
    for variant in variants:
        for problem in _problems_of(spec.mesh, variant):
            where_by_problem.setdefault(problem, []).append(variant.where)
    by_pointer: dict[str, Problem] = {}
    for problem, where in where_by_problem.items():
        # A problem of every variant does not depend on the searched value, so the value is not named.
        named = "" if len(where) == len(variants) else f"with {where[0]}: "
        by_pointer.setdefault(problem.pointer, Problem(problem.pointer, named + problem.message))
    # A model that only the worker can list may have the variable.
    if all(variant.variables is not None for variant in variants):
        for problem in unmatched_rules(spec.mesh, _all_variables(variants)):
            by_pointer.setdefault(problem.pointer, problem)
    return list(by_pointer.values())


def models_of_space(spec: ExperimentSpec, profile: Profile) -> list[list[Variable]]:
    """Return the variables of each model that a search may build, or those of the only one.

    Every value is among them, and the extremes of all values together. Models that only a worker can list
    are left out.
    """
    models = [variant.variables for variant in _variants(spec, profile) if variant.variables is not None]
    for values in extreme_shapes(spec) if spec.search is not None and not spec.model.info.own_names else ():
        # Reported by `data.value_problems`.
        with suppress(ValueError):
            model = with_values(spec, values)
            if model.model.info.layers is not None and "/mesh" not in model.model.info.unused:
                models.append(variables(model.model, encoded(model, profile)))
    return models


def _problems_of(mesh: MeshSpec, variant: _Variant) -> Iterator[Problem]:
    listed = variant.variables or []
    unmatched = set(unmatched_rules(mesh, listed))
    yield from (
        problem for problem in check_layout(mesh, listed, variant.batch_size) if problem not in unmatched
    )


def _all_variables(variants: list[_Variant]) -> list[Variable]:
    by_path = {variable.path: variable for variant in variants for variable in variant.variables or ()}
    return list(by_path.values())


def _variants(spec: ExperimentSpec, profile: Profile) -> Iterator[_Variant]:
    """Yield the models that a search may build: each template with each value that affects its shapes."""
    space = spec.search.space if spec.search is not None and not spec.model.info.own_names else ()
    templates = [{TEMPLATE: value} for row in space if row.name == TEMPLATE for value in row.grid()]
    choices: list[dict[str, Value]] = [*templates] or [{}]
    for chosen in choices:
        # Wrong values are reported by `data.value_problems`.
        with suppress(ValueError):
            of_template = apply_values(spec, chosen) if chosen else spec
            described = encoded(of_template, profile)
            info = of_template.model.info
            if "/mesh" in info.unused:
                continue
            names = {*info.shaping, *(f"{info.name}/{argument}" for argument in info.shaping)}
            shaping = [row for row in space if row.name in names]
            if not shaping:
                yield _variant(chosen, of_template, described)
            for row in shaping:
                for value in row.grid()[:MOST_VALUES]:
                    with suppress(ValueError):
                        values = {**chosen, row.name: value}
                        yield _variant(values, apply_values(spec, values), described)


def _variant(values: dict[str, Value], spec: ExperimentSpec, profile: Profile) -> _Variant:
    where = " and ".join(f"{name} = {value!r}" for name, value in values.items())
    listed = variables(spec.model, profile) if spec.model.info.layers is not None else None
    return _Variant(where, listed, spec.fit.batch_size)
