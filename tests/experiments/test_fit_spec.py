"""Fit settings: validation, checks against the data, and values of searched paths."""

from typing import Any

import pytest
from pydantic import ValidationError

from jobs.spec.checks import data as data_checks
from jobs.spec.checks.warnings import warnings as check_warnings
from jobs.spec.data.encoding import encoded
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan import plan
from jobs.spec.plan.plan import Situation
from jobs.spec.problems import problems
from jobs.spec.sections.resources import WorkerSize
from jobs.spec.space.search_space import Value
from jobs.spec.space.values import apply_values
from tests.datasets.making import DIABETES, DIGITS, SHOP

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
    found = {problem.pointer: problem.message for problem in problems(refused.value, wrong)}
    assert words in found[pointer]


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
    found = {problem.pointer: problem.message for problem in data_checks.problems(asked, profile)}
    assert words in found[pointer]


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
    found = plan.make_plan(asked, DIGITS_PROFILE, now, ["search"])
    assert (found.executions, found.epochs) == (4 * 2 * 5, 4 * 2 * 5 * 3)
    pointers = {warning.pointer for warning in found.warnings}
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
    found = {warning.pointer: warning.message for warning in check_warnings(asked, DIGITS_PROFILE)}
    assert ("/fit/early_stopping/monitor" in found) is warned
    if warned:
        assert "Leave the monitor empty to stop by the objective" in found["/fit/early_stopping/monitor"]


def test_a_retraining_is_never_monitored_on_its_training_rows() -> None:
    with pytest.raises(ValidationError, match="begins with val_"):
        ExperimentSpec.model_validate({**BASE, "after": {"retrain": {"monitor": "loss"}}})


SHOP_PROFILE = Profile.model_validate({**SHOP, "has_pipeline": True})


@pytest.mark.parametrize(
    ("options", "profile", "message"),
    [
        ({"towns": {"encode": "hash"}}, SHOP_PROFILE, "no column 'towns'; the columns are id, city"),
        ({"city": {"impute": "mean"}}, SHOP_PROFILE, "column 'city' of type category has no mean"),
        (
            {"city": {"size": 20}},
            SHOP_PROFILE,
            "is not encoded as embedding, words, characters, words_and_characters, tokens, so it has no size",
        ),
        ({"city": {"indicator": True}}, SHOP_PROFILE, "is encoded as one_hot, so it has no indicator"),
        ({"id": {"encode": "hash"}}, SHOP_PROFILE, "column 'id' is no feature of this experiment; leave out"),
        ({"price": {"impute": "mean"}}, SHOP_PROFILE, "column 'price' is no feature of this experiment"),
        ({"bmi": {"impute": "mean"}}, DIABETES_PROFILE, "only tables have preprocessing"),
    ],
)
def test_preprocessing_that_does_not_fit_the_data_is_a_problem(
    options: dict[str, Any], profile: Profile, message: str
) -> None:
    given = ExperimentSpec.model_validate({**BASE, "data": {"dataset": "shop", "preprocessing": options}})
    (found,) = (
        problem for problem in data_checks.problems(given, profile) if "preprocessing" in problem.pointer
    )
    column = "" if "bmi" in options else f"/{next(iter(options))}"
    assert found.pointer == f"/data/preprocessing{column}"
    assert message in found.message


REVIEWS: Profile = Profile.model_validate(
    {
        **SHOP,
        "features": ["city", "bought", "review"],
        "columns": [
            *SHOP["columns"],
            {"name": "review", "role": "feature", "type": "text", "dtype": "text", "ngrams": 5_000},
        ],
    }
)


@pytest.mark.parametrize("encode", ["words", "characters", "words_and_characters"])
def test_more_ngrams_than_a_text_can_have_are_a_problem_with_the_bound(encode: str) -> None:
    def found(size: int, **data: Any) -> dict[str, str]:
        return found_problems(REVIEWS, data={"preprocessing": {"review": {"size": size, **data}}})

    message = found(1_001, encode=encode)["/data/preprocessing/review"]
    assert message == (
        f"column 'review' is encoded as {encode}, of which there are at most 1,000 n-grams of each kind; "
        "choose a size up to 1,000, or encode it as tokens"
    )
    assert found(1_000, encode=encode) == found(10_000, encode="tokens") == {}


def test_the_bound_of_a_size_follows_from_the_encoding_of_all_texts() -> None:
    options = {"review": {"size": 5_000}}
    pointer = "/data/preprocessing/review"
    assert "as words, of" in found_problems(REVIEWS, data={"preprocessing": options})[pointer]
    assert found_problems(REVIEWS, data={"preprocessing": options, "texts": "tokens"}) == {}


