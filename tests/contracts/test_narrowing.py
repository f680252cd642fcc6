"""Narrowing a running search's space: valid changes, and errors with pointers."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from jobs.spec.space.narrowing import NotNarrower, changes, contains, narrow_space
from jobs.spec.space.search_space import IntParameter, Space, grid

UNITS = {"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16, "default": 64}
RATE = {"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"}
OPTIMIZER = {"name": "optimizer", "kind": "choice", "values": ["adam", "sgd", "rmsprop"]}
MOMENTUM = {
    "name": "optimizer_args/momentum",
    "kind": "float",
    "min": 0.0,
    "max": 0.9,
    "when": {"name": "optimizer", "in": ["sgd"]},
}
NORM = {"name": "batch_norm", "kind": "boolean"}


def space(*parameters: dict[str, Any]) -> Space:
    return TypeAdapter(Space).validate_python(parameters)


OLD = space(UNITS, RATE, OPTIMIZER, MOMENTUM, NORM)


def test_hyperparameters_and_fields_that_are_not_named_remain() -> None:
    new = narrow_space(OLD, [{"name": "units", "max": 32}])
    assert [parameter.name for parameter in new] == [parameter.name for parameter in OLD]
    units = new[0]
    assert isinstance(units, IntParameter)
    assert list(units.grid()) == [16, 32] and units.default is None, "a default outside the range is dropped"
    assert new[1:] == OLD[1:]
    assert changes(OLD, new) == [
        "units takes integers from 16 to 32 in steps of 16, before integers from 16 to 64 in steps of 16"
    ]


def test_a_hyperparameter_can_be_fixed_at_one_of_its_values() -> None:
    sent = [
        {"name": "units", "kind": "fixed", "value": 48},
        {"name": "batch_norm", "kind": "fixed", "value": True},
        {"name": "optimizer_args/momentum", "kind": "fixed", "value": 0.5},
    ]
    new = {parameter.name: parameter for parameter in narrow_space(OLD, sent)}
    assert list(new["units"].grid()) == [48]
    assert new["optimizer_args/momentum"].conditions() == OLD[3].conditions()


def test_a_hyperparameter_that_can_no_longer_be_active_is_removed() -> None:
    new = narrow_space(OLD, [{"name": "optimizer", "values": ["rmsprop", "adam"]}])
    assert [parameter.name for parameter in new] == ["units", "learning_rate", "optimizer", "batch_norm"]
    assert new[2].grid() == ["adam", "rmsprop"], (
        "in the old order, so that a grid search continues at its position"
    )
    assert "its condition can no longer be met" in " ".join(changes(OLD, new))


@pytest.mark.parametrize(
    ("sent", "place"),
    [
        ({"name": "units", "min": 0}, "min"),
        ({"name": "units", "max": 80}, "max"),
        ({"name": "units", "min": 24}, "min"),
        ({"name": "units", "step": 24}, "step"),
        ({"name": "units", "step": None}, "step"),
        ({"name": "units", "min": 64, "max": 16}, "min"),
        ({"name": "units", "min": "many"}, "min"),
        ({"name": "units", "kind": "choice", "values": [16]}, "kind"),
        ({"name": "units", "kind": "fixed", "value": 17}, "value"),
        ({"name": "units", "when": {"name": "optimizer", "in": ["sgd"]}}, "when"),
        ({"name": "learning_rate", "sampling": "linear"}, "sampling"),
        ({"name": "learning_rate", "max": 1.0}, "max"),
        ({"name": "optimizer", "values": ["adam", "lion"]}, "values"),
        ({"name": "batch_norm", "kind": "fixed", "value": 1}, "value"),
        ({"name": "layers", "min": 1}, "name"),
        ({"min": 1}, "name"),
    ],
)
def test_a_change_that_extends_the_space_is_an_error_with_a_pointer(sent: dict[str, Any], place: str) -> None:
    with pytest.raises(NotNarrower) as refused:
        narrow_space(OLD, [sent])
    assert refused.value.problems[0].pointer == f"/search/space/0/{place}"


def test_all_errors_are_reported_together() -> None:
    with pytest.raises(NotNarrower) as refused:
        narrow_space(
            OLD, [{"name": "units", "max": 80}, {"name": "units"}, {"name": "learning_rate", "min": 0}]
        )
    places = [problem.pointer for problem in refused.value.problems]
    assert places == ["/search/space/0/max", "/search/space/1/name", "/search/space/2/min"]


def test_a_logarithmic_integer_without_a_step_can_be_narrowed() -> None:
    old = space({"name": "units", "kind": "int", "min": 8, "max": 512, "sampling": "log"})
    (new,) = narrow_space(old, [{"name": "units", "kind": "fixed", "value": 100}])
    assert list(new.grid()) == [100]


@pytest.mark.parametrize(
    ("values", "inside"),
    [
        ({"units": 16, "learning_rate": 0.01, "optimizer": "adam", "batch_norm": True}, True),
        ({"units": 24, "learning_rate": 0.01, "optimizer": "adam", "batch_norm": True}, True),
        ({"units": 64, "learning_rate": 0.01, "optimizer": "adam", "batch_norm": True}, False),
        ({"units": 16, "learning_rate": 0.01, "optimizer": "sgd", "batch_norm": True}, False),
        ({"units": 16, "learning_rate": 0.01, "optimizer": "adam"}, False),
    ],
)
def test_a_space_contains_a_configuration_or_not(values: dict[str, Any], inside: bool) -> None:
    new = narrow_space(OLD, [{"name": "units", "max": 32}, {"name": "optimizer", "values": ["adam"]}])
    assert contains(new, values) is inside


def test_on_a_grid_only_its_points_are_contained() -> None:
    new = narrow_space(space(UNITS), [{"name": "units", "max": 32}])
    assert contains(new, {"units": 24}) and not contains(new, {"units": 24}, on_grid=True)
    assert all(contains(new, values, on_grid=True) for values in grid(new))
