"""A session that came from a login link decides nothing of the person who made the link."""

import json

import pytest
from django.test import Client

from jobs.actions import people, promotions, tokens
from jobs.models import Project, PromotionRequest, Role, User
from jobs.queries import home
from tests.people import browser_of
from tests.registry.conftest import GOOD_GATES, Yard, judge

State = PromotionRequest.State
CHOSEN = "a-long-password-of-somebody"


def entered_as(user: User, by: User) -> Client:
    """Return a browser that is logged in as `user` by a link of `by`."""
    client = browser_of(user)
    session = client.session
    session["login_link_issuer"] = by.pk
    session.save()
    return client


@pytest.mark.parametrize("verb", ["approve", "reject"])
@pytest.mark.parametrize("way", ["page", "api", "token"])
def test_it_decides_no_request_of_that_person(yard: Yard, verb: str, way: str) -> None:
    promotion = yard.pending()
    browser, headers = entered_as(yard.approver, by=yard.member), {}
    if way == "token":
        body = {"scopes": ["read", "approve"]}
        made = browser.post("/api/v1/tokens", body, "application/json")
        browser, headers = Client(), {"Authorization": f"Bearer {json.loads(made.content)['token']}"}
    path = f"/approvals/{promotion.pk}/{verb}"
    if way == "page":
        answer = browser.post(path, {})
    else:
        answer = browser.post(
            f"/api/v1/promotions/{promotion.pk}/{verb}", {}, "application/json", headers=headers
        )
    promotion.refresh_from_db()
    assert (answer.status_code, promotion.state) == (403, State.PENDING)


@pytest.mark.parametrize("way", ["page", "token"])
def test_who_sets_the_password_of_another_person_does_not_approve_with_it(yard: Yard, way: str) -> None:
    """The requester is an administrator, makes an account for an approver, and logs in as that person."""
    requester = yard.member
    User.objects.filter(pk=requester.pk).update(is_superuser=True)
    requester.refresh_from_db()
    promotion = yard.pending()
    grace = people.add_person("grace", by=requester)
    people.set_role(yard.project, grace, Role.APPROVER, by=yard.owner)
    visitor = Client()
    visitor.post(people.create_login_link(grace, by=requester))
    visitor.post("/accounts/password/set/", {"password1": CHOSEN, "password2": CHOSEN})
    browser = Client()
    browser.post("/accounts/login/", {"login": "grace", "password": CHOSEN})
    if way == "page":
        answer = browser.post(f"/approvals/{promotion.pk}/approve", {})
    else:
        made = browser.post("/api/v1/tokens", {"scopes": ["read", "approve"]}, "application/json")
        headers = {"Authorization": f"Bearer {json.loads(made.content)['token']}"}
        path = f"/api/v1/promotions/{promotion.pk}/approve"
        answer = Client().post(path, {}, "application/json", headers=headers)
    promotion.refresh_from_db()
    assert (answer.status_code, promotion.state) == (403, State.PENDING)


def test_it_decides_the_requests_of_others(yard: Yard) -> None:
    promotion = yard.pending()
    entered_as(yard.approver, by=yard.owner).post(f"/approvals/{promotion.pk}/approve", {})
    promotion.refresh_from_db()
    assert promotion.state == State.APPROVED


def test_a_login_with_the_own_password_decides_again(yard: Yard) -> None:
    promotion = yard.pending()
    browser_of(yard.approver).post(f"/approvals/{promotion.pk}/approve", {})
    promotion.refresh_from_db()
    assert promotion.state == State.APPROVED


def test_the_maker_of_the_link_does_not_decide_what_was_requested_through_it(yard: Yard) -> None:
    yard.member.login_issuer_id = yard.approver.pk
    promotion = promotions.request(yard.version(by=yard.owner), stage="production", by=yard.member)
    judge(promotion, GOOD_GATES)
    browser_of(yard.approver).post(f"/approvals/{promotion.pk}/approve", {})
    promotion.refresh_from_db()
    assert promotion.state == State.PENDING
    assert promotion not in home.approvals_to_decide(yard.approver)
    assert promotion in home.approvals_to_decide(yard.second_approver)


def test_it_does_not_list_what_it_may_not_decide(yard: Yard) -> None:
    promotion = yard.pending()
    assert promotion in home.approvals_to_decide(yard.approver)
    yard.approver.login_issuer_id = yard.member.pk
    assert promotion not in home.approvals_to_decide(yard.approver)


def test_it_does_not_switch_the_single_person_rule_on(yard: Yard) -> None:
    root, other = User.objects.create_superuser("root"), User.objects.create_superuser("other")
    browser = entered_as(root, by=other)
    answer = browser.patch("/api/v1/projects/vision", {"single_person": True}, "application/json")
    assert answer.status_code == 403
    assert not Project.objects.get(pk=yard.project.pk).single_person


def test_a_token_made_for_another_person_decides_nothing_of_its_maker(yard: Yard) -> None:
    root = User.objects.create_superuser("root")
    _, raw = tokens.create(yard.approver, by=root, scopes=["approve"])
    found = tokens.authenticate(raw)
    assert found is not None
    assert found.user.login_issuer_id == root.pk
