"""An administrator who makes accounts for themselves decides nothing through them."""

from django.test import Client

from jobs.actions.people import people, tokens
from jobs.actions.registry import promotions
from jobs.models import Role
from tests.registry.conftest import GOOD_GATES, Yard, judge
from tests.registry.test_login_issuers import CHOSEN, Alone, State, seen_by


def set_password(browser: Client, password: str = CHOSEN) -> None:
    answer = browser.post("/accounts/password/set/", {"password1": password, "password2": password})
    assert answer.status_code == 302


def by_password(name: str) -> Client:
    browser = Client()
    browser.post("/accounts/login/", {"login": name, "password": CHOSEN})
    return browser


class TestAPersonWhoMakesAccountsForThemselves:
    def test_does_not_approve_as_a_person_whom_such_an_account_has_made(self, yard: Yard) -> None:
        alone = Alone(yard)
        first = alone.make("first", alone.own, admin=True)
        assert alone.is_refused(first)
        assert alone.is_refused(alone.make("second", first))

    def test_does_not_approve_with_a_password_that_was_set_there(self, yard: Yard) -> None:
        alone = Alone(yard)
        second = alone.make("second", alone.make("first", alone.own, admin=True))
        set_password(second)
        assert alone.is_refused(by_password("second"))

    def test_does_not_approve_by_a_link_that_such_an_account_makes_for_itself(self, yard: Yard) -> None:
        alone = Alone(yard)
        first = alone.make("first", alone.own, admin=True)
        set_password(first)
        again = Client()
        again.post(alone.link("first", first), {"password": CHOSEN})
        assert seen_by(again).username == "first"
        assert alone.is_refused(again)

    def test_does_not_approve_after_two_such_accounts_have_made_links_for_each_other(
        self, yard: Yard
    ) -> None:
        alone = Alone(yard)
        first = alone.make("first", alone.own, admin=True)
        second = alone.make("second", alone.own, admin=True)
        from_first, from_second = Client(), Client()
        from_first.post(alone.link("second", first))
        from_second.post(alone.link("first", from_first))
        set_password(from_second)
        assert alone.is_refused(by_password("first"))
        assert alone.is_refused(second)

    def test_does_not_approve_with_a_token_that_such_an_account_makes(self, yard: Yard) -> None:
        alone = Alone(yard)
        first = seen_by(alone.make("first", alone.own, admin=True))
        _, raw = tokens.create(yard.approver, by=first, scopes=["read", "approve"])
        headers = {"Authorization": f"Bearer {raw}"}
        path = f"/api/v1/promotions/{alone.promotion.pk}/approve"
        assert Client().post(path, {}, "application/json", headers=headers).status_code == 403

    def test_does_not_approve_what_such_an_account_has_requested(self, yard: Yard) -> None:
        alone = Alone(yard)
        second = seen_by(alone.make("second", alone.make("first", alone.own, admin=True)))
        people.set_role(yard.project, second, Role.MEMBER, by=yard.member)
        alone.promotion = promotions.request(yard.version(by=second), stage="production", by=second)
        judge(alone.promotion, GOOD_GATES)
        assert alone.is_refused(alone.own)

    def test_leaves_the_requests_of_others_to_them(self, yard: Yard) -> None:
        alone = Alone(yard)
        second = alone.make("second", alone.make("first", alone.own, admin=True))
        theirs = promotions.request(yard.version(by=yard.owner), stage="production", by=yard.owner)
        judge(theirs, GOOD_GATES)
        second.post(f"/approvals/{theirs.pk}/approve", {})
        theirs.refresh_from_db()
        assert theirs.state == State.APPROVED
