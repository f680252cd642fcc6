"""The plan and the judge that serve the form, the API and submit."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from jobs.models import CodeVersion
from jobs.queries.experiments import duration_history, plan
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.space import size as space_size
from jobs.spec.space.search_space import FloatParameter
from tests.factories import make_code, make_experiment, make_job, make_trials
from tests.world import World


def wrong(world: World, body: dict[str, Any]) -> dict[str, str]:
    """Return a spec's problems by pointer."""
    return {problem.pointer: problem.message for problem in plan.validate_spec(world.project, body).problems}


DOCUMENT = Path(__file__).parents[2] / "docs" / "experiment-spec.md"


SHUFFLE = {"name": "shuffle", "kind": "boolean"}


def documented() -> dict[str, Any]:
    """Return the documented example."""
    example = re.search(r"```json\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert example is not None
    body: dict[str, Any] = json.loads(example.group(1))
    return body


def test_the_documented_example_is_valid_and_planned(world: World) -> None:
    verdict = plan.validate_spec(world.project, documented())
    assert verdict.problems == []
    spec_plan = verdict.plan
    assert spec_plan is not None
    assert (spec_plan.trials, spec_plan.executions, spec_plan.devices, spec_plan.batch_shards) == (
        20,
        40,
        8,
        4,
    )
    assert spec_plan.epochs == 40 * 100 + 4 * (200 + 240)
    assert (spec_plan.epochs_of_search, spec_plan.epochs_of_retraining) == (4000, 4 * (200 + 240))
    assert spec_plan.distinct is None, "learning_rate is continuous"
    assert spec_plan.grid_size == (4 * 10) + (4 * 6 * 10)
    assert spec_plan.steps == ("search", "train", "ensemble", "quantize", "register")
    assert (spec_plan.epoch_chosen_by, spec_plan.stopped_by) == ("val_accuracy", "val_loss")


LAYERS = {"name": "layers", "kind": "int", "min": 1, "max": 3}
STEPPED = {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.5, "step": 0.1}
FREE = {"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"}
SPREAD = {"name": "units", "kind": "int", "min": 1, "max": 2000, "sampling": "log"}


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ([LAYERS, STEPPED], "18 grid points"),
        ([{"name": "layers", "kind": "fixed", "value": 1}], "1 grid point"),
        ([LAYERS, FREE], "continuous in learning_rate; a grid over it would use 30 points"),
        ([{**FREE, "max": 1e-4}, LAYERS], "3 grid points"),
        ([SPREAD], "2\u202f000 configurations; a grid over them would use 10"),
        (
            [{**SPREAD, "max": 10**9}],
            "1\u202f000\u202f000\u202f000 configurations; a grid over them would use 10",
        ),
        ([LAYERS, {**STEPPED, "when": {"name": "layers", "in": [2, 3]}}], "13 grid points"),
    ],
)
def test_the_size_of_a_space_is_described(
    world: World, searching: dict[str, Any], space: list[Any], message: str
) -> None:
    searching["search"] = {**searching["search"], "space": space}
    spec_plan = plan.validate_spec(world.project, searching).plan
    assert spec_plan is not None
    assert spec_plan.space == message


def test_many_continuous_hyperparameters_are_counted() -> None:
    space = tuple(FloatParameter(**{**FREE, "name": name}) for name in "abcd")
    message = "continuous in 4 hyperparameters; a grid over it would use 10\u202f000 points"
    assert str(space_size.size_of_space(space)) == message


def test_a_training_has_no_space(world: World, spec: dict[str, Any]) -> None:
    spec_plan = plan.validate_spec(world.project, spec).plan
    assert spec_plan is not None
    assert (spec_plan.space, spec_plan.distinct, spec_plan.grid_size) == ("", None, 1)


def test_all_integers_of_a_logarithmic_range_are_distinct_values(
    world: World, searching: dict[str, Any]
) -> None:
    searching["search"] = {**searching["search"], "max_trials": 100, "space": [{**SPREAD, "max": 60}]}
    spec_plan = plan.validate_spec(world.project, searching).plan
    assert spec_plan is not None
    assert (spec_plan.grid_size, spec_plan.distinct) == (9, 60)
    at = {warning.pointer: warning.message for warning in spec_plan.warnings}
    assert at["/search/max_trials"].startswith("the space has only 60 distinct configurations")


def test_memory_is_that_of_the_largest_configuration(world: World, searching: dict[str, Any]) -> None:
    spec_plan = plan.validate_spec(world.project, searching).plan
    assert spec_plan is not None
    assert spec_plan.largest == {"units": 64}
    weights = (64 * 64 + 64 + 64 * 10 + 10) * 4
    assert spec_plan.memory is not None
    assert (spec_plan.memory.weights, spec_plan.memory.optimizer) == (weights, 2 * weights)


