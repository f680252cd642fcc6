"""Deactivating a person names the applications that stop, and hands their tokens over."""

import json
from typing import Any

import pytest
from django.test import Client

from jobs import clock
from jobs.actions.people import departures as actions
from jobs.actions.people import people as accounts
from jobs.actions.people import tokens
from jobs.errors import BadInput, Conflict, Forbidden
from jobs.models import ApiToken, AuditEvent, Membership, Role, User
from jobs.queries.people.departures import departure_of
from jobs.queries.people.token_rights import EVERYWHERE, rights_change
from tests.people import People, browser_of, make_person

pytestmark = pytest.mark.django_db


def token_of(user: User, *scopes: str, **more: Any) -> tuple[ApiToken, str]:
    return tokens.create(user, by=user, scopes=scopes or ("read", "write"), name="nightly import", **more)


def colleague_of(people: People, role: Role = Role.MEMBER) -> User:
    colleague = make_person("colleague")
    Membership.objects.create(project=people.project, user=colleague, role=role)
    return colleague


def works(secret: str) -> str | None:
    """Return as whom a token works; None if it does not."""
    found = tokens.authenticate(secret)
    return None if found is None else found.user.username


def test_applications_go_on_with_the_same_secret_and_the_rights_of_the_receiver(people: People) -> None:
    _, secret = token_of(people.member)
    colleague = colleague_of(people)
    actions.deactivate(people.member, by=people.administrator, hand_tokens_to=colleague)
    assert works(secret) == "colleague"
    people.member.refresh_from_db()
    assert not people.member.is_active


def test_a_hand_over_is_in_the_audit_log(people: People) -> None:
    token, _ = token_of(people.member)
    actions.hand_over([token], colleague_of(people), by=people.administrator)
    row = AuditEvent.objects.get(action="token.hand_over")
    assert (row.actor, row.detail["owner"], row.detail["to"]) == (
        people.administrator,
        "member",
        "colleague",
    )


def test_the_former_owner_counts_as_one_who_knows_the_secret(people: People) -> None:
    token, secret = token_of(people.member)
    actions.hand_over([token], colleague_of(people), by=people.administrator)
    found = tokens.authenticate(secret)
    assert found is not None
    assert people.member.pk in found.user.login_issuers


def test_tokens_that_were_created_with_a_token_go_with_it(people: People) -> None:
    parent, _ = token_of(people.member)
    _, child = token_of(people.member, "read", parent=parent)
    actions.hand_over([parent], colleague_of(people), by=people.administrator)
    assert works(child) == "colleague"


def test_what_a_token_would_lose_is_named_and_nothing_changes(people: People) -> None:
    _, secret = token_of(people.member)
    viewer = colleague_of(people, Role.VIEWER)
    with pytest.raises(Conflict, match=r"nightly import loses yard \(member → viewer\)") as refusal:
        actions.deactivate(people.member, by=people.administrator, hand_tokens_to=viewer)
    assert refusal.value.code == actions.RIGHTS_DIFFER
    assert works(secret) == "member"
    actions.deactivate(people.member, by=people.administrator, hand_tokens_to=viewer, accept_changes=True)
    assert works(secret) == "colleague"


def test_what_a_token_would_gain_is_named_too(people: People) -> None:
    token, _ = token_of(people.member)
    assert rights_change(token, people.owner).gained == ("yard (member → admin)",)
    assert rights_change(token, people.administrator).gained == (EVERYWHERE,)
    assert rights_change(token, people.stranger).gained == ("elsewhere (no member → admin)",)
    of_administrator, _ = token_of(people.administrator)
    assert EVERYWHERE in rights_change(of_administrator, people.member).lost


def test_a_token_that_only_reads_needs_no_higher_role(people: People) -> None:
    token, _ = token_of(people.owner, "read")
    assert not rights_change(token, people.viewer)


def test_a_scope_of_administrators_goes_to_administrators_alone(people: People) -> None:
    token, _ = token_of(people.administrator, "admin")
    other = make_person("other", admin=True)
    with pytest.raises(BadInput, match="has the scope admin, which member may not have"):
        actions.hand_over([token], people.member, by=other, accept_changes=True)
    actions.hand_over([token], other, by=other)


def test_an_inactive_person_gets_no_tokens(people: People) -> None:
    token, _ = token_of(people.member)
    accounts.set_active(people.viewer, False, by=people.administrator)
    people.viewer.refresh_from_db()
    with pytest.raises(BadInput, match="viewer is no active person"):
        actions.hand_over([token], people.viewer, by=people.administrator)


