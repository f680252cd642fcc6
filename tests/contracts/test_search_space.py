"""Search spaces: values, grids, validation and the number of configurations."""

import random
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import problems
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space import size as space_size
from jobs.spec.space.search_space import (
    Parameter,
    Space,
    check_space,
    check_values,
    grid,
    sample,
    value_errors,
)
from jobs.spec.space.size import grid_size

SPACES: TypeAdapter[Space] = TypeAdapter(Space)
Json = dict[str, Any]
HUGE = 10**15


def space(*rows: Json) -> Space:
    parsed = SPACES.validate_python(list(rows))
    check_space(parsed)
    return parsed


def one(kind: str, **more: Any) -> Parameter:
    return space({"name": "x", "kind": kind, **more})[0]


def flag(name: str, *conditions: Json) -> Json:
    return {"name": name, "kind": "boolean", **({"when": list(conditions)} if conditions else {})}


def when(name: str, *values: Any) -> Json:
    return {"name": name, "in": list(values)}


@pytest.mark.parametrize(
    ("kind", "row", "values"),
    [
        ("int", {"min": 6, "max": 13, "step": 3}, [6, 9, 12]),
        ("int", {"min": 2, "max": 33, "step": 2, "sampling": "log"}, [2, 4, 8, 16, 32]),
        ("int", {"min": 2, "max": 32, "step": 2, "sampling": "reverse_log"}, [2, 18, 26, 30, 32]),
        ("float", {"min": 0.0, "max": 0.5, "step": 0.1}, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]),
        ("float", {"min": 1e-3, "max": 10.0, "step": 10.0, "sampling": "log"}, [1e-3, 0.01, 0.1, 1.0, 10.0]),
        ("float", {"min": 1.0, "max": 100.0, "step": 10.0, "sampling": "reverse_log"}, [1.0, 91.0, 100.0]),
        ("boolean", {}, [False, True]),
        ("choice", {"values": ["b", "a"]}, ["b", "a"]),
        ("fixed", {"value": 3}, [3]),
    ],
)
def test_the_grid_has_these_values_and_samples_are_among_them(
    kind: str, row: Json, values: list[Any]
) -> None:
    parameter = one(kind, **row)
    assert list(parameter.grid()) == values
    rng = random.Random(0)
    assert {parameter.sample(rng) for _ in range(200)} == set(values)
    assert all(parameter.takes(value) for value in values)


