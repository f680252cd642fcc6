"""A finding with an offer is corrected by one button, or by one request, in a new version."""

import json
from typing import Any

import pytest
from django.test import Client

from jobs.models import AuditEvent, DatasetVersion
from tests.datasets.making import SHOP, make_ready
from tests.datasets.test_api import send
from tests.markup import squeezed
from tests.world import World
from webapp.pages.data.version_settings import SHOWN_OFFERS

NUMBERS = {
    "finding": "Column 'bought': 39 of 40 values are numbers; row 7 has 'len'.",
    "label": "Read as numbers; the other value counts as missing",
    "change": {"name": "bought", "type": "number"},
}
WORD = {
    "finding": "Target 'price': 'NA' in 3 of 40 rows is read as a class, not as missing.",
    "label": "Leave out the 3 rows with 'NA'",
    "change": {"name": "price", "gap_words": ["NA"]},
}
OFFERING = {**SHOP, "offers": [NUMBERS, WORD]}
PLACE = "/datasets/people/versions/1"
API = "/api/v1/datasets/people/versions/1"


@pytest.fixture
def api(world: World) -> Client:
    return world.client(world.owner)


def newest() -> DatasetVersion:
    return DatasetVersion.objects.latest("pk")


def offering(api: Client, **fields: Any) -> DatasetVersion:
    send(api, **fields)
    return make_ready(newest(), OFFERING)


def test_an_offer_is_a_finding_with_a_button_that_works_without_javascript(api: Client) -> None:
    offering(api)
    page = squeezed(api.get(f"{PLACE}?project=yard").content.decode())
    assert "39 of 40 values are numbers; row 7 has &#x27;len&#x27;." in page
    assert f'action="{PLACE}/offers/0?project=yard"' in page
    button = '<button class="btn btn-sm" aria-describedby="offer-0">Read as numbers; the other value'
    assert button in page
    answer = api.post(f"{PLACE}/offers/0?project=yard")
    assert answer.status_code == 303
    assert newest().number == 2
    assert newest().request["columns"] == [{"name": "bought", "type": "number"}]
    before, after = DatasetVersion.objects.filter(dataset__slug="people").order_by("number")
    assert before.upload_id == after.upload_id
    assert before.state == "ready" and "columns" not in before.request


def test_several_offers_for_one_finding_are_buttons_under_one_sentence(api: Client) -> None:
    send(api)
    words = {**NUMBERS, "label": "Keep words", "change": {"name": "bought", "type": "category"}}
    make_ready(newest(), {**SHOP, "offers": [NUMBERS, WORD, words]})
    page = squeezed(api.get(f"{PLACE}?project=yard").content.decode())
    assert page.count("39 of 40 values are numbers") == 1
    assert '<button class="btn btn-sm" aria-describedby="offer-0">Keep words' in page
    assert f'action="{PLACE}/offers/2?project=yard"' in page
    api.post(f"{PLACE}/offers/2?project=yard")
    assert newest().request["columns"] == [{"name": "bought", "type": "category"}]


def test_many_findings_with_offers_are_shown_in_parts_with_the_places_of_all(api: Client) -> None:
    send(api)
    many = [{**NUMBERS, "finding": f"Finding {place}."} for place in range(200)]
    make_ready(newest(), {**SHOP, "offers": many})
    page = squeezed(api.get(f"{PLACE}?project=yard").content.decode())
    assert page.count("/offers/") == SHOWN_OFFERS
    assert f"{SHOWN_OFFERS} of 200 choices" in page
    last = squeezed(api.get(f"{PLACE}?project=yard&offers=196").content.decode())
    assert page.count("Finding 0.") == 1
    assert last.count("/offers/") == 4
    assert f'action="{PLACE}/offers/199?project=yard"' in last


def test_the_same_finding_on_many_columns_is_one_with_the_others_below(api: Client) -> None:
    send(api)
    many = [
        {
            "finding": f"Column 'c{place}' differs in its writing: {place}.",
            "label": f"Merge the writings of c{place}",
            "change": {"name": f"c{place}", "merge_labels": True},
        }
        for place in range(30)
    ]
    make_ready(newest(), {**SHOP, "offers": [NUMBERS, *many]})
    page = squeezed(api.get(f"{PLACE}?project=yard").content.decode())
    assert "The same for 29 more columns: c1, c2, c3" in page
    assert page.index("<details") < page.index("Column &#x27;c1&#x27; differs in its writing: 1.")
    assert "choices</span>" not in page, "two findings need no second page"
    assert f'action="{PLACE}/offers/30?project=yard"' in page


def test_the_words_in_place_of_numbers_are_named_in_the_table_of_columns(api: Client) -> None:
    send(api)
    price = SHOP["columns"][3] | {"gap_counts": {"NA": 12, "?": 1}}
    make_ready(newest(), {**SHOP, "columns": [*SHOP["columns"][:3], price]})
    page = squeezed(api.get(f"{PLACE}?project=yard").content.decode())
    assert "read as missing: &#x27;NA&#x27; in 12, &#x27;?&#x27; in 1" in page


def test_the_table_of_columns_shows_how_texts_were_read(api: Client) -> None:
    send(api)
    rules = {
        "number_format": {"thousands": ",", "currency": "$"},
        "gap_words": ["NA"],
        "misfits": {"count": 3, "rows": [7], "examples": ["len"]},
    }
    make_ready(newest(), {**SHOP, "columns": [*SHOP["columns"][:3], SHOP["columns"][3] | rules]})
    page = squeezed(api.get(f"{PLACE}?project=yard").content.decode())
    assert "written as $1,234.5" in page
    assert "missing if it is NA" in page
    assert "3 of another type: row 7 has &#x27;len&#x27; …" in page


