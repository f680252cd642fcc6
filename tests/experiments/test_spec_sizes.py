"""Limits that keep the time of checking a spec short, whatever a user sends."""

from typing import Any

import pytest
from django.test import Client

from jobs.actions.experiments import experiments
from jobs.errors import BadSpec
from jobs.queries.experiments import plan
from jobs.spec.checks import patterns
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.layout_rules import rules_for
from jobs.spec.sections import search as search_contract
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.space import probes
from jobs.spec.space import size as space_size
from jobs.spec.space.values import apply_values
from jobs.spec.templates.layers import Variable
from tests.experiments.conftest import SEARCH, SPEC
from tests.world import World

MESH = {"devices": "cpu", "shape": [2, 2], "axis_names": ["data", "model"]}
HUGE = 10**4000
PARENT = {"name": "seed", "kind": "int", "min": 1, "max": 10**9}


def rules(*matches: str) -> dict[str, Any]:
    """Return a mesh with layout rules."""
    return {"mesh": MESH | {"layout": [{"match": match, "axes": [None, "model"]} for match in matches]}}


def overrides(*matches: str) -> dict[str, Any]:
    """Return a precision with overrides."""
    return {"precision": {"overrides": [{"match": match, "policy": "float32"} for match in matches]}}


def searched(*space: Any) -> dict[str, Any]:
    """Return a search over a space."""
    return {"search": SEARCH | {"space": list(space)}}


@pytest.mark.parametrize(
    ("section", "pointer"),
    [
        (rules(*(f"dense_{i}/kernel" for i in range(201))), "/spec/mesh/layout"),
        (overrides(*(f"dense_{i}" for i in range(201))), "/spec/precision/overrides"),
        (rules(*["(x?){500}y"] * 3), "/spec/mesh/layout"),
        (overrides(*["(x?){500}y"] * 3), "/spec/precision/overrides"),
        ({"fit": {"class_weights": {str(i): 1.0 for i in range(2001)}}}, "/spec/fit/class_weights"),
        (
            searched(
                PARENT,
                {"name": "units", "kind": "int", "min": 1, "max": 9}
                | {"when": [{"name": "seed", "in": list(range(1, 7001))}] * 3},
            ),
            "/spec/search/space",
        ),
        (
            searched(
                {"name": "seed", "kind": "choice", "values": list(range(10_000))},
                {"name": "epochs", "kind": "choice", "values": list(range(1, 10_001))},
                {"name": "units", "kind": "choice", "values": [1, 2]},
            ),
            "/spec/search/space",
        ),
        ({"data": {"dataset": "digits", "features": ["x" * 1000] * 500}}, "/spec"),
    ],
)
def test_a_spec_that_is_too_large_to_check_is_refused_with_this_problem_alone(
    world: World, section: dict[str, Any], pointer: str
) -> None:
    verdict = plan.validate_spec(world.project, SPEC | section)
    assert [problem.pointer for problem in verdict.problems] == [pointer]
    assert verdict.plan is None


def test_at_most_a_hundred_problems_of_a_spec_are_reported(world: World) -> None:
    unknown = {"data": {"dataset": "digits", "features": [f"column{i}" for i in range(1000)]}}
    assert len(plan.validate_spec(world.project, SPEC | unknown).problems) == 100
    extra = {f"field{i}": 1 for i in range(1000)}
    assert len(plan.validate_spec(world.project, SPEC | extra).problems) == 100


@pytest.mark.parametrize("shape", [[HUGE, HUGE], [2**16 + 1, 1], [2**9, 2**9]])
def test_a_mesh_of_more_devices_than_exist_is_a_problem(world: World, shape: list[int]) -> None:
    client: Client = world.client(world.owner)
    mesh = MESH | {"shape": shape, "batch_axis": None}
    body = {"project": "yard", "spec": SPEC | {"mesh": mesh}}
    response = client.post("/api/v1/experiments/validate", body, content_type="application/json")
    assert response.status_code == 200
    assert {error["pointer"][:16] for error in response.json()["errors"]} == {"/spec/mesh/shape"}


def test_applying_values_does_not_check_the_search_space_again(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ExperimentSpec.model_validate(SPEC | {"search": SEARCH} | rules("dense_1/kernel"))

    def refuse(_: Any) -> None:
        raise AssertionError("the space was checked again")

    monkeypatch.setattr(search_contract, "check_space", refuse)
    applied = apply_values(spec, {"units": 48, "epochs": 3})
    assert (applied.model.args["units"], applied.fit.epochs) == (48, 3)
    assert (applied.search, applied.mesh) == (spec.search, spec.mesh)


def test_a_rule_is_matched_once_for_each_path(monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = MeshSpec.model_validate(rules("dense_1/kernel", "[")["mesh"])
    variable = Variable("dense_1/kernel", (4, 4))
    first = rules_for(variable, mesh)

    def refuse(*_: str) -> bool:
        raise AssertionError("the pattern was matched again")

    monkeypatch.setattr(patterns, "matches_all_of", refuse)
    assert rules_for(variable, mesh) == first
    assert [index for index, _ in first] == [0]


def test_the_checks_of_a_whole_space_are_limited() -> None:
    parents = [{"name": name, "kind": "int", "min": 1, "max": 64} for name in ("units", "seed", "epochs")]
    when = [{"name": parent["name"], "in": list(range(1, 31))} for parent in parents]
    labels = [
        {"name": f"class_weights/{i}", "kind": "float", "min": 0, "max": 1, "when": when} for i in range(100)
    ]
    space = ExperimentSpec.model_validate(SPEC | searched(*parents, *labels)).search
    assert space is not None
    checked = [len(list(probes.configurations(space.space, one))) for one in space.space]
    assert sum(checked) <= 2048
    assert min(checked) > 0


def test_counting_stops_after_too_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = [{"name": name, "kind": "int", "min": 1, "max": 64} for name in ("units", "seed")]
    when = [{"name": parent["name"], "in": [1, 2]} for parent in parents]
    child = {"name": "epochs", "kind": "int", "min": 1, "max": 3, "when": when}
    search = ExperimentSpec.model_validate(SPEC | searched(*parents, child)).search
    assert search is not None
    assert space_size.count_configurations(search.space) == (64 * 64 - 4 + 4 * 3, True)
    monkeypatch.setattr(space_size, "MOST_STEPS", 3)
    number, exact = space_size.count_configurations(search.space)
    assert not exact
    assert 0 < number <= 64 * 64 - 4 + 4 * 3


def test_a_draft_may_be_no_longer_than_a_spec(world: World) -> None:
    draft = SPEC | {"notes": "x" * 500_000}
    with pytest.raises(BadSpec, match="at most 500,000"):
        experiments.create(world.project, name="long", by=world.owner, draft=draft)
    experiment = experiments.create(world.project, name="short", by=world.owner, draft={"version": 1})
    with pytest.raises(BadSpec, match="at most 500,000"):
        experiments.change(experiment, by=world.owner, draft=draft)


def test_empty_lists_are_reported_unless_their_items_were_refused(world: World) -> None:
    empty = {"name": "units", "kind": "int", "min": 1, "max": 2, "when": {"name": "seed", "in": []}}
    refused = {"name": "layers", "kind": "choice", "values": [None]}
    body = SPEC | searched(empty, refused)
    pointers = {problem.pointer for problem in plan.validate_spec(world.project, body).problems}
    assert "/spec/search/space/0/when/in" in pointers
    assert "/spec/search/space/1/values/0" in pointers
    assert "/spec/search/space/1/values" not in pointers
