"""Fit settings: validation, checks against the data, and values of searched paths."""

from typing import Any

import pytest
from pydantic import ValidationError

from jobs.spec.checks import data as data_checks
from jobs.spec.checks.warnings import warnings as check_warnings
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan import planning
from jobs.spec.plan.plan import Situation
from jobs.spec.problems import problems
from jobs.spec.sections.resources import WorkerSize
from jobs.spec.space.search_space import Value
from jobs.spec.space.values import apply_values
from tests.datasets.making import DIABETES, DIGITS

DIGITS_PROFILE, DIABETES_PROFILE = Profile.model_validate(DIGITS), Profile.model_validate(DIABETES)
BASE: dict[str, Any] = {
    "data": {"dataset": "digits"},
    "model": {"kind": "template", "template": "mlp"},
}


def body(fit: dict[str, Any] | None = None, *space: dict[str, Any], **search: Any) -> dict[str, Any]:
    searching = {"search": {"executions_per_trial": 2, "space": list(space), **search}} if space else {}
    return {**BASE, "fit": fit or {}, **searching}


def spec(fit: dict[str, Any] | None = None, *space: dict[str, Any], **search: Any) -> ExperimentSpec:
    return ExperimentSpec.model_validate(body(fit, *space, **search))


def choice(name: str, *values: Any, **when: list[Any]) -> dict[str, Any]:
    conditions = [{"name": parent, "in": allowed} for parent, allowed in when.items()]
    return {"name": name, "kind": "choice", "values": list(values), **({"when": conditions} if when else {})}


def when(parent: str, *allowed: Any, **row: Any) -> dict[str, Any]:
    return {**row, "when": {"name": parent, "in": list(allowed)}}


UNITS = choice("units", 8, 16)