def test_an_offer_is_accepted_by_its_place_in_the_schema(api: Client) -> None:
    offering(api, target="price")
    offers = api.get(f"{API}?project=yard").json()["schema"]["offers"]
    assert [offer["label"] for offer in offers] == [NUMBERS["label"], WORD["label"]]
    stated = {name: value for name, value in offers[1]["change"].items() if value is not None}
    assert stated == WORD["change"]
    answer = api.post(f"{API}/offers/1?project=yard")
    assert answer.status_code == 201
    assert answer.json()["number"] == 2
    request = newest().request
    assert request["columns"] == [{"name": "price", "gap_words": ["NA"]}]
    # Accepting is the consent to leave the rows out.
    assert request["rows_without_target"] == "leave_out"
    assert request["target"] == "price"
    made = AuditEvent.objects.filter(action="dataset.version").latest("pk")
    assert made.actor is not None and made.actor.username == "olga"


def test_an_offer_changes_only_its_own_fields_of_earlier_corrections(api: Client) -> None:
    offering(api, columns='[{"name": "bought", "role": "group"}, {"name": "city", "role": "ignore"}]')
    api.post(f"{API}/offers/0?project=yard")
    assert newest().request["columns"] == [
        {"name": "city", "role": "ignore"},
        {"name": "bought", "role": "group", "type": "number"},
    ]


def test_an_offer_to_read_numbers_ends_an_earlier_merge_of_labels(api: Client) -> None:
    offering(api, columns='[{"name": "bought", "role": "group", "merge_labels": true}]')
    api.post(f"{PLACE}/offers/0?project=yard")
    assert newest().request["columns"] == [{"name": "bought", "role": "group", "type": "number"}]


PAIR = [{"name": "bought", "type": "number", "merge_labels": True}]


@pytest.mark.parametrize("rule", [{"type": "number"}, {"date_format": "%d/%m/%Y"}, {"number_format": {}}])
def test_merged_labels_of_a_column_without_words_are_refused_with_their_field(
    api: Client, rule: dict[str, Any]
) -> None:
    pair = [{"name": "city"}, {"name": "bought", "merge_labels": True, **rule}]
    answer = send(api, columns=json.dumps(pair))
    assert answer.status_code == 422
    problem = answer.json()["errors"][0]
    assert problem["pointer"] == "/columns/1/merge_labels"
    assert "merge_labels is for categories" in problem["message"]
    offering(api)
    again = api.post(f"{API}/read?project=yard", json.dumps({"columns": pair}), "application/json")
    assert again.status_code == 422


def test_a_failed_version_that_merges_numbers_opens_and_is_read_again_without_merging(api: Client) -> None:
    version = offering(api)
    DatasetVersion.objects.filter(pk=version.pk).update(request={**version.request, "columns": PAIR})
    assert api.get(f"{PLACE}?project=yard").status_code == 200
    assert api.get(f"{API}?project=yard").status_code == 200
    answer = api.post(f"{API}/read?project=yard", '{"columns": [{"name": "city"}]}', "application/json")
    assert answer.status_code == 201
    assert newest().request["columns"] == [{"name": "bought", "type": "number"}, {"name": "city"}]


def test_a_stated_rule_survives_other_corrections_of_the_table(api: Client) -> None:
    rule = {"decimal": ",", "thousands": "."}
    send(api, columns=f'[{{"name": "price", "number_format": {str(rule).replace(chr(39), chr(34))}}}]')
    make_ready(newest(), OFFERING)
    form = {
        "column": ["id", "city", "bought", "price"],
        "role": ["ignore", "feature", "feature", "target"],
        "type": ["integer", "category", "date", "number"],
    }
    api.post(f"{PLACE}/roles?project=yard", form)
    (price,) = (column for column in newest().request["columns"] if column["name"] == "price")
    assert {name: price["number_format"][name] for name in rule} == rule
    form["type"] = ["integer", "category", "date", "category"]
    api.post(f"{PLACE}/roles?project=yard", form)
    (price,) = (column for column in newest().request["columns"] if column["name"] == "price")
    assert price == {"name": "price", "role": "target", "type": "category"}


@pytest.mark.parametrize("position", [2, 999])
def test_an_offer_that_does_not_exist_is_not_found(api: Client, position: int) -> None:
    offering(api)
    answer = api.post(f"{API}/offers/{position}?project=yard")
    assert answer.status_code == 404
    assert "has 2 offers, counted from 0" in answer.json()["detail"]


def test_offers_wait_until_the_version_is_ready(api: Client) -> None:
    send(api)
    answer = api.post(f"{API}/offers/0?project=yard")
    assert answer.status_code == 409
    assert "preparing" in answer.json()["detail"]


def test_readers_see_offers_without_buttons_and_strangers_see_nothing(api: Client, world: World) -> None:
    offering(api)
    viewer, stranger = world.client(world.viewer), world.client(world.stranger)
    page = viewer.get(f"{PLACE}?project=yard").content.decode()
    assert "39 of 40 values are numbers" in page and "/offers/0" not in page
    assert viewer.post(f"{PLACE}/offers/0?project=yard").status_code == 403
    assert viewer.post(f"{API}/offers/0?project=yard").status_code == 403
    assert stranger.post(f"{PLACE}/offers/0?project=yard").status_code == 404
    assert stranger.post(f"{API}/offers/0?project=yard").status_code == 404
    assert DatasetVersion.objects.filter(dataset__slug="people").count() == 1