def test_conditional_hyperparameters_count_for_the_largest_configuration(
    world: World, spec: dict[str, Any]
) -> None:
    space = [
        {"name": "batch_norm", "kind": "boolean"},
        {
            "name": "units",
            "kind": "int",
            "min": 16,
            "max": 512,
            "when": {"name": "batch_norm", "in": [False]},
        },
    ]
    body = {**spec, "search": {"objective": {"metric": "val_loss"}, "space": space}}
    spec_plan = plan.validate_spec(world.project, body).plan
    assert spec_plan is not None
    assert spec_plan.largest == {"batch_norm": False, "units": 512}


TWO = [{"metric": "val_accuracy", "direction": "max"}, {"metric": "val_loss"}]


def test_brackets_are_planned_with_their_epochs(world: World, spec: dict[str, Any]) -> None:
    search = {"algorithm": "hyperband", "executions_per_trial": 2, "max_trials": 1000, "space": [FREE]}
    spec_plan = plan.validate_spec(world.project, {**spec, "fit": {"epochs": 9}, "search": search}).plan
    assert spec_plan is not None
    assert (spec_plan.trials, spec_plan.executions) == (9 + 5 + 3, 34)
    assert spec_plan.epochs == 2 * ((9 + 3 * 2 + 6) + (5 * 3 + 6) + 3 * 9)


@pytest.mark.parametrize("algorithm", ["random", "grid", "hyperband"])
def test_algorithms_without_warm_start_reject_it(world: World, spec: dict[str, Any], algorithm: str) -> None:
    earlier = make_job(project=world.project, by=world.owner, state="completed")
    search = {"space": [SHUFFLE], "algorithm": algorithm, "warm_start": earlier.pk}
    (problem,) = plan.validate_spec(world.project, {**spec, "search": search}).problems
    assert problem.pointer == "/spec/search/warm_start"
    assert "use bayesian or tpe" in problem.message


def test_the_first_of_several_objectives_is_the_main_one(world: World, spec: dict[str, Any]) -> None:
    verdict = plan.validate_spec(world.project, {**spec, "search": {"space": [SHUFFLE], "objectives": TWO}})
    assert verdict.spec is not None and verdict.spec.search is not None
    assert verdict.spec.search.objective.metric == "val_accuracy"
    assert plan.validate_spec(world.project, verdict.spec.to_json()).spec == verdict.spec


def test_the_plan_contains_an_estimate_from_earlier_trainings(
    world: World, searching: dict[str, Any]
) -> None:
    body = {**searching, "fit": {"epochs": 100, "early_stopping": {"patience": 2}}}
    experiment = make_experiment(project=world.project, by=world.owner, spec=body)
    make_trials(make_job(by=world.owner, experiment=experiment, state="completed"))
    spec_plan = plan.validate_spec(world.project, body, experiment=experiment).plan
    assert spec_plan is not None
    assert (spec_plan.epochs, spec_plan.epochs_likely) == (800, 40), (
        "8 trainings to their best epoch, 3, and 2 more"
    )
    assert spec_plan.device_hours == pytest.approx(800 * 36 / 3600)
    assert spec_plan.device_hours_likely == pytest.approx(40 * 36 / 3600)
    assert spec_plan.estimate.startswith(
        "Based on 8 earlier trainings in this experiment: 5 epochs each at 36 s"
    )


def test_an_estimate_for_code_is_from_trainings_of_the_same_code(
    world: World, searching: dict[str, Any]
) -> None:
    first, next_one, other = (
        make_code(name, project=world.project, by=world.owner) for name in ("net", "net", "other")
    )

    def spec(code: CodeVersion) -> dict[str, Any]:
        model = {"kind": "code", "digest": code.digest, "entry": "build_model"}
        return {**searching, "model": model, "search": {**searching["search"], "space": []}}

    experiment = make_experiment(project=world.project, by=world.owner, spec=spec(first))
    make_trials(make_job(by=world.owner, experiment=experiment, state="completed"))
    is_known = [
        duration_history.past_durations(world.project, ExperimentSpec.model_validate(spec(code)), None)
        is not None
        for code in (first, next_one, other)
    ]
    assert is_known == [True, True, False]


def test_a_space_is_described_in_words(world: World, searching: dict[str, Any]) -> None:
    rows = [LAYERS, {**STEPPED, "default": 0.2, "when": {"name": "layers", "in": [2, 3]}}, FREE]
    spec_plan = plan.validate_spec(
        world.project, {**searching, "search": {**searching["search"], "space": rows}}
    ).plan
    assert spec_plan is not None
    assert [(line.name, line.takes, line.when) for line in spec_plan.summary] == [
        ("layers", "integers from 1 to 3", ""),
        ("dropout", "numbers from 0.0 to 0.5 in steps of 0.1; default 0.2", "layers is 2 or 3"),
        ("learning_rate", "numbers from 0.0001 to 0.1, log scale", ""),
    ]
