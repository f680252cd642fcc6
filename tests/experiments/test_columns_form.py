"""The choices for each column of a table in the experiment form."""

from typing import Any

import pytest
from django.test import Client

from jobs.spec.data.column_plans import plan_column
from jobs.spec.data.columns import ColumnOptions
from jobs.spec.data.profile import Column, Profile
from tests.datasets.making import SHOP, make_ready
from tests.factories import make_dataset
from tests.world import World
from webapp.forms.experiments.experiment.preprocessing import choice_of, column_choices

PLACE = "/p/yard/experiments/columns?dataset=shop"
COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "number", "missing": 3},
    "rooms": {"type": "integer", "frequent": 7, "distinct": 9},
    "sold": {"type": "boolean"},
    "city": {"type": "category", "distinct": 3, "frequent": 2},
    "street": {"type": "category", "distinct": 900, "frequent": 40},
    "code": {"type": "category", "distinct": 900, "frequent": 0},
    "review": {"type": "text", "ngrams": 800},
    "bought": {"type": "date", "missing": 1},
}


def column(name: str) -> Column:
    return Column.model_validate({"name": name, "role": "feature", "dtype": "x", **COLUMNS[name]})


@pytest.fixture
def shop(world: World) -> Client:
    dataset = make_dataset("shop", project=world.project, by=world.owner)
    make_ready(dataset.versions.get(), SHOP)
    return world.client(world.owner)


@pytest.mark.parametrize("name", COLUMNS)
def test_each_choice_that_is_offered_is_valid_for_its_type(name: str) -> None:
    choice, tried = choice_of(column(name)), list[dict[str, Any]]()
    for option in choice.encodings[1:]:
        encode = option.value.strip('"')
        tried.append({"encode": encode})
        if encode in choice.sizes.split():
            tried.append({"encode": encode, "size": 10})
        if encode == "tokens":
            tried.append({"encode": encode, "length": choice.length})
        if encode == "hash":
            tried.append({"encode": encode, "buckets": 10})
    if choice.encode in choice.sizes.split():
        tried.append({"size": 10})
    if choice.has_impute:
        tried += [{"impute": "mean"}, {"impute": "constant", "constant": 0}]
    if choice.has_indicator:
        tried += [{"indicator": True}, {"indicator": False}]
    assert tried or name == "bought"
    for options in tried:
        plan_column(column(name), ColumnOptions.model_validate(options))


@pytest.mark.parametrize(
    ("name", "options", "size", "indicator"),
    [
        ("age", {"indicator": False}, 1, False),
        ("sold", {"indicator": True}, 1, True),
        ("street", {"size": 10}, 12, False),
        ("street", {"size": 9_000}, 42, False),
        ("review", {"size": 50}, 50, False),
        ("review", {"encode": "characters", "size": 50}, 50, False),
        ("bought", {"indicator": False}, 1, False),
    ],
)
def test_size_and_indicator_have_an_effect(
    name: str, options: dict[str, Any], size: int, indicator: bool
) -> None:
    plan = plan_column(column(name), ColumnOptions.model_validate(options))
    assert (plan.size, plan.indicator) == (size, indicator)


def test_the_proposal_is_shown_with_its_reason() -> None:
    words = {
        name: f"{choice.proposal} {choice.reason}" for name in COLUMNS if (choice := choice_of(column(name)))
    }
    assert words["city"] == (
        "5 positions: one for each value, for others, and for a missing one. "
        "It has 3 different values, at most 50."
    )
    assert "A vector for each of 40 values" in words["street"] and "more than 50" in words["street"]
    assert "None of its 900 values is in 5 rows or more" in words["code"]
    assert "a position that shows whether it is missing. 3 rows have no value" in words["age"]
    assert "No row of the file lacks a value" in words["sold"]


def test_the_columns_that_are_features_are_listed_and_found_by_name() -> None:
    profile = Profile.model_validate(SHOP)
    assert [choice.column.name for choice in column_choices(profile, (), "")] == ["city", "bought"]
    assert [choice.column.name for choice in column_choices(profile, (), "city")] == ["bought", "price"]
    assert [choice.column.name for choice in column_choices(profile, ("id", "city"), "")] == ["id", "city"]
    assert [choice.column.name for choice in column_choices(profile, (), "", "OUGH")] == ["bought"]


def test_the_form_gets_the_columns_of_the_chosen_version(shop: Client) -> None:
    page = shop.get(PLACE).content.decode()
    assert 'data-pointer="/data/preprocessing/city/encode"' in page
    assert 'data-pointer="/data/preprocessing/bought/indicator"' in page
    assert "price" not in page, "the target"
    assert "city" not in shop.get(f"{PLACE}&q=bou").content.decode()
    assert "No feature has a name with" in shop.get(f"{PLACE}&q=<b>").content.decode()


def test_other_data_have_a_sentence_instead(shop: Client, world: World) -> None:
    assert (
        "arrays are used as they are"
        in shop.get("/p/yard/experiments/columns?dataset=digits").content.decode()
    )
    assert "is reading" in shop.get("/p/yard/experiments/columns?dataset=none").content.decode()
    assert world.client(world.viewer).get(PLACE).status_code == 403
    assert world.client(world.stranger).get(PLACE).status_code == 404


def test_many_columns_are_shown_in_part(shop: Client, world: World) -> None:
    names = [f"c{i}/~" for i in range(40)]
    columns = [{"name": name, "role": "feature", "type": "number", "dtype": "float64"} for name in names]
    version = make_dataset("wide", project=world.project, by=world.owner).versions.get()
    make_ready(version, {**SHOP, "columns": [*columns, SHOP["columns"][-1]], "features": names})
    page = shop.get("/p/yard/experiments/columns?dataset=wide").content.decode()
    assert "30 more columns" in page
    assert "/data/preprocessing/c0~1~0/impute" in page
