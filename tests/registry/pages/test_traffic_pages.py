"""An endpoint's figures on its page."""

from datetime import timedelta
from typing import Any

import pytest

from jobs.actions.registry import promotions, releases
from jobs.queries.registry import traffic as queries
from tests.people import browser_of
from tests.registry.conftest import Yard
from tests.registry.test_traffic import NOW, ago, counts, interval, send, set_clock


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, NOW)


def test_the_band_shows_the_versions_in_production_and_who_changed_them(yard: Yard) -> None:
    yard.live()
    yard.live()
    promotions.approve(yard.pending(stage="staging"), by=yard.approver)
    releases.rollback(yard.endpoint, reason="wrong sevens", by=yard.approver)
    releases.take_down(yard.endpoint, reason="leak", by=yard.owner)
    served = queries.served_versions(yard.endpoint, since=NOW - timedelta(days=9999))
    assert [(one.version, one.kind) for one in served] == [
        (1, "promote"),
        (2, "promote"),
        (1, "rollback"),
        (None, "take_down"),
    ]
    assert (served[2].by, served[2].reason) == ("approver", "wrong sevens")
    assert [one.end for one in served] == [*(one.begin for one in served[1:]), None]
    assert len(queries.served_versions(yard.endpoint, since=served[3].begin)) == 1


def test_only_those_who_see_the_endpoint_read_its_traffic_and_bad_input_names_its_field(yard: Yard) -> None:
    send(yard, interval(ago(20), 1, counts(3)))
    path = "/api/v1/endpoints/digits/traffic"
    answer = browser_of(yard.viewer).get(path, {"range": "1h"})
    assert answer.json()["total"]["requests"] == 3
    assert browser_of(yard.stranger).get(path).status_code == 404
    for query in ({"range": "2h"}, {"version": "x"}, {"version": "-1"}):
        refused = browser_of(yard.viewer).get(path, query)
        assert refused.status_code == 422
        assert next(iter(query)) in refused.content.decode()


def test_an_open_page_follows_its_endpoint_until_the_first_request(yard: Yard) -> None:
    def reloaded() -> str:
        live: dict[str, Any] = {"query_params": {"part": "first_request"}, "headers": {"HX-Request": "true"}}
        return browser_of(yard.member).get("/endpoints/digits", **live).content.decode()

    waiting = reloaded()
    assert "No version is in production" in waiting
    assert "part=first_request" in waiting
    assert "<html" not in waiting
    yard.live()
    assert "curl -s http://127.0.0.1:8501/v1/models/digits:predict -d" in reloaded()
    send(yard, interval(ago(20), 1, counts(30)))
    asked = reloaded()
    assert "Loading the requests" in asked
    assert "part=first_request" not in asked  # the charts follow the requests by themselves


def test_the_page_shows_how_to_send_the_first_request_until_there_is_one(yard: Yard) -> None:
    assert "No version is in production" in browser_of(yard.member).get("/endpoints/digits").content.decode()
    yard.live()
    page = browser_of(yard.member).get("/endpoints/digits").content.decode()
    assert "No requests yet" in page
    assert "curl -s http://127.0.0.1:8501/v1/models/digits:predict -d" in page
    send(yard, interval(ago(20), 1, counts(30)))
    assert "No requests yet" not in browser_of(yard.member).get("/endpoints/digits").content.decode()
    assert "0.500/s" in " ".join(browser_of(yard.member).get("/endpoints").content.decode().split())
