"""A smaller space around the best configuration."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from jobs.spec.space.search_space import Space
from jobs.spec.space.smaller_space import bounds_at_best, describe_changes, shrink_space

SPACE: TypeAdapter[Space] = TypeAdapter(Space)


def space(*rows: dict[str, Any]) -> Space:
    return SPACE.validate_python(list(rows))


def bounds(parameter: Any) -> tuple[Any, Any]:
    return parameter.min, parameter.max


@pytest.mark.parametrize(
    ("row", "best", "expected"),
    [
        ({"kind": "float", "min": 0.0, "max": 1.0}, 0.5, (0.25, 0.75)),
        ({"kind": "float", "min": 0.0, "max": 1.0}, 0.95, (0.5, 1.0)),
        ({"kind": "float", "min": 1e-4, "max": 1.0, "sampling": "log"}, 1e-2, (1e-3, 0.1)),
        ({"kind": "int", "min": 16, "max": 512, "step": 16}, 432, (272, 512)),
        ({"kind": "int", "min": 1, "max": 9}, 1, (1, 5)),
        ({"kind": "float", "min": 0.0, "max": 0.5, "step": 0.1}, 0.2, (0.1, 0.3)),
    ],
)
def test_half_of_a_range_is_kept_around_the_best_value(row: Any, best: Any, expected: Any) -> None:
    (parameter,) = shrink_space(space({"name": "x", **row}), {"x": best}, [])
    assert bounds(parameter) == pytest.approx(expected)
    assert parameter.takes(best)


def test_choices_of_good_configurations_are_kept_and_a_single_one_is_fixed() -> None:
    rows = (
        {"name": "optimizer", "kind": "choice", "values": ["adam", "sgd", "rmsprop"]},
        {"name": "bias", "kind": "boolean"},
        {
            "name": "momentum",
            "kind": "float",
            "min": 0,
            "max": 1,
            "when": {"name": "optimizer", "in": ["sgd"]},
        },
    )
    best: dict[str, Any] = {"optimizer": "adam", "bias": True}
    optimizer, bias, momentum = shrink_space(space(*rows), best, [{"optimizer": "sgd", "bias": True}])
    assert optimizer.grid() == ["adam", "sgd"]
    assert (bias.kind, bias.grid()) == ("fixed", [True])
    assert bounds(momentum) == (0, 1), "it is inactive in the best configuration"
    assert [p.name for p in shrink_space(space(*rows), best, [])] == ["optimizer", "bias"]


def test_billions_of_steps_are_not_listed() -> None:
    row = {"name": "x", "kind": "int", "min": 0, "max": 10**15, "step": 10}
    (parameter,) = shrink_space(space(row), {"x": 5 * 10**14}, [])
    assert bounds(parameter) == (250_000_000_000_000, 750_000_000_000_000)


def test_best_values_at_a_bound_are_named() -> None:
    rows = (
        {"name": "rate", "kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"},
        {"name": "units", "kind": "int", "min": 8, "max": 64},
    )
    assert bounds_at_best(space(*rows), {"rate": 0.0999, "units": 32}) == {"rate": 0.1}


def test_the_change_is_described_in_a_few_words() -> None:
    old = space({"name": "x", "kind": "float", "min": 0.0, "max": 1.0})
    assert describe_changes(old, shrink_space(old, {"x": 0.5}, [])) == ["x 0.25 to 0.75, instead of 0 to 1"]