@pytest.mark.parametrize("name", ["member", "owner", "approver", "stranger"])
def test_only_administrators_hand_tokens_over(people: People, name: str) -> None:
    token, _ = token_of(people.member)
    with pytest.raises(Forbidden):
        actions.hand_over([token], people.owner, by=getattr(people, name), accept_changes=True)


def test_tokens_are_revoked_for_good_or_work_again_after_a_reactivation(people: People) -> None:
    _, kept = token_of(people.member)
    _, revoked = token_of(people.viewer)
    actions.deactivate(people.member, by=people.administrator)
    actions.deactivate(people.viewer, by=people.administrator, revoke_tokens=True)
    assert (works(kept), works(revoked)) == (None, None)
    for person in (people.member, people.viewer):
        accounts.set_active(person, True, by=people.administrator)
    assert (works(kept), works(revoked)) == ("member", None)


def test_the_projects_that_only_they_administer_or_approve_in_are_named(people: People) -> None:
    assert departure_of(people.owner).only_admin_of == ["yard"]
    assert departure_of(people.owner).only_approver_of == []
    accounts.set_active(people.approver, False, by=people.administrator)
    assert departure_of(people.owner).only_approver_of == ["yard"]
    assert departure_of(people.member).only_admin_of == []


def test_expired_tokens_are_not_named(people: People) -> None:
    token, _ = token_of(people.member)
    assert departure_of(people.member).tokens == [token]
    ApiToken.objects.update(expires=clock.now())
    assert departure_of(people.member).tokens == []


class TestPage:
    def test_names_the_applications_before_anything_is_changed(self, people: People) -> None:
        token, secret = token_of(people.member)
        tokens.authenticate(secret)
        page = browser_of(people.administrator).get("/people/member/departure").content.decode()
        assert "nightly import" in page
        assert token.prefix in page
        assert works(secret) == "member"

    def test_hands_over_and_deactivates(self, people: People) -> None:
        _, secret = token_of(people.member)
        colleague_of(people)
        browser = browser_of(people.administrator)
        answer = browser.post("/people/member/departure", {"tokens": "hand", "to": "colleague"})
        assert answer.status_code == 303
        assert works(secret) == "colleague"
        assert not User.objects.get(username="member").is_active

    def test_shows_a_difference_of_rights_and_changes_nothing(self, people: People) -> None:
        _, secret = token_of(people.member)
        colleague_of(people, Role.VIEWER)
        browser, entries = browser_of(people.administrator), {"tokens": "hand", "to": "colleague"}
        answer = browser.post("/people/member/departure", entries)
        assert answer.status_code == 409
        assert "yard (member → viewer)" in answer.content.decode()
        assert works(secret) == "member"
        assert 'name="shown_for" value="colleague"' in answer.content.decode()
        accepted = entries | {"accept": "on", "shown_for": "colleague"}
        assert browser.post("/people/member/departure", accepted).status_code == 303

    def test_offers_to_accept_a_difference_only_once_it_was_shown(self, people: People) -> None:
        _, secret = token_of(people.member)
        colleague_of(people, Role.VIEWER)
        browser, entries = browser_of(people.administrator), {"tokens": "hand", "to": "colleague"}
        assert 'name="accept"' not in browser.get("/people/member/departure").content.decode()
        for shown_for in ("", "viewer"):
            accepted = entries | {"accept": "on", "shown_for": shown_for}
            answer = browser.post("/people/member/departure", accepted)
            assert answer.status_code == 409
            box = answer.content.decode().partition('name="accept"')[2].partition(">")[0]
            assert box
            assert "checked" not in box
        assert works(secret) == "member"

    @pytest.mark.parametrize(
        "entries", [{}, {"tokens": "hand"}, {"tokens": "hand", "to": "nobody"}, {"tokens": "burn"}]
    )
    def test_refuses_what_is_missing_or_unknown(self, people: People, entries: dict[str, str]) -> None:
        token_of(people.member)
        assert browser_of(people.administrator).post("/people/member/departure", entries).status_code == 422
        assert User.objects.get(username="member").is_active

    def test_hands_over_the_tokens_of_someone_who_left_before(self, people: People) -> None:
        _, secret = token_of(people.member)
        colleague_of(people)
        actions.deactivate(people.member, by=people.administrator)
        browser = browser_of(people.administrator)
        browser.post("/people/member/departure", {"tokens": "hand", "to": "colleague"})
        assert works(secret) == "colleague"

    def test_names_the_tokens_that_are_kept_and_that_work_again(self, people: People) -> None:
        token_of(people.member)
        browser = browser_of(people.administrator)
        page = browser.post("/people/member/departure", {"tokens": "keep"}, follow=True).content.decode()
        assert "These tokens of member are kept: nightly import" in page
        page = browser.post("/people/member/active", {"active": "1"}, follow=True).content.decode()
        assert "These tokens of member work again: nightly import" in page


