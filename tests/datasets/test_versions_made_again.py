"""A version names the one from which it is made, and one that failed is corrected on its own page."""

from typing import Any

import pytest
from django.test import Client

from jobs.actions.data import profiles
from jobs.actions.data.dataset_roles import accept_offer
from jobs.models import DatasetVersion
from tests.datasets.making import SHOP, make_ready
from tests.datasets.test_api import send
from tests.markup import squeezed, text_of
from tests.world import World

PLACE = "/datasets/people/versions"
DATES = "column 'bought' is not of type date; state their format as date_format, for example %d/%m/%Y"
FORM = {
    "column": ["id", "city", "bought", "price"],
    "role": ["id", "feature", "feature", "target"],
    "type": ["integer", "category", "number", "number"],
    "date_format": ["", "", "", ""],
}
NUMBERS = {"finding": "39 of 40 are numbers.", "label": "Read", "change": {"name": "city", "type": "number"}}
CLASSES = {
    "finding": "Different classes of the target 'price' differ in their writing only.",
    "label": "Merge the writings of price",
    "change": {"name": "price", "merge_labels": True},
}
DIVIDED = {**CLASSES, "change": {"name": "price", "merge_labels": False}}


@pytest.fixture
def browser(world: World) -> Client:
    return world.client(world.owner)


def newest() -> DatasetVersion:
    return DatasetVersion.objects.latest("pk")


def shown(browser: Client, number: int) -> str:
    return text_of(browser.get(f"{PLACE}/{number}?project=yard"))


def shop(browser: Client, *offers: dict[str, Any], **fields: Any) -> None:
    send(browser, **fields)
    make_ready(newest(), {**SHOP, "offers": offers})


def test_a_version_that_is_read_again_names_its_origin_and_what_changes(browser: Client) -> None:
    shop(browser, NUMBERS)
    browser.post(f"{PLACE}/1/offers/0?project=yard")
    page = browser.get(f"{PLACE}/2?project=yard")
    assert "people.csv is read again with this change: city as number." in text_of(page)
    assert 'href="/datasets/people/versions/1?project=yard" >v1</a>' in squeezed(page.content.decode())
    make_ready(newest(), SHOP)
    assert "is read again" not in shown(browser, 2)


def test_only_the_changed_columns_of_a_form_are_named(browser: Client) -> None:
    shop(browser)
    browser.post(f"{PLACE}/1/roles?project=yard", {**FORM, "role": ["id", "group", "feature", "target"]})
    assert "with this change: city in the role group, bought as number." in shown(browser, 2)


def failed(browser: Client) -> str:
    shop(browser, target="price", features="city,bought")
    browser.post(f"{PLACE}/1/roles?project=yard", {**FORM, "type": ["integer", "category", "date", "number"]})
    profiles.record_profile_failure(newest().pk, {"code": "bad_data", "message": DATES})
    return squeezed(browser.get(f"{PLACE}/2?project=yard").content.decode())


def test_a_version_that_failed_has_the_columns_of_its_request_with_the_named_one_first(
    browser: Client,
) -> None:
    page = failed(browser)
    assert "Correct how it is read</a> with <i>Create v3</i>" in page
    names = [part.partition('"')[0] for part in page.split('name="column" value="')[1:]]
    assert names == ["bought", "id", "city", "price"]
    assert page.count("named in the message") == 1
    assert 'aria-label="date format of bought"' in page


def test_the_format_that_a_message_asks_for_is_stated_on_the_page_of_the_failed_version(
    browser: Client,
) -> None:
    failed(browser)
    form = {
        "column": ["bought", "id", "city", "price"],
        "role": ["feature", "id", "feature", "target"],
        "type": ["date", "integer", "category", ""],
        "date_format": ["%d/%m/%Y", "", "", ""],
    }
    assert browser.post(f"{PLACE}/2/roles?project=yard", form).status_code == 303
    assert newest().number == 3
    columns = {column["name"]: column for column in newest().request["columns"]}
    assert columns["bought"] == {
        "name": "bought", "role": "feature", "type": "date", "date_format": "%d/%m/%Y",
    }  # fmt: skip
    assert columns["price"] == {"name": "price", "role": "target"}


def test_rules_for_texts_stay_when_a_failed_version_is_corrected(browser: Client) -> None:
    send(browser, columns='[{"name": "city", "type": "category", "gap_words": ["none"]}]')
    profiles.record_profile_failure(newest().pk, {"code": "bad_data", "message": DATES})
    form = {"column": ["city"], "role": ["group"], "type": ["category"], "date_format": [""]}
    browser.post(f"{PLACE}/1/roles?project=yard", form)
    assert newest().request["columns"] == [
        {"name": "city", "role": "group", "type": "category", "gap_words": ["none"]}
    ]


