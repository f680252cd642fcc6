"""The problems that a plan reports, each at its field of the body."""

from typing import Any

import pytest

from jobs.queries.experiments import plan
from jobs.spec.sections import measures
from tests.experiments.test_plan import SHUFFLE, TWO, wrong
from tests.factories import make_dataset
from tests.world import World


def test_pointers_refer_to_the_body(world: World, searching: dict[str, Any]) -> None:
    searching["search"] = {
        **searching["search"],
        "space": [{"name": "units", "kind": "int", "min": 64, "max": 16}],
    }
    assert wrong(world, searching) == {"/spec/search/space/0/min": "min 64 is above max 16"}


ONE_DEVICE = {"shape": [1], "axis_names": ["data"]}


OVERRIDE = "/spec/precision/overrides/0"


@pytest.mark.parametrize(
    ("section", "value", "pointer"),
    [
        ("precision", {"policy": "float16"}, "/spec/precision/policy"),
        ("fit", {"batch_size": 0}, "/spec/fit/batch_size"),
        ("fit", {"epoch": 3}, "/spec/fit/epoch"),
        ("model", {"template": "mlp", "args": {"units": 0}}, "/spec/model/args/units"),
        ("model", {"args": {}}, "/spec/model/template"),
        ("mesh", {"shape": [3], "axis_names": ["data"]}, "/spec/fit/batch_size"),
        ("after", {"register": {"model": "m", "what": ["ensemble"]}}, "/spec/after/register"),
        ("after", {"ensemble": {}}, "/spec/after/ensemble"),
        ("resources", {"priority": "high"}, "/spec/resources/priority"),
        ("resources", {"hosts": 2}, "/spec/resources/hosts"),
        ("model", {"kind": "code", "digest": "a", "entry": "build"}, "/spec/model/digest"),
        ("mesh", {**ONE_DEVICE, "memory_fraction": 0.5}, "/spec/mesh/memory_fraction"),
        ("precision", {"overrides": [{"match": "a", "policy": "bfloat16"}]}, f"{OVERRIDE}/policy"),
        ("precision", {"overrides": [{"match": "a", "policy": "float16"}]}, f"{OVERRIDE}/policy"),
        ("precision", {"overrides": [{"match": "(", "policy": "float32"}]}, f"{OVERRIDE}/match"),
        ("search", {"space": [{"name": "width", "kind": "boolean"}]}, "/spec/search/space/0/name"),
        ("search", {"space": [SHUFFLE, SHUFFLE]}, "/spec/search/space/1/name"),
        ("search", {"space": [{**SHUFFLE, "when": {"name": "a", "in": [1]}}]}, "/spec/search/space/0/when"),
    ],
)
def test_each_error_is_reported_at_its_field(
    world: World, spec: dict[str, Any], section: str, value: dict[str, Any], pointer: str
) -> None:
    spec["fit"] = {"batch_size": 100}
    assert list(wrong(world, {**spec, section: value})) == [pointer]


def test_a_time_limit_of_trainings_is_refused_if_a_search_has_only_trials(
    world: World, spec: dict[str, Any]
) -> None:
    limited = {**spec, "search": {"space": [SHUFFLE]}, "resources": {"max_minutes": 5}}
    assert "set search.max_minutes" in wrong(world, limited)["/spec/resources/max_minutes"]
    assert not wrong(world, {**limited, "after": {"retrain": {}}})


def test_a_model_that_is_trained_in_float8_is_not_made_smaller_afterwards(
    world: World, spec: dict[str, Any]
) -> None:
    after = {"precision": {"policy": "float8"}, "after": {"quantize": {}}}
    assert "train in mixed_bfloat16" in wrong(world, {**spec, **after})["/spec/after/quantize"]