class TestApi:
    @pytest.fixture
    def browser(self, people: People) -> Client:
        return browser_of(people.administrator)

    def change(self, browser: Client, **body: Any) -> Any:
        return browser.patch("/api/v1/users/member", json.dumps(body), content_type="application/json")

    def test_names_what_depends_on_a_person(self, people: People, browser: Client) -> None:
        token, _ = token_of(people.member)
        answer = browser.get("/api/v1/users/member/departure").json()
        assert [row["id"] for row in answer["tokens"]] == [token.pk]
        assert answer["only_admin_of"] == []
        assert "secret" not in str(answer)

    def test_hands_tokens_over_while_it_deactivates(self, people: People, browser: Client) -> None:
        _, secret = token_of(people.member)
        colleague_of(people)
        answer = self.change(browser, active=False, hand_tokens_to="colleague").json()
        assert answer["active"] is False
        assert (answer["kept_tokens"], answer["note"]) == ([], "")
        assert works(secret) == "colleague"

    def test_names_the_tokens_that_are_kept_and_work_again(self, people: People, browser: Client) -> None:
        token, secret = token_of(people.member)
        stopped = self.change(browser, active=False).json()
        assert [row["id"] for row in stopped["kept_tokens"]] == [token.pk]
        assert f"nightly import ({token.prefix}…)" in stopped["note"]
        assert "work again if the account is reactivated" in stopped["note"]
        assert works(secret) is None
        back = self.change(browser, active=True).json()
        assert [row["id"] for row in back["kept_tokens"]] == [token.pk]
        assert "work again: nightly import" in back["note"]
        assert works(secret) == "member"

    def test_names_no_tokens_that_a_change_does_not_concern(self, people: People, browser: Client) -> None:
        token_of(people.member)
        assert self.change(browser, admin=True).json()["kept_tokens"] == []
        assert self.change(browser, active=False, revoke_tokens=True).json()["kept_tokens"] == []

    def test_refuses_a_token_with_its_reason(self, people: People) -> None:
        token, secret = token_of(people.member)

        def detail() -> str:
            answer = Client().get("/api/v1/jobs", headers={"Authorization": f"Bearer {secret}"})
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
            return str(answer.json()["detail"])

        accounts.set_active(people.member, False, by=people.administrator)
        assert "its owner member is deactivated" in detail()
        accounts.set_active(people.member, True, by=people.administrator)
        ApiToken.objects.update(expires=clock.now())
        assert "it expired at " in detail()
        tokens.revoke(token, by=people.member)
        assert "it is unknown or was revoked" in detail()

    def test_refuses_changed_rights_and_unknown_people_whole(self, people: People, browser: Client) -> None:
        _, secret = token_of(people.member)
        answer = self.change(browser, active=False, hand_tokens_to="viewer")
        assert (answer.status_code, answer.json()["code"]) == (409, "rights_differ")
        answer = self.change(browser, active=False, hand_tokens_to="nobody")
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/hand_tokens_to")
        assert self.change(browser, hand_tokens_to="viewer").status_code == 422
        assert (
            self.change(browser, active=False, hand_tokens_to="viewer", revoke_tokens=True).status_code == 422
        )
        assert works(secret) == "member"

    def test_hands_one_token_over(self, people: People, browser: Client) -> None:
        token, secret = token_of(people.member)
        colleague_of(people)
        answer = browser.post(
            f"/api/v1/tokens/{token.pk}/hand-over", {"to": "colleague"}, content_type="application/json"
        )
        assert answer.json()["owner"] == "colleague"
        assert works(secret) == "colleague"

    def test_a_token_with_the_scope_admin_alone_accepts_no_change_of_rights(self, people: People) -> None:
        token, _ = token_of(people.member)
        _, weak = token_of(people.administrator, "admin")
        for path, body in (
            (f"tokens/{token.pk}/hand-over", {"to": "owner", "accept_changes": True}),
            ("users/member", {"active": False, "hand_tokens_to": "owner", "accept_changes": True}),
        ):
            send = Client().post if "tokens" in path else Client().patch
            answer = send(
                f"/api/v1/{path}",
                json.dumps(body),
                content_type="application/json",
                headers={"Authorization": f"Bearer {weak}"},
            )
            assert answer.status_code == 403
            assert answer.json()["detail"] == (
                "To hand tokens over although their rights change (`accept_changes`), the token also needs "
                "the scopes read, write, approve."
            )
