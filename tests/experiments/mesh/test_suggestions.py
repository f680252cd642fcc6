"""Suggested layout rules: few, and valid for every model that an experiment may build."""

import random
from itertools import islice
from typing import Any

import pytest

from jobs.spec.checks import data as data_checks
from jobs.spec.data.encoding import encoded
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.layout_rules import check_layout
from jobs.spec.plan.mesh.suggestions import MOST_RULES, suggest_rules
from jobs.spec.plan.model_fields import KnownState, layout_problems
from jobs.spec.plan.model_state import BuiltVariable, ModelState
from jobs.spec.plan.plan import Plan, Situation
from jobs.spec.plan.planning import make_plan
from jobs.spec.plan.variables import variables
from jobs.spec.sections.mesh import LayoutRule, MeshSpec
from jobs.spec.sections.resources import WorkerSize
from jobs.spec.space.search_space import grid
from jobs.spec.space.values import apply_values
from jobs.spec.templates import TEMPLATES
from jobs.spec.templates.layers import Variable
from tests.experiments.data_of_templates import NETWORKS, WHEN, new_experiment
from tests.present import present

ROOM = Situation(free_slots=8, workers=(WorkerSize(8),))


def body_for(template: str, devices: tuple[int, int], space: str) -> tuple[dict[str, Any], Profile]:
    body, profile = new_experiment(template)
    body["mesh"] = {
        "shape": list(devices), "axis_names": ["data", "model"], "simulate": devices[0] * devices[1],
    }  # fmt: skip
    if space == "no search":
        del body["search"]
        body["after"] = {}
    elif space == "all":
        rows = TEMPLATES[template].ranges.items()
        body["search"]["space"] = [{"name": name, **row, **WHEN.get(name, {})} for name, row in rows]
    return body, profile


def plan_of(body: dict[str, Any], profile: Profile) -> Plan:
    return make_plan(ExperimentSpec.model_validate(body), profile, ROOM, ["search"])


def with_suggestion(body: dict[str, Any], profile: Profile) -> ExperimentSpec:
    layout = [rule.model_dump() for rule in plan_of(body, profile).suggested_layout]
    return ExperimentSpec.model_validate({**body, "mesh": {**body["mesh"], "layout": layout}})


@pytest.mark.parametrize("space", ["no search", "initial", "all"])
@pytest.mark.parametrize("devices", [(2, 4), (2, 2), (1, 3)])
@pytest.mark.parametrize("template", NETWORKS)
def test_what_is_suggested_is_accepted_and_fits_every_model_of_the_space(
    template: str, devices: tuple[int, int], space: str
) -> None:
    body, profile = body_for(template, devices, space)
    spec = with_suggestion(body, profile)
    mesh = present(spec.mesh)
    assert len(mesh.layout) <= MOST_RULES
    assert data_checks.problems(spec, profile) == []
    tried = list(islice(grid(spec.search.space if spec.search is not None else ()), 5000))
    for values in random.Random(0).sample(tried, min(40, len(tried))):
        model = apply_values(spec, values)
        listed = variables(model.model, encoded(model, profile))
        rules = {problem.pointer for problem in check_layout(mesh, listed, mesh.batch_shards())}
        # A rule may match nothing in one model: the checks above have found one that it matches.
        assert {pointer for pointer in rules if not pointer.endswith("/match")} == set()


def test_the_rules_of_a_transformer_name_its_layers_in_five_patterns() -> None:
    body, profile = body_for("text_transformer", (2, 4), "all")
    matches = [rule.match for rule in plan_of(body, profile).suggested_layout]
    assert len(matches) == 5
    assert r"attention_\d+/(query|key|value)/bias" in matches
    assert r"(expand_\d+|contract_\d+)/kernel" in matches


def test_a_search_over_templates_gets_rules_that_fit_all_of_them() -> None:
    body, profile = body_for("mlp", (2, 4), "initial")
    body["search"]["space"] = [{"name": "template", "kind": "choice", "values": ["mlp", "cnn", "linear"]}]
    spec = with_suggestion(body, profile)
    assert data_checks.problems(spec, profile) == []
    assert len(present(spec.mesh).layout) == 3


def test_a_width_that_does_not_divide_takes_its_layers_out_of_the_suggestion() -> None:
    body, profile = body_for("cnn", (2, 4), "initial")
    body["search"]["space"] = [
        {"name": "units", "kind": "choice", "values": [15, 16]},
        {"name": "layers", "kind": "int", "min": 1, "max": 4},
    ]
    spec = with_suggestion(body, profile)
    assert [rule.match for rule in present(spec.mesh).layout] == [r"conv_\d+/kernel", r"conv_\d+/bias"]


def built(*layers: tuple[str, int]) -> list[Variable]:
    return [
        variable
        for name, units in layers
        for variable in (Variable(f"{name}/kernel", (8, units)), Variable(f"{name}/bias", (units,)))
    ]


MESH = MeshSpec(shape=(2, 4), axis_names=("data", "model"), simulate=8)


@pytest.mark.parametrize(
    ("layers", "matches"),
    [
        ((("hidden_1", 8), ("hidden_2", 8), ("answer", 3)), [r"hidden_\d+/kernel", r"hidden_\d+/bias"]),
        # With fewer layers, dense_1 would be the output.
        ((("dense", 8), ("dense_1", 8), ("dense_2", 3)), []),
        ((("conv2d", 8), ("conv2d_1", 8)), [r"(conv2d|conv2d_\d+)/kernel", r"(conv2d|conv2d_\d+)/bias"]),
    ],
)
def test_own_code_with_a_space_of_layers_gets_patterns_that_further_layers_match(
    layers: tuple[tuple[str, int], ...], matches: list[str]
) -> None:
    rules = suggest_rules(MESH, [built(*layers)], "model", are_all=False)
    assert [rule.match for rule in rules] == matches


def test_the_suggestion_for_own_code_passes_with_the_variables_of_its_build() -> None:
    model = built(("dense", 8), ("dense_1", 8), ("dense_2", 3))
    state = ModelState(variables=tuple(BuiltVariable(path=v.path, shape=v.shape) for v in model))
    body = {
        "data": {"dataset": "d"},
        "model": {"kind": "code", "digest": "a" * 64, "entry": "build_model"},
        "mesh": MESH.model_dump(),
    }
    plan = make_plan(ExperimentSpec.model_validate(body), None, ROOM, ["train"], known=KnownState(state))
    assert [rule.match for rule in plan.suggested_layout] == [
        "(dense|dense_1)/kernel", "(dense|dense_1)/bias",
    ]  # fmt: skip
    mesh = {**body["mesh"], "layout": [rule.model_dump() for rule in plan.suggested_layout]}
    spec = ExperimentSpec.model_validate({**body, "mesh": mesh})
    assert layout_problems(spec, KnownState(state)) == []


def test_more_rules_than_a_person_reads_are_reduced_to_those_of_the_largest_variables() -> None:
    # The paths differ in two parts, so no two rules can be joined.
    named = [f"{'abcdefghij'[i]}/{'klmnopqrst'[i]}" for i in range(10)]
    model = [Variable(f"{name}/kernel", (8, 4 * (i + 1))) for i, name in enumerate(named)]
    rules = suggest_rules(MESH, [model], "model", are_all=True)
    assert rules == tuple(LayoutRule(match=f"{name}/kernel", axes=(None, "model")) for name in named[4:])
