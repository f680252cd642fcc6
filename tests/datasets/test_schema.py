"""Split roles, rows without a target, and the overview: over REST and on a version's page."""

import json
from typing import Any

import pytest
from django.test import Client

from jobs.actions.data import profiles
from jobs.models import DatasetVersion
from tests.datasets.making import SHOP, make_ready
from tests.datasets.test_api import send
from tests.markup import squeezed
from tests.world import World

PLACE = "/datasets/people/versions/1?project=yard"


@pytest.fixture
def api(world: World) -> Client:
    return world.client(world.owner)


def newest() -> DatasetVersion:
    return DatasetVersion.objects.latest("pk")


def test_group_and_time_are_roles_of_at_most_one_column_each(api: Client) -> None:
    columns = [{"name": "age", "role": "group"}, {"name": "bmi", "role": "time"}]
    assert send(api, columns=json.dumps(columns)).status_code == 201
    assert newest().request["columns"] == columns
    columns[1]["role"] = "group"
    answer = send(api, slug="more", columns=json.dumps(columns))
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error == {
        "pointer": "/columns",
        "message": "at most one column has the role group; now it is age, bmi",
    }


def test_at_most_one_column_of_numbers_weighs_the_rows(api: Client) -> None:
    columns = [{"name": "age", "role": "weight"}, {"name": "bmi", "role": "weight", "type": "number"}]
    assert send(api, columns=json.dumps(columns[:1])).status_code == 201
    assert newest().request["columns"] == columns[:1]
    answer = send(api, slug="more", columns=json.dumps(columns))
    assert answer.status_code == 422
    assert "at most one column has the role weight" in answer.json()["errors"][0]["message"]
    answer = send(api, slug="more", columns=json.dumps([columns[0] | {"type": "category"}]))
    assert answer.status_code == 422
    assert answer.json()["errors"] == [
        {
            "pointer": "/columns/0/type",
            "message": "'age' has the role weight, so its type is number or integer, not category",
        }
    ]


def test_the_page_of_a_version_has_the_column_that_weighs_its_rows(api: Client) -> None:
    send(api)
    columns = [
        {**column, "role": "weight", "reason": None} if column["name"] == "id" else column
        for column in SHOP["columns"]
    ]
    make_ready(newest(), {**SHOP, "columns": columns, "weight": "id"})
    page = squeezed(api.get(PLACE).content.decode())
    assert "losses and metrics are weighted by it" in page
    assert "<option selected> weight </option>" in page
    form = {"column": ["city"], "role": ["weight"], "type": ["category"]}
    assert api.post("/datasets/people/versions/1/roles?project=yard", form).status_code == 422
    version = api.get("/api/v1/datasets/people/versions/1", {"project": "yard"}).json()
    assert version["schema"]["weight"] == "id"


def test_rows_without_a_target_are_left_out_only_if_the_request_says_so(api: Client) -> None:
    send(api)
    assert "rows_without_target" not in newest().request
    assert send(api, slug="more", rows_without_target="leave_out").status_code == 201
    assert newest().request["rows_without_target"] == "leave_out"
    answer = send(api, slug="third", rows_without_target="perhaps")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/rows_without_target"


def test_a_version_that_was_refused_for_gaps_is_read_without_them_by_a_button(api: Client) -> None:
    send(api, target="progression", columns=json.dumps([{"name": "age", "type": "category"}]))
    error = {"code": "target_gaps", "message": "the target 'progression' has no value in 2 of 9 rows"}
    profiles.record_profile_failure(newest().pk, error)
    page = api.get(PLACE).content.decode()
    assert "no value in 2 of 9 rows" in page and "Leave out the rows without a target" in page
    answer = api.post("/datasets/people/versions/1/gaps?project=yard")
    assert answer["Location"] == "/datasets/people/versions/2?project=yard"
    assert newest().request == {
        "source": "csv",
        "file": "people.csv",
        "target": "progression",
        "columns": [{"name": "age", "type": "category"}],
        "rows_without_target": "leave_out",
        "from_version": 1,
    }


def test_the_button_is_for_versions_that_were_refused_for_gaps(api: Client) -> None:
    send(api)
    profiles.record_profile_failure(newest().pk, {"code": "bad_data", "message": "the file is empty"})
    assert "Leave out the rows without a target" not in api.get(PLACE).content.decode()


def test_other_roles_keep_the_choice_for_rows_without_a_target(api: Client) -> None:
    send(api, rows_without_target="leave_out")
    make_ready(newest(), SHOP)
    api.post("/datasets/people/versions/1/roles?project=yard", {"target": "price"})
    assert newest().number == 2 and newest().request["rows_without_target"] == "leave_out"


def grouped() -> dict[str, Any]:
    columns = [
        {**column, "role": "group", "reason": None} if column["name"] == "id" else column
        for column in SHOP["columns"]
    ]
    return {**SHOP, "columns": columns}


def test_the_page_says_how_the_roles_split_the_rows(api: Client) -> None:
    send(api)
    make_ready(newest(), grouped())
    page = squeezed(api.get(PLACE).content.decode())
    assert "id has the role group: its equal values stay in one part" in page
    assert "<option selected> group </option>" in page
