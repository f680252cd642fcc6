"""Data sets from addresses over REST and on pages: the request, its progress, its end, and its refusals."""

import json
from typing import Any

import pytest
from django.test import Client

from jobs.actions.data import fetch_attempts
from jobs.models import DatasetVersion, Fetch
from tests.fetching.making import CSV, ask, claim, fetch, row_of
from tests.fetching.servers import file, serving
from tests.world import World

URL = "https://example.org/data/people.csv?sig=53cr37"


@pytest.fixture
def api(world: World) -> Client:
    return world.client(world.owner)


def post(client: Client, path: str = "/api/v1/datasets", key: str = "", **body: Any) -> Any:
    fields = {"project": "yard", "url": URL, **body}
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(path, json.dumps(fields), content_type="application/json", headers=headers)


def test_a_data_set_is_made_of_an_address(api: Client) -> None:
    answer = post(api, slug="people", target="bmi", dialect={"delimiter": ";"}, max_bad_share=0.1,
                  columns=[{"name": "age", "role": "ignore"}])  # fmt: skip
    assert answer.status_code == 201
    assert answer.json()["latest"]["state"] == "preparing"
    version = api.get("/api/v1/datasets/people/versions/1").json()
    assert version["file"] == "people.csv" and version["job"] is None
    assert version["fetch"] == {
        "url": "https://example.org/data/people.csv?…",
        "mode": "copy",
        "state": "waiting",
        "credential": None,
        "received": 0,
        "total": None,
        "eta_seconds": None,
        "attempt": 0,
        "etag": None,
        "modified": None,
        "sha256": None,
    }
    request = DatasetVersion.objects.get(dataset__slug="people").request
    assert request["target"] == "bmi" and request["columns"] == [{"name": "age", "role": "ignore"}]
    assert request["reading"]["dialect"] == {"delimiter": ";"}


def test_a_version_is_added_from_an_address(api: Client) -> None:
    post(api, slug="people")
    answer = post(api, "/api/v1/datasets/people/versions?project=yard")
    assert (answer.status_code, answer.json()["number"]) == (201, 2)


