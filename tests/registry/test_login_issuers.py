"""A session from a login link decides none of the requests by the link's maker."""

import json
import re

import pytest
from django.test import Client

from jobs.actions.people import people, tokens
from jobs.actions.registry import promotions
from jobs.models import AuditEvent, Project, PromotionRequest, Role, User
from tests.markup import one_line
from tests.people import browser_of
from tests.registry.conftest import GOOD_GATES, Yard, in_inbox, judge
from webapp.accounts.login import LINK_ISSUERS, issuers_of

State = PromotionRequest.State
CHOSEN = "a-long-password-of-somebody"


def entered_as(user: User, by: User) -> Client:
    """Return a browser that is logged in as `user` by a link from `by`."""
    client = browser_of(user)
    session = client.session
    session[LINK_ISSUERS] = [by.pk]
    session.save()
    return client


@pytest.mark.parametrize("verb", ["approve", "reject"])
@pytest.mark.parametrize("way", ["page", "api", "token"])
def test_it_decides_no_request_of_that_person(yard: Yard, verb: str, way: str) -> None:
    promotion = yard.pending()
    browser, headers = entered_as(yard.approver, by=yard.member), {}
    if way == "token":
        body = {"scopes": ["read", "approve"]}
        created = browser.post("/api/v1/tokens", body, "application/json")
        browser, headers = Client(), {"Authorization": f"Bearer {json.loads(created.content)['token']}"}
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
        created = browser.post("/api/v1/tokens", {"scopes": ["read", "approve"]}, "application/json")
        headers = {"Authorization": f"Bearer {json.loads(created.content)['token']}"}
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
    yard.member.login_issuers = frozenset({yard.approver.pk})
    promotion = promotions.request(yard.version(by=yard.owner), stage="production", by=yard.member)
    judge(promotion, GOOD_GATES)
    browser_of(yard.approver).post(f"/approvals/{promotion.pk}/approve", {})
    promotion.refresh_from_db()
    assert promotion.state == State.PENDING
    assert not in_inbox(promotion, yard.approver)
    assert in_inbox(promotion, yard.second_approver)


def test_it_does_not_list_what_it_may_not_decide(yard: Yard) -> None:
    promotion = yard.pending()
    assert in_inbox(promotion, yard.approver)
    yard.approver.login_issuers = frozenset({yard.member.pk})
    assert not in_inbox(promotion, yard.approver)


def test_it_does_not_switch_the_single_person_rule_on(yard: Yard) -> None:
    root, other = User.objects.create_superuser("root"), User.objects.create_superuser("other")
    browser = entered_as(root, by=other)
    answer = browser.patch("/api/v1/projects/vision", {"single_person": True}, "application/json")
    assert answer.status_code == 403
    assert not Project.objects.get(pk=yard.project.pk).single_person


def test_a_token_made_for_another_person_decides_nothing_of_its_maker(yard: Yard) -> None:
    root = User.objects.create_superuser("root")
    _, raw = tokens.create(yard.approver, by=root, scopes=["approve"])
    token = tokens.authenticate(raw)
    assert token is not None
    assert token.user.login_issuers == {root.pk}


class Alone:
    """An administrator who requests a promotion, and makes accounts to approve it with."""

    def __init__(self, yard: Yard) -> None:
        User.objects.filter(pk=yard.member.pk).update(is_superuser=True)
        yard.member.refresh_from_db()
        self.yard = yard
        self.own = browser_of(yard.member)
        self.promotion = yard.pending()

    def make(self, name: str, browser: Client, *, admin: bool = False) -> Client:
        """Make a person with a browser; return one that is logged in as that person by the link."""
        body = {"user": name, "admin": admin}
        answer = browser.post("/api/v1/users", body, "application/json")
        entered = Client()
        entered.post(json.loads(answer.content)["login_link"])
        people.set_role(self.yard.project, people.find_person(name), Role.APPROVER, by=self.yard.member)
        return entered

    def link(self, name: str, browser: Client) -> str:
        """Make a link for a person with a browser."""
        page = browser.post(f"/people/{name}/link").content.decode()
        address = re.search(r"/login/[\w-]+", page)
        assert address is not None
        return address[0]

    def is_refused(self, browser: Client) -> bool:
        """Return whether the request cannot be approved with a browser."""
        listed = in_inbox(self.promotion, seen_by(browser))
        answer = browser.post(f"/approvals/{self.promotion.pk}/approve", {})
        self.promotion.refresh_from_db()
        return (answer.status_code, self.promotion.state, listed) == (403, State.PENDING, False)


def seen_by(browser: Client) -> User:
    """Return a browser's user as a request sees them."""
    user = User.objects.get(pk=browser.session["_auth_user_id"])
    user.login_issuers = issuers_of(browser.session)
    return user


def test_the_audit_log_names_the_issuers_of_a_session_that_acts(yard: Yard) -> None:
    alone = Alone(yard)
    first = alone.make("first", alone.own, admin=True)
    second = alone.make("second", first)
    second.post(f"/approvals/{alone.promotion.pk}/comment", {"comment": "fine"})
    alone.own.post(f"/approvals/{alone.promotion.pk}/comment", {"comment": "fine"})
    rows = AuditEvent.objects.filter(action="promotion.comment").order_by("number")
    named = [(row.actor and row.actor.username, row.detail.get("login_issuers")) for row in rows]
    assert named == [("second", ["first", "member"]), ("member", None)]
    login = AuditEvent.objects.get(action="person.login", actor__username="second")
    assert login.detail["login_issuers"] == ["first", "member"]


def test_a_session_of_an_earlier_version_is_marked(yard: Yard) -> None:
    promotion = yard.pending()
    browser = browser_of(yard.approver)
    session = browser.session
    session[LINK_ISSUERS] = yard.member.pk
    session.save()
    assert browser.post(f"/approvals/{promotion.pk}/approve", {}).status_code == 403


def test_two_people_with_links_of_one_administrator_are_told_who_that_is(yard: Yard) -> None:
    requester = entered_as(yard.member, by=yard.owner)
    sent = {"stage": "production", "comment": "better"}
    requester.post(f"/models/digits/versions/{yard.version().number}/promote", sent)
    promotion = PromotionRequest.objects.latest("pk")
    judge(promotion, GOOD_GATES)
    page = entered_as(yard.approver, by=yard.owner).get(f"/approvals/{promotion.pk}").content.decode()
    assert "owner made the login links that your session and that of the requester came from" in page


def test_the_page_of_a_login_link_says_whose_requests_it_cannot_decide(yard: Yard) -> None:
    User.objects.filter(pk=yard.owner.pk).update(is_superuser=True)
    page = browser_of(yard.owner).post("/people", {"username": "grace"})
    assert "grace cannot decide your promotion requests" in one_line(page)
