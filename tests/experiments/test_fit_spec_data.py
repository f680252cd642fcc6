"""Fit settings against the columns of the data: preprocessing, roles and groups."""

from typing import Any

import pytest

from jobs.spec.checks import data as data_checks
from jobs.spec.data.encoding import encoded
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from tests.datasets.making import SHOP
from tests.experiments.test_fit_spec import BASE, DIABETES_PROFILE, UNITS

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
    spec = ExperimentSpec.model_validate({**BASE, "data": {"dataset": "shop", "preprocessing": options}})
    (preprocessing_problem,) = (
        problem for problem in data_checks.problems(spec, profile) if "preprocessing" in problem.pointer
    )
    column = "" if "bmi" in options else f"/{next(iter(options))}"
    assert preprocessing_problem.pointer == f"/data/preprocessing{column}"
    assert message in preprocessing_problem.message


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
    def size_problems(size: int, **data: Any) -> dict[str, str]:
        return found_problems(REVIEWS, data={"preprocessing": {"review": {"size": size, **data}}})

    message = size_problems(1_001, encode=encode)["/data/preprocessing/review"]
    assert message == (
        f"column 'review' is encoded as {encode}, of which there are at most 1,000 n-grams of each kind; "
        "choose a size up to 1,000, or encode it as tokens"
    )
    assert size_problems(1_000, encode=encode) == size_problems(10_000, encode="tokens") == {}


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


def found_problems(profile: Profile = GROUPED, **parts: Any) -> dict[str, str]:
    body = {**BASE, "data": {"dataset": "shop", **parts.pop("data", {})}, **parts}
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
    message = found_problems(profile, data=data)[f"/data/{next(iter(data))}"]
    assert message.startswith("column 'id' has the role weight, so it is no feature and no target")


def test_folds_do_not_follow_the_role_time() -> None:
    search = {"max_trials": 1, "space": [UNITS], "evaluation": {"kind": "k_fold", "folds": 3}}
    search["objective"] = {"metric": "val_loss", "direction": "min"}
    assert "column 'bought' has the role time" in found_problems(search=search)["/search/evaluation/kind"]
    data = {"split": {"use_roles": False}}
    assert "/search/evaluation/kind" not in found_problems(search=search, data=data)


def with_groups(distinct: int | None) -> Profile:
    """Return the shop's profile where `city` has the role group and `distinct` values."""
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
    messages = found_problems(few)
    assert messages == {
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
