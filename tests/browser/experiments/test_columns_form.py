"""The choices for each column of a table in the experiment form, by mouse and keyboard."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests import factories
from tests.browser.looking import Look
from tests.datasets.making import SHOP, bundle, make_ready
from tests.people import People

Open = Callable[..., Page]


@pytest.fixture
def form(people: People, open_as: Open) -> Page:
    bundle()
    dataset = factories.make_dataset("shop", project=people.project, by=people.owner)
    names = [*(f"measure {i}" for i in range(30)), "__proto__", "a/b~c"]
    more = [
        {"name": name, "role": "feature", "type": "number", "dtype": "float64", "missing": 4}
        for name in names
    ]
    text = {"name": "remark", "role": "feature", "type": "text", "dtype": "text", "length": 40}
    columns = [
        {**column, "role": "group" if column["name"] == "id" else column["role"]}
        for column in SHOP["columns"]
    ]
    profile = {**SHOP, "columns": [*columns, *more, text], "features": [*SHOP["features"], *names, "remark"]}
    make_ready(dataset.versions.get(), profile)
    return open_as(people.owner, f"/p/{people.project.slug}/experiments/new?dataset=shop&version=1")


def at(page: Page, pointer: str) -> Any:
    return page.locator(f'[id="at/spec{pointer}"]')


def chosen(page: Page) -> Any:
    return json.loads(page.locator(".ef-text").input_value())["data"].get("preprocessing")


def test_the_choices_of_a_column_follow_its_type_and_are_in_the_spec(form: Page, look: Look) -> None:
    page, city = form, "/data/preprocessing/city"
    expect(page.get_by_text("5 positions: one for each value")).to_be_visible()
    expect(page.get_by_text("“id” has the role group: rows are split with equal values")).to_be_visible()
    look(page, "experiment-columns")
    expect(at(page, f"{city}/buckets")).to_be_hidden()
    at(page, f"{city}/encode").select_option(label="a vector by hash value")
    expect(at(page, f"{city}/buckets")).to_be_visible()
    at(page, f"{city}/buckets").fill("64")
    assert chosen(page) == {"city": {"encode": "hash", "buckets": 64}}
    at(page, f"{city}/encode").select_option(label="a vector that the model learns")
    assert chosen(page) == {"city": {"encode": "embedding"}}, "hash values belong to another choice"
    at(page, f"{city}/encode").select_option("")
    assert chosen(page) is None


def test_a_column_is_found_and_chosen_by_keyboard(form: Page) -> None:
    page, place = form, "/data/preprocessing/measure 27"
    expect(page.get_by_text("25 more columns: find them by name.")).to_be_visible()
    page.get_by_label("Find columns by name").focus()
    page.keyboard.type("re 27")
    expect(page.get_by_role("group", name="measure 27")).to_be_visible()
    expect(page.get_by_role("group", name="city")).to_have_count(0)
    page.keyboard.press("Tab")
    expect(at(page, f"{place}/impute")).to_be_focused()
    page.keyboard.type("a c")
    page.keyboard.press("Tab")
    expect(at(page, f"{place}/constant")).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("7")
    assert chosen(page) == {"measure 27": {"impute": "constant", "constant": 7}}


def test_the_length_of_a_text_belongs_to_words_in_their_order(form: Page) -> None:
    page, place = form, "/data/preprocessing/remark"
    page.get_by_label("Find columns by name").fill("remark")
    expect(at(page, f"{place}/encode")).to_contain_text("as the template needs (proposed)")
    expect(at(page, f"{place}/length")).to_be_hidden()
    at(page, f"{place}/encode").select_option(label="words in their order")
    expect(at(page, f"{place}/length")).to_have_attribute("placeholder", "40")
    at(page, f"{place}/length").fill("60")
    at(page, f"{place}/size").fill("500")
    assert chosen(page) == {"remark": {"encode": "tokens", "length": 60, "size": 500}}
    at(page, f"{place}/encode").select_option(label="parts of words")
    assert chosen(page) == {"remark": {"encode": "characters"}}


def test_a_column_that_is_no_longer_a_feature_loses_its_options(form: Page) -> None:
    page = form
    at(page, "/data/preprocessing/city/encode").select_option(label="a vector by hash value")
    at(page, "/data/preprocessing/bought/indicator").select_option(label="yes")
    assert {*chosen(page)} == {"city", "bought"}
    features = at(page, "/data/features")
    features.fill("city, bo")
    assert {*chosen(page)} == {"city", "bought"}, "the name is not complete"
    features.fill("city, remark")
    features.blur()
    assert {*chosen(page)} == {"city"}


def test_a_feature_with_a_comma_in_its_name_is_in_quotes(form: Page) -> None:
    page, text = form, form.locator(".ef-text")
    features = at(page, "/data/features")
    features.fill('city, "dist, km"')
    features.blur()
    spec = json.loads(text.input_value())
    assert spec["data"]["features"] == ["city", "dist, km"]
    spec["data"]["features"] = ["dist, km", '"quoted"', "city"]
    text.fill(json.dumps(spec))
    expect(features).to_have_value('"dist, km", """quoted""", city')


@pytest.mark.parametrize("name", ["__proto__", "a/b~c"])
def test_a_column_may_have_any_name(form: Page, name: str) -> None:
    page = form
    page.get_by_label("Find columns by name").fill(name)
    group = page.get_by_role("group", name=name)
    group.get_by_label("If missing").select_option(label="mean")
    assert chosen(page) == {name: {"impute": "mean"}}
    assert page.evaluate("({}).impute") is None
    expect(page.locator("#experiment-form[data-verdict=ok]")).to_be_attached()
    group.get_by_label("If missing").select_option("")
    assert chosen(page) is None


def test_a_problem_of_a_choice_is_at_its_column(form: Page) -> None:
    page, place = form, "/data/preprocessing/city"
    expect(at(page, place)).to_be_visible()
    text = json.loads(page.locator(".ef-text").input_value())
    text["data"]["preprocessing"] = {"city": {"impute": "mean"}}
    page.locator(".ef-text").fill(json.dumps(text))
    expect(at(page, place)).to_contain_text("column 'city' of type category has no mean")
