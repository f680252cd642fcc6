"""Hypermodels in the plan: data, time and errors."""

from typing import Any

import pytest

from jobs.queries.experiments import plan
from jobs.spec.space.values import apply_values
from tests.experiments.test_plan import wrong
from tests.world import World


def test_cnn_requires_images(world: World, spec: dict[str, Any]) -> None:
    body = {**spec, "data": {"dataset": "diabetes"}, "model": {"template": "cnn"}}
    assert "/spec/model/template" in wrong(world, body)


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        ("digits", "HyperResNet", "needs images of at least 32 × 32 pixels, but these have 8 × 8"),
        ("diabetes", "HyperXception", "needs images, but the data are vectors"),
    ],
)
def test_a_hypermodel_is_refused_for_data_that_do_not_suit_it(
    world: World, spec: dict[str, Any], data: str, name: str, reason: str
) -> None:
    body = {**spec, "data": {"dataset": data}, "model": {"kind": "hypermodel", "name": name}}
    assert reason in wrong(world, body)["/spec/model/name"]


def test_a_hypermodel_is_not_trained_for_numbers(world: World, spec: dict[str, Any]) -> None:
    body = {
        **spec,
        "data": {"dataset": "digits", "task": "regression"},
        "model": {"kind": "hypermodel", "name": "HyperXception"},
    }
    assert "cannot be trained for regression" in wrong(world, body)["/spec/model/name"]


def test_a_hypermodel_is_planned_with_a_warning_about_its_time(world: World, spec: dict[str, Any]) -> None:
    body = {**spec, "model": {"kind": "hypermodel", "name": "HyperXception", "args": {"pooling": "max"}}}
    verdict = plan.validate_spec(world.project, body)
    assert verdict.problems == [] and verdict.spec is not None and verdict.plan is not None
    assert verdict.spec.to_json()["model"] == body["model"]
    assert "made for GPUs" in " ".join(warning.message for warning in verdict.plan.warnings)


@pytest.mark.parametrize(
    ("model", "pointer"),
    [
        ({"kind": "hypermodel", "name": "HyperNet"}, "/spec/model/name"),
        ({"kind": "template", "template": "HyperResNet"}, "/spec/model/template"),
        (
            {"kind": "hypermodel", "name": "HyperResNet", "args": {"conv3_depth": 1}},
            "/spec/model/args/conv3_depth",
        ),
        (
            {"kind": "hypermodel", "name": "HyperResNet", "args": {"pooling": "flatten"}},
            "/spec/model/args/pooling",
        ),
    ],
)
def test_each_error_of_a_hypermodel_is_reported_at_its_field(
    world: World, spec: dict[str, Any], model: dict[str, Any], pointer: str
) -> None:
    assert list(wrong(world, {**spec, "model": model})) == [pointer]


def test_a_search_over_templates_may_try_a_hypermodel(world: World, spec: dict[str, Any]) -> None:
    space = [
        {"name": "template", "kind": "choice", "values": ["cnn", "HyperXception"]},
        {"name": "HyperXception/pooling", "kind": "choice", "values": ["avg", "max"],
         "when": {"name": "template", "in": ["HyperXception"]}},
    ]  # fmt: skip
    verdict = plan.validate_spec(world.project, {**spec, "search": {"space": space}})
    assert verdict.problems == [] and verdict.spec is not None
    tried = apply_values(verdict.spec, {"template": "HyperXception", "HyperXception/pooling": "max"})
    assert tried.to_json()["model"] == {
        "kind": "hypermodel",
        "name": "HyperXception",
        "args": {"pooling": "max"},
    }