def test_a_repeated_request_makes_one_data_set(api: Client) -> None:
    first, second = post(api, key="k", slug="people"), post(api, key="k", slug="people")
    assert (first.status_code, second.status_code) == (201, 201)
    assert Fetch.objects.count() == 1
    assert post(api, key="k", slug="other").status_code == 422


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"slug": "Bad Slug"}, "/slug"),
        ({}, "/slug"),
        ({"slug": "x", "url": None}, "/url"),
        ({"slug": "x", "url": "http://example.org/a.csv"}, "/url"),
        ({"slug": "x", "url": "https://10.0.0.1/a.csv"}, "/url"),
        ({"slug": "x", "mode": "half"}, "/mode"),
        ({"slug": "x", "credential": "none"}, "/credential"),
        ({"slug": "x", "task": "guess"}, "/task"),
        ({"slug": "x", "dialect": {"delimiter": 5}}, "/dialect/delimiter"),
        ({"slug": "x", "columns": [{"name": "a", "role": "king"}]}, "/columns/0/role"),
        ({"slug": "x", "more": 1}, "/more"),
    ],
)
def test_a_refusal_names_the_field(body: dict[str, Any], pointer: str, api: Client) -> None:
    answer = post(api, **body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert not Fetch.objects.exists()


def test_a_body_without_an_address_is_refused(api: Client) -> None:
    bodies: tuple[Any, ...] = ([], 1, {})
    for body in bodies:
        answer = api.post("/api/v1/datasets", json.dumps(body), content_type="application/json")
        assert answer.status_code == 422


def test_viewers_and_strangers_cannot_use_it(world: World) -> None:
    assert post(world.client(world.viewer), slug="people").status_code == 403
    assert post(world.client(world.stranger), slug="people").status_code == 404
    version = ask(world, URL)
    for action in ("fetch", "fetch/cancel"):
        path = f"/api/v1/datasets/people/versions/{version.number}/{action}"
        assert world.client(world.viewer).post(path).status_code == 403
        assert world.client(world.stranger).post(path).status_code == 404
    assert row_of(version).state == Fetch.State.WAITING


def test_a_fetch_is_cancelled_and_repeated(api: Client, world: World) -> None:
    ask(world, URL)
    path = "/api/v1/datasets/people/versions/1/fetch"
    cancelled = api.post(f"{path}/cancel")
    assert (cancelled.status_code, cancelled.json()["fetch"]["state"]) == (202, "cancelled")
    assert cancelled.json()["error"] == {"code": "cancelled", "message": "olga cancelled the fetch."}
    assert api.post(f"{path}/cancel").status_code == 409
    again = api.post(path)
    assert (again.status_code, again.json()["fetch"]["state"]) == (202, "waiting")
    assert api.post(path).status_code == 409


def test_an_uploaded_version_has_no_fetch(api: Client, world: World) -> None:
    assert api.get("/api/v1/datasets/digits/versions/1").json()["fetch"] is None
    assert api.post("/api/v1/datasets/digits/versions/1/fetch/cancel").status_code == 403


def test_the_page_shows_progress_and_the_button_to_cancel(api: Client, world: World) -> None:
    ask(world, URL)
    path = "/datasets/people/versions/1?project=yard"
    assert "It waits to be fetched" in " ".join(api.get(path).content.decode().split())
    claimed = claim()
    fetch_attempts.renew(claimed, received=250_000, total=1_000_000)
    page = " ".join(api.get(path).content.decode().split())
    assert "25 %" in page and "0.2 of 1" in page and "left" in page
    assert "53cr37" not in page and "https://example.org/data/people.csv?…" in page
    assert "versions/1/cancel" in page
    assert "versions/1/cancel" not in world.client(world.viewer).get(path).content.decode()
    assert api.post("/datasets/people/versions/1/cancel?project=yard").status_code == 303
    page = api.get(path).content.decode()
    assert "olga cancelled the fetch." in page and "Fetch again" in page
    assert api.post("/datasets/people/versions/1/again?project=yard").status_code == 303
    assert Fetch.objects.get().state == Fetch.State.WAITING


def test_a_version_is_made_on_the_page_and_a_refusal_keeps_the_entries(api: Client) -> None:
    page = api.get("/datasets/new?from=address").content.decode()
    assert "From an address" in page and 'name="url"' in page
    bad = api.post(
        "/datasets/new?from=address", {"project": "yard", "url": "http://example.org/my.csv", "target": "bmi"}
    )
    assert bad.status_code == 422
    text = bad.content.decode()
    assert "over https only" in text and "http://example.org/my.csv" in text and 'value="bmi"' in text
    answer = api.post(
        "/datasets/new?from=address", {"project": "yard", "url": "https://example.org/My data.csv"}
    )
    assert answer.status_code == 422
    answer = api.post(
        "/datasets/new?from=address", {"project": "yard", "url": "https://example.org/my_data.csv"}
    )
    assert answer.status_code == 303 and answer["Location"] == "/datasets/my_data/versions/1?project=yard"
    more = api.post(
        "/datasets/new?dataset=my_data&project=yard&from=address", {"url": "https://example.org/v2.csv"}
    )
    assert more["Location"] == "/datasets/my_data/versions/2?project=yard"


def test_a_complete_version_shows_where_it_came_from(api: Client, world: World, allow: Any, settings: Any,
                                                     tmp_path: Any) -> None:  # fmt: skip
    settings.TRAINYARD_ARTIFACTS = str(tmp_path / "artifacts")
    with serving(file(CSV)) as server:
        allow("127.0.0.1", server.port)
        fetch(ask(world, f"http://127.0.0.1:{server.port}/people.csv"))
    page = api.get("/datasets/people/versions/1?project=yard").content.decode()
    assert f"http://127.0.0.1:{server.port}/people.csv" in page and "Requested by" in page
    version = api.get("/api/v1/datasets/people/versions/1").json()
    assert version["fetch"]["state"] == "done" and version["job"] is not None
