"""Prediction servers in reports: their names, two with one credential, and those that learn of no release."""

import hashlib
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from jobs.actions.people import service_tokens, tokens
from jobs.actions.registry import promotions, replica_reports
from jobs.errors import Conflict
from jobs.messages.release import ReplicaReport
from jobs.models import ApiToken, PromotionRequest, Replica
from jobs.queries.registry import endpoints
from jobs.queries.registry import promotions as promotion_queries
from tests.people import browser_of
from tests.registry.conftest import Yard, see

LATE = timedelta(seconds=100)


def report(generation: int, *, server: str, replica: str = "", **more: Any) -> Replica:
    body = ReplicaReport(replica=replica or server, model="digits", generation=generation, **more)
    return replica_reports.record_report(body, server=server)


def silence(server: str) -> None:
    Replica.objects.filter(name=server).update(seen=timezone.now() - LATE)


def post(secret: str, path: str, body: dict[str, Any]) -> Any:
    return Client().post(
        f"/api/v1/serving/{path}",
        body,
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )


def names(yard: Yard) -> list[str]:
    return [replica.name for replica in endpoints.replicas_out(yard.endpoint)]


def test_a_replica_has_the_name_of_its_credential(yard: Yard) -> None:
    yard.live()
    secret = service_tokens.create_credential("b", by=None)
    answer = post(secret, "reports", {"replica": "a", "model": "digits", "generation": 1})
    assert (answer.status_code, names(yard)) == (204, ["b"])


def test_further_servers_of_one_home_have_numbers(yard: Yard) -> None:
    yard.live()
    report(1, server="b")
    report(1, server="b", replica="other", instance=2)
    assert sorted(names(yard)) == ["b", "b/2"]


def test_a_second_server_with_the_same_credential_is_refused_until_the_first_is_gone(yard: Yard) -> None:
    yard.live()
    report(1, server="b", replica="one")
    with pytest.raises(
        Conflict, match=r"in use by the prediction server one .*serving-token NAME"
    ) as refusal:
        report(0, server="b", replica="two")
    assert refusal.value.code == "credential_in_use"
    assert Replica.objects.get().generation == 1
    silence("b")
    assert report(0, server="b", replica="two").generation == 0
    report(0, server="b", replica="two", stops=True)
    assert report(1, server="b", replica="three").generation == 1


def test_a_server_that_reports_no_more_is_cut_off_and_one_that_stopped_is_not(yard: Yard) -> None:
    yard.live()
    for name in ("b", "c", "d"):
        service_tokens.create_credential(name, by=None)
        report(1, server=name, stops=name == "c")
        silence(name)
    service_tokens.revoke_credential("d", by=None)
    report(1, server="person-1a2b")
    silence("person-1a2b")
    rows = {one.name: one for one in endpoints.replicas_out(yard.endpoint)}
    assert {name for name, one in rows.items() if one.cut_off_since} == {"b"}
    assert rows["b"].cut_off_since == Replica.objects.get(name="b").seen
    assert {name for name, one in rows.items() if one.stopped} == {"c"}
    assert not any(one.live for one in rows.values())


def test_a_server_that_reports_but_learns_of_no_release_says_since_when(yard: Yard) -> None:
    yard.live()
    row = report(1, server="b", silent_seconds=90)
    (one,) = endpoints.replicas_out(yard.endpoint)
    assert one.live and one.cut_off_since == row.seen - timedelta(seconds=90)


def test_a_promotion_names_the_servers_that_are_cut_off(yard: Yard) -> None:
    yard.live()
    service_tokens.create_credential("b", by=None)
    report(1, server="a")
    report(1, server="b")
    silence("b")
    since = Replica.objects.get(name="b").seen
    promotion = promotions.approve(yard.pending(), by=yard.approver)
    report(2, server="a")
    promotion.refresh_from_db()
    assert promotion.state == PromotionRequest.State.RELEASED
    (lost,) = promotion_queries.promotion_out(promotion).cut_off
    assert (lost.replica, lost.since, lost.generation) == ("b", since, 1)
    page = see(yard.member, f"/approvals/{promotion.pk}").content.decode()
    assert f'Replica b: cut off since <time datetime="{since.isoformat()}">{since:%H:%M} UTC' in page
    assert "cut off" in see(yard.member, "/endpoints/digits").content.decode()
    report(2, server="b")
    assert promotion_queries.promotion_out(PromotionRequest.objects.get(pk=promotion.pk)).cut_off == []
    yard.live()
    silence("b")
    assert promotion_queries.promotion_out(PromotionRequest.objects.get(pk=promotion.pk)).cut_off == []


def test_a_promotion_does_not_wait_for_a_server_that_stopped(yard: Yard) -> None:
    report(0, server="a")
    report(0, server="b")
    promotion = promotions.approve(yard.pending(), by=yard.approver)
    report(0, server="b", stops=True)
    report(1, server="a")
    promotion.refresh_from_db()
    assert promotion.state == PromotionRequest.State.RELEASED


def test_a_server_asks_for_the_access_of_the_callers_that_it_knows(yard: Yard) -> None:
    yard.live()
    secret = service_tokens.create_credential("b", by=None)
    member, raw = tokens.create(yard.member, by=yard.member, scopes=["predict"])
    _, other = tokens.create(yard.member, by=yard.member, scopes=["read"])
    _, narrow = tokens.create(yard.member, by=yard.member, scopes=["predict"], endpoints=["digits"])
    asked = [tokens.digest_of(text) for text in (raw, other, narrow, "ty_unknown")]
    answer = post(secret, "access", {"digests": asked, "used": asked[:1]}).json()["tokens"]
    assert {one["digest"]: one["endpoints"] for one in answer} == {
        asked[0]: ["digits"],
        asked[1]: None,
        asked[2]: ["digits"],
    }
    member.refresh_from_db()
    assert member.last_used is not None
    assert ApiToken.objects.get(digest=asked[1]).last_used is None
    tokens.revoke(member, by=yard.member)
    assert asked[0] not in str(post(secret, "access", {"digests": asked}).json())


@pytest.mark.parametrize("digests", [["x"], ["A" * 64], ["0" * 64] * 501, "all"])
def test_a_list_of_callers_that_are_no_digests_is_refused(yard: Yard, digests: Any) -> None:
    assert yard.model
    secret = service_tokens.create_credential("b", by=None)
    assert post(secret, "access", {"digests": digests}).status_code == 422


def test_a_token_of_a_person_with_the_scope_in_its_row_has_no_effect(yard: Yard) -> None:
    yard.live()
    raw = "ty_from_an_old_row"
    digest = hashlib.sha256(raw.encode()).hexdigest()
    ApiToken.objects.create(user=yard.owner, digest=digest, prefix=raw[:8], scopes=["serve"])
    body = {"replica": "a", "model": "digits", "generation": 9}
    assert post(raw, "reports", body).status_code == 403
    assert not Replica.objects.exists()


@pytest.mark.parametrize("who", ["viewer", "approver", "owner"])
def test_no_session_reads_releases_or_reports(yard: Yard, who: str) -> None:
    yard.live()
    person = getattr(yard, who)
    refusal = see(person, "/api/v1/serving/releases")
    assert refusal.status_code == 403
    assert "`serving-token NAME`" in refusal.json()["detail"]
    body = {"replica": "a", "model": "digits", "generation": 1}
    refused = browser_of(person).post("/api/v1/serving/reports", body, content_type="application/json")
    assert refused.status_code == 403
    assert not Replica.objects.exists()