def test_an_encoding_of_texts_is_a_problem_if_no_feature_is_a_text() -> None:
    message = {"/data/texts": "no feature of these data is a text; leave out data.texts"}
    assert found_problems(SHOP_PROFILE, data={"texts": "tokens"}) == message
    assert found_problems(DIABETES_PROFILE, data={"texts": "words"}) == message
    assert found_problems(REVIEWS, data={"texts": "tokens", "features": ["city"]}) == message
    assert found_problems(REVIEWS, data={"texts": "tokens"}) == {}


def test_the_plan_knows_the_shape_that_another_encoding_gives() -> None:
    def shape(options: dict[str, Any]) -> tuple[int, ...]:
        data = {"dataset": "shop", "preprocessing": {"city": options}}
        return encoded(ExperimentSpec.model_validate({**BASE, "data": data}), SHOP_PROFILE).input_shape

    # A date fills 7 or 8 positions, and the city one of each value or an index.
    assert shape({}) == SHOP_PROFILE.input_shape
    assert shape({"encode": "hash"})[0] == shape({})[0] - 4
    assert shape({"encode": "embedding", "size": 20})[0] == shape({})[0] - 4


GROUPED = Profile.model_validate(
    {
        **SHOP,
        "columns": [
            {**column, "role": "time" if column["name"] == "bought" else column["role"]}
            for column in SHOP["columns"]
        ],
    }
)


def found_problems(profile: Profile = GROUPED, **given: Any) -> dict[str, str]:
    body = {**BASE, "data": {"dataset": "shop", **given.pop("data", {})}, **given}
    return {
        problem.pointer: problem.message
        for problem in data_checks.problems(ExperimentSpec.model_validate(body), profile)
    }


def test_a_split_along_a_column_with_gaps_is_a_problem_also_if_its_role_chooses_it() -> None:
    message = "column 'bought' has no value in 2 rows; a split needs one in each row"
    assert found_problems()["/data/split/time"] == message
    assert found_problems(data={"split": {"group": "bought"}})["/data/split/group"] == message
    assert "/data/split/time" not in found_problems(data={"split": {"use_roles": False}})


@pytest.mark.parametrize("data", [{"target": "id"}, {"features": ["city", "id"]}])
def test_the_column_of_weights_is_no_feature_and_no_target(data: dict[str, Any]) -> None:
    profile = Profile.model_validate({**SHOP, "weight": "id"})
    found = found_problems(profile, data=data)[f"/data/{next(iter(data))}"]
    assert found.startswith("column 'id' has the role weight, so it is no feature and no target")


def test_folds_do_not_follow_the_role_time() -> None:
    search = {"max_trials": 1, "space": [UNITS], "evaluation": {"kind": "k_fold", "folds": 3}}
    search["objective"] = {"metric": "val_loss", "direction": "min"}
    assert "column 'bought' has the role time" in found_problems(search=search)["/search/evaluation/kind"]
    data = {"split": {"use_roles": False}}
    assert "/search/evaluation/kind" not in found_problems(search=search, data=data)


def with_groups(distinct: int | None) -> Profile:
    """Return the profile of the shop with the role group for the city, of so many values."""
    columns = [
        {**column, "role": "group", "distinct": distinct} if column["name"] == "city" else column
        for column in SHOP["columns"]
    ]
    return Profile.model_validate({**SHOP, "features": ["bought"], "columns": columns})


def test_too_few_groups_for_the_parts_are_a_problem_also_if_the_role_chooses_the_column() -> None:
    few = with_groups(2)
    message = (
        "column 'city' has 2 different values; a split by group needs at least 3, one each for training, "
        "validation and test"
    )
    found = found_problems(few)
    assert found == {
        "/data/split/group": f"{message}; to split without it, set data.split.use_roles to false"
    }
    assert found_problems(few, data={"split": {"group": "city"}}) == {"/data/split/group": message}
    assert found_problems(few, data={"split": {"use_roles": False}}) == {}
    assert found_problems(with_groups(3)) == found_problems(with_groups(None)) == {}


def test_fewer_groups_than_folds_and_the_test_part_are_a_problem() -> None:
    search = {"max_trials": 1, "space": [UNITS], "evaluation": {"kind": "k_fold", "folds": 3}}
    search["objective"] = {"metric": "val_loss", "direction": "min"}
    message = "column 'city' has 3 different values; 3 folds and the test part need at least 4"
    assert found_problems(with_groups(3), search=search) == {"/search/evaluation/folds": message}
    assert found_problems(with_groups(4), search=search) == {}


def test_another_target_with_gaps_is_a_problem_with_their_number() -> None:
    message = found_problems(data={"target": "bought"})["/data/target"]
    assert "column 'bought' has no value in 2 rows" in message