@pytest.mark.parametrize(
    ("wrong", "pointer", "words"),
    [
        (
            body({"optimizer_args": {"momentum": 0.9}}),
            "/fit/optimizer_args/momentum",
            "adam has no 'momentum'; rmsprop, sgd have; adam takes amsgrad",
        ),
        (
            body({"optimizer": "sgd", "optimizer_args": {"momentum": 2}}),
            "/fit/optimizer_args/momentum",
            "less than 1 (got 2)",
        ),
        (body({"clipnorm": 1, "clipvalue": 1}), "/fit/clipvalue", "choose one of clipnorm and clipvalue"),
        (body({"schedule": {"kind": "cosine", "power": 2}}), "/fit/schedule/power", "not a field"),
        (body({"schedule": {"kind": "sawtooth"}}), "/fit/schedule", "sawtooth"),
        (body({"schedule": {"kind": "piecewise", "at": [4, 2]}}), "/fit/schedule/at", "ascending order"),
        (
            body({"epochs": 5, "schedule": {"kind": "warmup_cosine", "warmup_epochs": 5}}),
            "/fit/schedule/warmup_epochs",
            "leave nothing of 5 epochs",
        ),
        (body({"ema": {"momentum": 1.0}}), "/fit/ema/momentum", "less than 1"),
        (body({"augmentation": {"rotation": 0.7}}), "/fit/augmentation/rotation", "0.5"),
        (body({}, choice("schedule/size", 1)), "/search/space/0/name", "neither an argument"),
        (body({}, choice("optimizer/lr", 1)), "/search/space/0/name", "did you mean 'learning_rate'?"),
        (body({}, choice("banana", 1)), "/search/space/0/name", "all names are on the page"),
        (
            body({}, UNITS, evaluation={"kind": "k_fold", "folds": 1}),
            "/search/evaluation/folds",
            "greater than or equal to 2",
        ),
        (
            {
                **body({}, UNITS, evaluation={"kind": "k_fold"}),
                "data": {"dataset": "d", "split": {"time": "day"}},
            },
            "/search/evaluation",
            "use holdout with a split over time",
        ),
    ],
)
def test_an_invalid_fit_setting_is_reported_at_its_field(
    wrong: dict[str, Any], pointer: str, words: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        ExperimentSpec.model_validate(wrong)
    messages = {problem.pointer: problem.message for problem in problems(refused.value, wrong)}
    assert words in messages[pointer]


@pytest.mark.parametrize(
    ("asked", "profile", "pointer", "words"),
    [
        (spec({"augmentation": {"zoom": 0.1}}), DIABETES_PROFILE, "/fit/augmentation", "vectors"),
        (spec({}, choice("augmentation/zoom", 0.1)), DIABETES_PROFILE, "/search/space/0/name", "vectors"),
        (spec({"class_weights": {"x": 2}}), DIGITS_PROFILE, "/fit/class_weights/x", "no class 'x'"),
        (spec({"class_weights": "balanced"}), DIABETES_PROFILE, "/fit/class_weights", "regression"),
        (spec({}, choice("class_weights/x", 2.0)), DIGITS_PROFILE, "/search/space/0/name", "no class 'x'"),
        (
            spec({"schedule": {"kind": "reduce_on_plateau", "monitor": "val_r2"}}),
            DIGITS_PROFILE,
            "/fit/schedule/monitor",
            "not measured",
        ),
        (
            spec({"early_stopping": {"monitor": "val_r2"}}),
            DIGITS_PROFILE,
            "/fit/early_stopping/monitor",
            "not measured",
        ),
        (
            ExperimentSpec.model_validate({**BASE, "after": {"retrain": {"monitor": "val_r2"}}}),
            DIGITS_PROFILE,
            "/after/retrain/monitor",
            "not measured",
        ),
        (spec({}, choice("schedule/alpha", 0.1)), DIGITS_PROFILE, "/search/space/0", "needs a schedule"),
        (
            spec({"clipnorm": 1.0}, choice("clipvalue", 0.1)),
            DIGITS_PROFILE,
            "/search/space/0",
            "choose one of clipnorm and clipvalue",
        ),
        (
            spec({}, choice("optimizer", "sgd", "adam"), choice("optimizer_args/momentum", 0.9)),
            DIGITS_PROFILE,
            "/search/space/1",
            "with optimizer = 'adam': adam has no 'momentum'; rmsprop, sgd have",
        ),
        (
            spec({}, choice("schedule/kind", "cosine", "step"), choice("schedule/every", 5)),
            DIGITS_PROFILE,
            "/search/space/1",
            "with schedule/kind = 'cosine'",
        ),
    ],
)
def test_settings_that_do_not_match_the_data_or_a_trial_are_reported(
    asked: ExperimentSpec, profile: Profile, pointer: str, words: str
) -> None:
    messages = {problem.pointer: problem.message for problem in data_checks.problems(asked, profile)}
    assert words in messages[pointer]


def test_arguments_conditional_on_their_optimizer_are_valid() -> None:
    asked = spec(
        {"optimizer_args": {"beta_1": 0.8}},
        choice("optimizer", "sgd", "adam"),
        when("optimizer", "sgd", **choice("optimizer_args/momentum", 0.0, 0.9)),
        choice("schedule/kind", "constant", "warmup_cosine"),
        when("schedule/kind", "warmup_cosine", **choice("schedule/warmup_epochs", 1, 5)),
        choice("augmentation/rotation", 0.0, 0.1),
        choice("class_weights", "none", "balanced"),
    )
    assert data_checks.problems(asked, DIGITS_PROFILE) == []


def test_values_are_set_at_their_paths_and_replace_other_arguments() -> None:
    asked = spec(
        {
            "optimizer_args": {"amsgrad": True, "weight_decay": 0.1},
            "schedule": {"kind": "cosine", "alpha": 0.2},
        },
        choice("optimizer", "sgd", "adam"),
    )
    values: dict[str, Value] = {
        "optimizer": "sgd",
        "optimizer_args/momentum": 0.9,
        "schedule/kind": "step",
        "schedule/every": 4,
        "ema/momentum": 0.9,
        "class_weights/3": 2.0,
    }
    fit = apply_values(asked, values).fit
    assert fit.optimizer_arguments() == {"weight_decay": 0.1, "momentum": 0.9}
    assert fit.schedule is not None
    assert fit.schedule.model_dump() == {"kind": "step", "every": 4.0, "factor": 0.1}
    assert fit.ema is not None
    assert fit.ema.momentum == 0.9
    assert fit.class_weights == {"3": 2.0}


def test_folds_multiply_the_planned_executions() -> None:
    asked = spec({"epochs": 3}, UNITS, max_trials=4, evaluation={"kind": "k_fold", "folds": 5})
    now = Situation(free_slots=1, workers=(WorkerSize(1),))
    spec_plan = planning.make_plan(asked, DIGITS_PROFILE, now, ["search"])
    assert (spec_plan.executions, spec_plan.epochs) == (4 * 2 * 5, 4 * 2 * 5 * 3)
    pointers = {warning.pointer for warning in spec_plan.warnings}
    assert "/search/executions_per_trial" not in pointers


@pytest.mark.parametrize(
    ("fit", "warned"),
    [
        ({"class_weights": "balanced", "early_stopping": {"monitor": "val_loss"}}, True),
        ({"class_weights": "balanced", "early_stopping": {}}, False),
        ({"class_weights": "none", "early_stopping": {"monitor": "val_loss"}}, False),
    ],
)
def test_a_loss_without_class_weights_that_ends_trainings_with_them_has_a_warning(
    fit: dict[str, Any], warned: bool
) -> None:
    asked = spec(fit, UNITS, objective={"metric": "val_accuracy", "direction": "max"})
    messages = {warning.pointer: warning.message for warning in check_warnings(asked, DIGITS_PROFILE)}
    assert ("/fit/early_stopping/monitor" in messages) is warned
    if warned:
        assert "Leave the monitor empty to stop by the objective" in messages["/fit/early_stopping/monitor"]


def test_a_retraining_is_never_monitored_on_its_training_rows() -> None:
    with pytest.raises(ValidationError, match="begins with val_"):
        ExperimentSpec.model_validate({**BASE, "after": {"retrain": {"monitor": "loss"}}})
