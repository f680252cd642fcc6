"""Our hyperparameters beside KerasTuner's: the same values, and where not, on purpose."""

import json
import random
from typing import Any

import pytest
from keras_tuner import HyperParameters
from pydantic import TypeAdapter

from jobs.spec.formats import importing, keras_tuner
from jobs.spec.space.search_space import Parameter, Space

PARAMETERS = TypeAdapter(Parameter)


def ours(kind: str, low: float, high: float, **more: Any) -> Any:
    return PARAMETERS.validate_python({"name": "x", "kind": kind, "min": low, "max": high, **more})


def theirs(kind: str, low: float, high: float, **more: Any) -> Any:
    hp = HyperParameters()
    getattr(hp, kind.capitalize())("x", low, high, **more)
    return hp.space[0]


@pytest.mark.parametrize("sampling", ["linear", "log", "reverse_log"])
@pytest.mark.parametrize(("low", "high", "step"), [(2, 32, 2), (3, 100, 3), (1, 1000, 7), (5, 5, 2)])
def test_stepped_whole_numbers_are_the_same(low: int, high: int, step: int, sampling: str) -> None:
    more = {"step": step, "sampling": sampling}
    values = sorted(int(round(value, 6)) for value in theirs("int", low, high, **more).values)
    assert list(ours("int", low, high, **more).grid()) == values


@pytest.mark.parametrize("sampling", ["linear", "log", "reverse_log"])
@pytest.mark.parametrize(("low", "high", "step"), [(1e-3, 10.0, 10.0), (0.5, 8.0, 2.0), (0.25, 3.0, 1.5)])
def test_stepped_numbers_are_the_same(low: float, high: float, step: float, sampling: str) -> None:
    more = {"step": step, "sampling": sampling}
    values = sorted(theirs("float", low, high, **more).values)
    assert list(ours("float", low, high, **more).grid()) == pytest.approx(values)


@pytest.mark.parametrize("sampling", ["linear", "log", "reverse_log"])
def test_a_number_without_a_step_is_drawn_from_the_same_distribution(sampling: str) -> None:
    class Fraction(random.Random):
        def random(self) -> float:
            return fraction

    for fraction in (0.0, 0.1, 0.5, 0.9):
        drawn = ours("float", 1e-4, 1e-1, sampling=sampling).sample(Fraction())
        assert drawn == pytest.approx(theirs("float", 1e-4, 1e-1, sampling=sampling).prob_to_value(fraction))


def test_on_purpose_the_upper_bound_is_reached_where_rounding_would_miss_it() -> None:
    more = {"step": 0.1}
    assert len(list(theirs("float", 0.0, 0.5, **more).values)) == 5, "0.5 is lost: 0.5 // 0.1 is 4"
    assert list(ours("float", 0.0, 0.5, **more).grid())[-1] == 0.5


def test_on_purpose_a_grid_without_a_step_holds_both_bounds() -> None:
    more = {"sampling": "log"}
    assert min(theirs("float", 1e-4, 1e-1, **more).values) > 1e-4
    grid = ours("float", 1e-4, 1e-1, **more).grid()
    assert (len(grid), grid[0], grid[-1]) == (10, 1e-4, 1e-1)


def test_on_purpose_a_default_must_be_a_value_that_is_tried() -> None:
    assert theirs("int", 16, 64, step=16, default=1000).default == 1000
    with pytest.raises(ValueError, match="is outside"):
        ours("int", 16, 64, step=16, default=1000)


def test_keras_tuner_takes_what_is_exported_and_gives_it_back() -> None:
    space = TypeAdapter(Space).validate_python(
        [
            {"name": "optimizer", "kind": "choice", "values": ["sgd", "adam"], "default": "adam"},
            {"name": "block/units", "kind": "int", "min": 8, "max": 64, "step": 2, "sampling": "log"},
            {"name": "layers", "kind": "int", "min": 1, "max": 3},
            {"name": "rate", "kind": "float", "min": 1e-4, "max": 0.1, "sampling": "reverse_log"},
            {"name": "norm", "kind": "boolean", "default": True,
             "when": [{"name": "optimizer", "in": ["sgd"]}, {"name": "layers", "in": [2, 3]}]},
            {"name": "momentum", "kind": "float", "min": 0.5, "max": 0.9, "step": 0.1, "default": 0.7,
             "when": {"name": "norm", "in": [True]}},
            {"name": "filters", "kind": "choice", "values": [16, 32]},
            {"name": "scale", "kind": "choice", "values": [0.5, 1.0]},
            {"name": "bias", "kind": "fixed", "value": True},
        ]
    )  # fmt: skip
    written = keras_tuner.write(space)
    hp = HyperParameters.from_config(json.loads(json.dumps(written)))
    assert [one.name for one in hp.space] == [one.name for one in space]
    back = importing.read(json.dumps(hp.get_config())).search["space"]
    assert TypeAdapter(Space).validate_python(back) == space


def test_a_choice_of_true_and_false_is_exported_as_their_boolean() -> None:
    space = (PARAMETERS.validate_python({"name": "x", "kind": "choice", "values": [True, False]}),)
    hp = HyperParameters.from_config(keras_tuner.write(space))
    assert hp.space[0].default is True
    assert set(hp.space[0].values) == {True, False}