@pytest.mark.parametrize(
    ("search", "pointer"),
    [
        ({"options": {"factor": 3}}, "options"),
        ({"algorithm": "asha", "options": {"iterations": 2}}, "options/iterations"),
        ({"algorithm": "hyperband", "options": {"factor": 1}}, "options/factor"),
        ({"algorithm": "asha", "pruner": {"kind": "median"}}, "pruner"),
        ({"pruner": {"kind": "hyperband", "min_epochs": 5, "max_epochs": 3}}, "pruner/min_epochs"),
        ({"algorithm": "hyperband", "options": {"min_epochs": 5, "max_epochs": 3}}, "options/min_epochs"),
        ({"algorithm": "hyperband", "options": {"max_epochs": 101}}, "options/max_epochs"),
        (
            {"algorithm": "asha", "space": [{"name": "epochs", "kind": "choice", "values": [1]}]},
            "space/0/name",
        ),
        ({"algorithm": "bayesian", "objectives": TWO}, "objectives"),
        ({"objectives": TWO, "objective": TWO[1]}, "objective"),
        ({"objectives": TWO[:1]}, "objectives"),
        ({"objectives": [TWO[0], TWO[0]]}, "objectives"),
        ({"objective": {"metric": "accuracy"}}, "objective/metric"),
        ({"objectives": [TWO[0], {"metric": "val_mae"}]}, "objectives/1/metric"),
        ({"duplicates": "forget"}, "duplicates"),
        ({"algorithm": "tpe", "warm_start": 12345}, "warm_start"),
    ],
)
def test_each_error_of_a_search_is_reported_at_its_field(
    world: World, spec: dict[str, Any], search: dict[str, Any], pointer: str
) -> None:
    spec["fit"] = {"epochs": 100}
    body = {**spec, "search": {"space": [SHUFFLE], **search}}
    assert list(wrong(world, body)) == [f"/spec/search/{pointer}"]


@pytest.mark.parametrize(
    ("section", "value"),
    [("resources", {"hosts": 2})],
)
def test_a_value_that_a_later_release_will_have_is_not_available_yet(
    world: World, spec: dict[str, Any], section: str, value: dict[str, Any]
) -> None:
    assert "not available yet" in " ".join(wrong(world, {**spec, section: value}).values())


def test_an_objective_must_be_measured_for_this_task(world: World, searching: dict[str, Any]) -> None:
    searching["data"] = {"dataset": "diabetes"}
    assert "val_mae" in wrong(world, searching)["/spec/search/objective/metric"]


def test_an_unknown_data_set_is_named(world: World, spec: dict[str, Any]) -> None:
    messages = wrong(world, {**spec, "data": {"dataset": "nowhere"}})
    assert messages == {"/spec/data/dataset": "there is no data set 'nowhere' in yard"}


def test_a_data_set_without_a_version_that_could_be_read_is_a_problem(
    world: World, spec: dict[str, Any]
) -> None:
    versions = make_dataset("torn", project=world.project).versions
    body = {**spec, "data": {"dataset": "torn"}}
    versions.update(state="failed")
    message = "torn has no version that could be read; see its page"
    assert wrong(world, body) == {"/spec/data/dataset": message}
    versions.update(state="preparing")
    assert wrong(world, body) == {}, "it may still become ready"


def test_unusual_settings_give_warnings(world: World, spec: dict[str, Any]) -> None:
    body = {
        **spec,
        "fit": {"epochs": 100},
        "precision": {"policy": "mixed_float16"},
        "after": {"retrain": {"top": 1, "epochs_factor": 1.1}},
    }
    spec_plan = plan.validate_spec(world.project, body).plan
    assert spec_plan is not None
    at = {warning.pointer: warning.message for warning in spec_plan.warnings}
    assert "adds no epoch if the best epoch is below 10" in at["/after/retrain/epochs_factor"]
    assert {"/fit/early_stopping", "/precision/policy", "/resources/pool"} <= at.keys()


def test_names_agree_with_the_engine() -> None:
    losses = pytest.importorskip("workers.engine.models.losses")
    assert losses.LOSSES.keys() == measures.LOSSES.keys()
    assert losses.METRICS.keys() == measures.METRICS.keys()


@pytest.mark.parametrize("body", [None, [], "x", 7, {}, {"version": 2}, {"data": {}, "model": {}}])
def test_nonsense_is_rejected(world: World, body: Any) -> None:
    verdict = plan.validate_spec(world.project, body)
    assert not verdict.valid
    assert verdict.plan is None