@pytest.mark.parametrize("place", ["find-model", "experiments/new"])
def test_the_forms_for_a_model_remind_of_findings_about_the_target(browser: Client, place: str) -> None:
    shop(browser, NUMBERS, CLASSES)
    page = browser.get(f"/p/yard/{place}?dataset=people&version=1")
    assert "has a finding that is not decided: Different classes of the target" in text_of(page)
    assert "/datasets/people/versions/1?project=yard#findings-title" in page.content.decode()


@pytest.mark.parametrize("place", ["find-model", "experiments/new"])
def test_findings_about_features_and_merged_classes_need_no_reminder(browser: Client, place: str) -> None:
    shop(browser, NUMBERS, DIVIDED)
    page = browser.get(f"/p/yard/{place}?dataset=people&version=1")
    assert page.status_code == 200
    assert "not decided" not in text_of(page)


KEEP = {
    "finding": "'03/04/2021' is read as 3 April.",
    "label": "Keep day/month/year",
    "change": {"name": "bought", "type": "date", "date_format": "%d/%m/%Y"},
}
TURN = {
    **KEEP,
    "label": "Read it as month/day/year",
    "change": {"name": "bought", "type": "date", "date_format": "%m/%d/%Y"},
}


def dated(browser: Client, *offers: dict[str, Any]) -> None:
    send(browser)
    bought = {**SHOP["columns"][2], "date_format": "%d/%m/%Y"}
    columns = [*SHOP["columns"][:2], bought, SHOP["columns"][3]]
    make_ready(
        newest(), {**SHOP, "columns": columns, "offers": list(offers or (KEEP, TURN, NUMBERS, CLASSES))}
    )


def test_an_answer_that_changes_no_value_is_recorded_without_a_new_version(browser: Client) -> None:
    dated(browser)
    assert "is read as 3 April" in shown(browser, 1)
    answer = browser.post(f"{PLACE}/1/offers/0?project=yard")
    assert answer["Location"] == f"{PLACE}/1?project=yard"
    assert (newest().number, newest().state) == (1, "ready")
    assert "is read as 3 April" not in shown(browser, 1)
    assert "39 of 40 are numbers." in shown(browser, 1)
    # Versions that are made from it know the answer.
    browser.post(f"{PLACE}/1/offers/2?project=yard")
    assert newest().number == 2
    assert {"name": "bought", "type": "date", "date_format": "%d/%m/%Y"} in newest().request["columns"]


def test_with_rest_such_an_answer_returns_the_version_itself(browser: Client) -> None:
    dated(browser)
    answer = browser.post("/api/v1/datasets/people/versions/1/offers/0?project=yard")
    assert (answer.status_code, answer.json()["number"]) == (200, 1), "nothing is created"


def test_two_people_who_answer_for_two_columns_at_the_same_time_lose_no_answer(
    browser: Client, world: World
) -> None:
    town = {**KEEP, "finding": "City.", "change": {"name": "city", "type": "category"}}
    dated(browser, KEEP, town)
    first, second = newest(), newest()
    accept_offer(first, 0, by=world.owner)
    accept_offer(second, 1, by=world.owner)
    columns = {column["name"]: column for column in newest().request["columns"]}
    assert newest().number == 1
    assert columns["bought"]["date_format"] == "%d/%m/%Y" and columns["city"]["type"] == "category"


def test_several_marked_choices_make_one_new_version(browser: Client) -> None:
    dated(browser)
    page = squeezed(browser.get(f"{PLACE}/1?project=yard").content.decode())
    assert page.count('form="apply-offers"') == 4
    browser.post(f"{PLACE}/1/offers?project=yard", {"offer": ["1", "2", "3"]})
    assert newest().number == 2
    columns = {column["name"]: column for column in newest().request["columns"]}
    assert columns["bought"]["date_format"] == "%m/%d/%Y"
    assert (columns["city"]["type"], columns["price"]["merge_labels"]) == ("number", True)


@pytest.mark.parametrize(
    ("marked", "status"), [(["0", "1"], 422), ([], 422), (["9"], 404), (["x"], 404), (["-1"], 404)]
)
def test_marked_choices_that_cannot_be_accepted_together_change_nothing(
    browser: Client, marked: list[str], status: int
) -> None:
    dated(browser)
    answer = browser.post(f"{PLACE}/1/offers?project=yard", {"offer": marked})
    assert answer.status_code == status
    if marked == ["0", "1"]:
        assert "exclude each other for column 'bought'" in text_of(answer)
    assert newest().number == 1
