"""Aliases of approved versions are the endpoint's labels."""

from typing import Any

import pytest

from jobs.actions.registry import promotions, registry, releases
from jobs.errors import BadInput
from jobs.messages.release import Release, SignedRelease
from jobs.models import ModelVersion, ReleaseRecord
from tests.markup import one_line, text_of
from tests.people import browser_of
from tests.registry.conftest import Yard


def newest(yard: Yard) -> Release:
    record = ReleaseRecord.objects.filter(endpoint=yard.endpoint).latest("generation")
    return SignedRelease.model_validate(record.body).release


def alias(yard: Yard, name: str, version: ModelVersion) -> None:
    registry.set_alias(yard.model, name, version, by=yard.member)


def test_an_alias_of_an_approved_version_is_a_label_and_its_version_stays_loaded(yard: Yard) -> None:
    versions = [yard.live() for _ in range(3)]
    alias(yard, "stable_one", versions[0])
    release = newest(yard)
    assert release.generation == yard.endpoint.generation == 4
    assert release.labels == {"stable_one": 1, "production": 3}
    assert [version.number for version in release.versions] == [1, 2, 3]
    assert release.standby == (1, 2)


def test_an_alias_is_moved_and_deleted_with_its_label(yard: Yard) -> None:
    first, second = yard.live(), yard.live()
    alias(yard, "stable", first)
    alias(yard, "stable", second)
    assert newest(yard).labels == {"stable": 2, "production": 2}
    registry.delete_alias(yard.model, "stable", by=yard.member)
    assert newest(yard).labels == {"production": 2}


def test_an_alias_of_a_version_that_was_never_approved_is_no_label(yard: Yard) -> None:
    yard.live()
    waiting = yard.pending()
    alias(yard, "next", waiting.version)
    assert (newest(yard).generation, newest(yard).labels) == (1, {"production": 1})
    promotions.approve(waiting, by=yard.approver)
    assert newest(yard).labels == {"next": 2, "production": 2}


def test_a_version_that_was_rolled_back_loses_its_label(yard: Yard) -> None:
    first, second = yard.live(), yard.live()
    alias(yard, "good", first)
    alias(yard, "bad", second)
    releases.rollback(yard.endpoint, reason="wrong sevens", by=yard.approver)
    assert newest(yard).labels == {"good": 1, "production": 1}
    alias(yard, "worse", second)
    assert newest(yard).labels == {"good": 1, "production": 1}
    promotions.approve(yard.pending(second), by=yard.approver)
    assert newest(yard).labels == {"good": 1, "bad": 2, "worse": 2, "production": 2}


def test_an_open_request_stays_valid_when_a_label_moves(yard: Yard) -> None:
    first = yard.live()
    waiting = yard.pending()
    alias(yard, "stable", first)
    waiting.refresh_from_db()
    assert promotions.approve(waiting, by=yard.approver).generation == 3


def test_an_endpoint_that_is_down_or_empty_gets_no_labels(yard: Yard) -> None:
    alias(yard, "first", yard.version())
    assert not ReleaseRecord.objects.exists()
    live = yard.live()
    releases.take_down(yard.endpoint, reason="it leaks data", by=yard.approver)
    alias(yard, "stable", live)
    assert (newest(yard).labels, newest(yard).versions) == ({}, ())
    releases.bring_up(yard.endpoint, by=yard.approver)
    assert newest(yard).labels == {"stable": 2, "production": 2}


@pytest.fixture
def crowded(yard: Yard) -> Yard:
    """Give the model as many aliases as it may have."""
    version = yard.version()
    for number in range(registry.MAX_ALIASES):
        alias(yard, f"customer-{number:02}", version)
    return yard


def test_a_model_has_at_most_sixteen_aliases_and_each_can_be_moved(crowded: Yard) -> None:
    newer = crowded.version()
    with pytest.raises(BadInput, match=r"digits has 16 aliases.* remove one of them, or move one"):
        alias(crowded, "one-more", newer)
    alias(crowded, "customer-07", newer)
    registry.delete_alias(crowded.model, "customer-00", by=crowded.member)
    alias(crowded, "one-more", newer)
    assert set(newer.aliases.values_list("name", flat=True)) == {"customer-07", "one-more"}
    assert crowded.model.aliases.count() == 16


def test_the_alias_beyond_the_limit_is_refused_at_its_field_in_rest_and_on_the_page(crowded: Yard) -> None:
    browser = browser_of(crowded.member)
    answer = browser.put(
        "/api/v1/models/digits/aliases/one-more", {"version": 1}, content_type="application/json"
    )
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/alias")
    page = browser.post("/models/digits/aliases", {"alias": "one-more", "version": "1"})
    assert page.status_code == 422
    assert "16 of at most 16" in text_of(page)
    assert "digits has 16 aliases" in one_line(page).split("id_alias-hint")[-1]
    assert 'value="one-more"' in page.content.decode()


@pytest.mark.parametrize("name", ["half_plus_two", "a", "a__b-c", "2d_cnn", "x" * 63])
def test_names_of_models_may_have_underscores_and_lead_to_their_pages(
    yard: Yard, client: Any, name: str
) -> None:
    registry.create_model(yard.project, name, by=yard.member)
    client.force_login(yard.member)
    for page in (f"/models/{name}", f"/endpoints/{name}"):
        assert client.get(page).status_code == 200


@pytest.mark.parametrize("name", ["_a", "-a", "A", "a b", "ä", "a/b", "a\n", "", "x" * 64])
def test_other_names_of_models_are_refused_with_the_rule(yard: Yard, name: str) -> None:
    with pytest.raises(BadInput, match="lower-case letters, digits, - and _, with a letter or digit first"):
        registry.create_model(yard.project, name, by=yard.member)