@pytest.mark.parametrize(
    ("kind", "row", "message"),
    [
        ("int", {"min": 3, "max": 1}, "min 3 is above max 1"),
        ("int", {"min": 0, "max": 8, "sampling": "log"}, "min 0 must be above 0 for log sampling"),
        (
            "int",
            {"min": 1, "max": 8, "step": 1, "sampling": "log"},
            "step 1 must be above 1: it is a factor under log sampling",
        ),
        ("int", {"min": 16, "max": 64, "default": 65}, "is outside 16 to 64"),
        ("int", {"min": 16, "max": 64, "step": 16, "default": 40}, "not on a step; the nearest value is 32"),
        ("int", {"min": 2, "max": 32, "step": 2, "sampling": "log", "default": 15}, "nearest value is 16"),
        ("int", {"min": 0, "max": 10**30}, "less than or equal to 9007199254740991"),
        ("float", {"min": 0.0, "max": 0.5, "step": 0.1, "default": 0.29}, "the nearest value is 0.3"),
        ("float", {"min": float("nan"), "max": 1.0}, "finite"),
        ("float", {"min": 0.0, "max": float("inf")}, "finite"),
        ("float", {"min": 0.0, "max": 1e300, "step": 1e-300}, "too small"),
        ("float", {"min": -1e308, "max": 1e308, "step": 1e300}, "max 1e+308 is too far from min -1e+308"),
        ("float", {"min": 1e-300, "max": 1e300, "sampling": "log"}, "max 1e+300 is too far from min 1e-300"),
        ("choice", {"values": [1, "a"]}, "mix types"),
        ("choice", {"values": [1, True]}, "mix types"),
        ("choice", {"values": [1, 1]}, "contain a value twice"),
        ("choice", {"values": [1, 0], "default": True}, "is not among [1, 0]"),
        ("choice", {"values": [float("inf"), 1.0]}, "finite"),
    ],
)
def test_an_invalid_hyperparameter_is_rejected_with_a_hint(kind: str, row: Json, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        one(kind, **row)
    assert message in str(caught.value)


UNITS = {"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16}
RATE = {"name": "rate", "kind": "float", "min": 0.1, "max": 0.5, "step": 0.1}


@pytest.mark.parametrize(
    ("parent", "condition", "message"),
    [
        (UNITS, when("units", 16, 17), "1.when.in: 'units' never has the value 17; its values are integers"),
        (UNITS, when("units", 16.0), "never has the value 16.0"),
        (
            RATE,
            when("rate", 0.25),
            "1.when.in: 'rate' never has the value 0.25; its values are numbers from 0.1",
        ),
        (flag("norm"), when("norm", 1), "'norm' never has the value 1; its values are False, True"),
        (flag("norm"), when("other", True), "1.when: 'x' depends on 'other', which must be listed before it"),
        (flag("norm"), [when("norm", True), when("norm", "yes")], "1.when.1.in: 'norm' never has the value"),
    ],
)
def test_a_condition_that_can_never_be_met_is_rejected(parent: Json, condition: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        space(parent, {"name": "x", "kind": "boolean", "when": condition})


def test_conditions_nest_and_may_have_several_parents() -> None:
    nested_space = space(
        {"name": "block/kind", "kind": "choice", "values": ["conv", "dense"]},
        flag("block/norm", when("block/kind", "conv")),
        {"name": "block/momentum", "kind": "float", "min": 0.8, "max": 0.9, "step": 0.1,
         "when": [when("block/kind", "conv"), when("block/norm", True)]},
    )  # fmt: skip
    assert list(grid(nested_space)) == [
        {"block/kind": "conv", "block/norm": False},
        {"block/kind": "conv", "block/norm": True, "block/momentum": 0.8},
        {"block/kind": "conv", "block/norm": True, "block/momentum": 0.9},
        {"block/kind": "dense"},
    ]
    assert grid_size(nested_space) == 4
    assert all(sample(nested_space, random.Random(seed)) in list(grid(nested_space)) for seed in range(20))


@st.composite
def small_spaces(draw: st.DrawFn) -> Space:
    rows: list[Json] = []
    for i in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["choice", "boolean", "int", "float"]))
        row: Json = {"name": f"p{i}", "kind": kind}
        if kind == "choice":
            row["values"] = list("abc")[: draw(st.integers(1, 3))]
        if kind in ("int", "float"):
            row |= {"min": 1, "max": draw(st.integers(1, 4)), "step": 1}
        parents = draw(st.lists(st.sampled_from(rows), max_size=3)) if rows else []
        conditions = []
        for parent in parents:
            values = list(space({k: v for k, v in parent.items() if k != "when"})[0].grid())
            conditions.append(
                when(parent["name"], *draw(st.lists(st.sampled_from(values), min_size=1, unique=True)))
            )
        rows.append({**row, **({"when": conditions} if conditions else {})})
    return space(*rows)


@given(small_spaces())
@settings(max_examples=60, deadline=None)
def test_the_count_equals_the_length_of_the_grid(small_space: Space) -> None:
    assert space_size.count_configurations(small_space) == (sum(1 for _ in grid(small_space)), True)


def test_a_huge_space_with_conditions_is_counted_quickly() -> None:
    flags = [flag(f"f{i}") for i in range(100)]
    ring = [
        {
            "name": f"c{i}",
            "kind": "int",
            "min": 1,
            "max": 2**53 - 1,
            "when": [when(f"f{i}", True), when(f"f{(i + 1) % 100}", True)],
        }
        for i in range(100)
    ]
    began = time.process_time()
    count = space_size.count_configurations(space(*flags, *ring))
    assert time.process_time() - began < 1
    assert count.exact
    assert count.number > 2**5000
    assert str(space_size.size_of_space(space(*flags, *ring))).startswith("at least 1\u202f000")


def test_too_many_overlapping_conditions_give_a_lower_bound() -> None:
    rng = random.Random(0)
    flags = [flag(f"f{i}") for i in range(40)]
    knots = [flag(f"c{i}", *(when(f"f{j}", True) for j in rng.sample(range(40), 6))) for i in range(160)]
    began = time.process_time()
    count = space_size.count_configurations(space(*flags, *knots))
    assert time.process_time() - began < 2
    assert not count.exact
    assert count.number > space_size.MOST_STATES
    assert grid_size(space(*flags, *knots), 500) == 500


def test_a_billion_steps_are_not_stored() -> None:
    steps = one("float", min=0.0, max=1.0, step=1e-9).grid()
    assert (len(steps), steps[-1], steps[500_000_000], 0.25 in steps) == (1_000_000_001, 1.0, 0.5, True)
    assert steps.index(0.125) == 125_000_000


def test_a_grid_search_over_a_million_configurations_is_rejected() -> None:
    wide = {"name": "a", "kind": "int", "min": 1, "max": HUGE}
    with pytest.raises(ValidationError, match="million configurations or more"):
        SearchSpec.model_validate({"algorithm": "grid", "space": [wide]})


GIVEN = [
    {"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16},
    {"name": "optimizer", "kind": "choice", "values": ["adam", "sgd"]},
    {"name": "momentum", "kind": "boolean", "when": {"name": "optimizer", "in": ["sgd"]}},
    {"name": "nesterov", "kind": "boolean", "when": {"name": "momentum", "in": [True]}},
]


@pytest.mark.parametrize(
    ("values", "faulty"),
    [
        ({"units": 20, "optimizer": "adam"}, []),
        ({"units": 65, "optimizer": "lion", "momentum": True}, ["units", "optimizer"]),
        ({"units": 16, "optimizer": "adam", "momentum": True, "nesterov": True}, ["momentum", "nesterov"]),
        ({"units": 16, "optimizer": "adam", "nesterov": True}, ["nesterov"]),
        ({"units": 16, "optimizer": "sgd", "momentum": 3, "nesterov": True}, ["momentum"]),
        ({"optimizer": "adam", "depth": 3}, ["units", "depth"]),
    ],
)
def test_every_invalid_value_of_a_configuration_is_named(values: dict[str, Any], faulty: list[str]) -> None:
    space = TypeAdapter(Space).validate_python(GIVEN)
    assert [name for name, _ in value_errors(space, values)] == faulty
    if not faulty:
        assert check_values(space, values) == values


@pytest.mark.parametrize("value", [None, [1], {}, "3", True, float("nan"), 10**400])
def test_a_value_outside_the_range_is_rejected_with_a_message(value: Any) -> None:
    space = SearchSpec.model_validate(
        {
            "algorithm": "random",
            "objective": {"metric": "val_loss", "direction": "min"},
            "space": [{"name": "units", "kind": "int", "min": 1, "max": 9}],
            "max_trials": 3,
        }
    ).space
    with pytest.raises(ValueError, match="'units' must be int from 1 to 9, got"):
        check_values(space, {"units": value})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"kind": "choice", "values": [None, 16]}, "expected true or false, a number or a text (got null)"),
        ({"kind": "choice", "values": [[1, 2]]}, "expected true or false, a number or a text (got [1, 2])"),
        ({"kind": "fixed", "value": None}, "expected true or false, a number or a text (got null)"),
        ({"name": "num layers", "kind": "boolean"}, "for example 'num_layers'"),
    ],
)
def test_one_wrong_value_has_one_problem(row: Json, message: str) -> None:
    sent = {"search": {"space": [{"name": "size", **row}]}, "data": {"dataset": "a"}}
    sent["model"] = {"kind": "template", "template": "mlp"}
    with pytest.raises(ValidationError) as caught:
        ExperimentSpec.model_validate(sent)
    (problem,) = problems(caught.value, sent)
    assert message in problem.message
