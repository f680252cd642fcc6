"""Where a second factor is required, approvers and administrators without one can only set it up."""

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP
from django.test import Client
from pytest_django import Settings

from jobs import access
from jobs.access import Action
from jobs.actions.people import people as actions
from jobs.actions.people import tokens
from jobs.actions.registry import promotions
from jobs.actions.storage import deletions
from jobs.errors import Forbidden
from jobs.models import ApiToken, User
from jobs.models.sessions import stored_key
from tests.factories import make_job, make_model, make_promotion
from tests.people import People, browser_of
from webapp.live.event_stream import Reader, _require_valid
from webapp.settings import env

SET_UP = "/accounts/2fa/totp/activate/?required=1"


@pytest.fixture(autouse=True)
def required(settings: Settings) -> None:
    settings.TRAINYARD_REQUIRE_SECOND_FACTOR = True


def by_token(user: User, scope: str) -> Client:
    _, raw = tokens.create(user, by=user, scopes=[scope])
    return Client(headers={"Authorization": f"Bearer {raw}"})


@pytest.mark.parametrize("who", ["approver", "owner", "administrator"])
def test_every_page_leads_to_its_set_up(people: People, who: str) -> None:
    browser = browser_of(getattr(people, who))
    for path in ("/", "/projects", "/approvals", "/admin/"):
        assert browser.get(path)["Location"] == SET_UP, path
    assert browser.post("/projects/new", {"slug": "new", "name": "New"})["Location"] == SET_UP
    assert browser.get("/account/").status_code == 200
    assert browser.get("/api/v1/jobs").json()["code"] == "second_factor_required"
    assert browser.get("/queue", headers={"HX-Request": "true"})["HX-Redirect"] == SET_UP


def test_the_set_up_shows_why_and_opens_the_pages(people: People) -> None:
    browser = browser_of(people.approver)
    Authenticator.objects.all().delete()
    people.approver.set_unusable_password()
    people.approver.save(update_fields=["password"])
    browser.force_login(people.approver)
    assert "Set it up to continue" in browser.get(SET_UP).content.decode()
    TOTP.activate(people.approver, "JBSWY3DPEHPK3PXP")
    assert browser.get("/approvals").status_code == 200


@pytest.mark.parametrize("who", ["member", "trainer", "viewer"])
def test_others_need_none(people: People, who: str) -> None:
    assert browser_of(getattr(people, who)).get("/projects").status_code == 200


def test_an_approver_without_one_does_not_approve_by_any_way(people: People) -> None:
    model = make_model(project=people.project, by=people.member)
    request = make_promotion(model.versions.get(), by=people.member)
    with pytest.raises(Forbidden, match="second factor"):
        promotions.approve(request, comment="fine", by=people.approver)
    path = f"/api/v1/promotions/{request.pk}/approve"
    answer = by_token(people.approver, "approve").post(
        path, {"comment": "fine"}, content_type="application/json"
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "second_factor_required")
    assert by_token(people.approver, "read").get("/api/v1/promotions").status_code == 200
    assert not access.projects_of(people.approver, Action.APPROVE).exists()


def test_an_administrator_without_one_does_not_administer(people: People) -> None:
    with pytest.raises(Forbidden, match="second factor"):
        actions.set_admin(people.member, True, by=people.administrator)
    with pytest.raises(Forbidden, match="second factor"):
        access.require(people.administrator, people.project, Action.MANAGE)
    answer = by_token(people.administrator, "admin").get("/api/v1/audit")
    assert answer.json()["code"] == "second_factor_required"
    TOTP.activate(people.administrator, "JBSWY3DPEHPK3PXP")
    actions.set_admin(people.member, True, by=people.administrator)


def test_a_token_of_an_administrator_without_one_revokes_no_token_of_others(people: People) -> None:
    theirs, _ = tokens.create(people.member, by=people.member, scopes=["read"])
    _, raw = tokens.create(people.administrator, by=people.administrator, scopes=["write", "admin"])
    answer = Client(headers={"Authorization": f"Bearer {raw}"}).delete(f"/api/v1/tokens/{theirs.pk}")
    assert (answer.status_code, answer.json()["code"]) == (403, "second_factor_required")
    assert ApiToken.objects.filter(pk=theirs.pk).exists()
    with pytest.raises(Forbidden, match="second factor"):
        tokens.create(people.member, by=people.administrator, scopes=["read"])


@pytest.mark.parametrize("who", ["owner", "administrator"])
def test_without_one_only_own_deletions_are_undone(people: People, who: str) -> None:
    user: User = getattr(people, who)
    deletions.delete(make_job(project=people.project, by=people.member, state="completed"), by=people.member)
    assert not access.restorable_deletions(user).exists()
    assert access.restorable_deletions(people.member).exists()
    TOTP.activate(user, "JBSWY3DPEHPK3PXP")
    assert access.restorable_deletions(user).exists()


@pytest.mark.parametrize("who", ["approver", "owner", "administrator"])
def test_a_socket_of_a_session_without_one_is_closed(people: People, who: str) -> None:
    user: User = getattr(people, who)
    key = browser_of(user).session.session_key
    assert key is not None
    reader = Reader(user.pk, session=stored_key(key))
    with pytest.raises(Forbidden, match="second factor"):
        _require_valid(reader)
    TOTP.activate(user, "JBSWY3DPEHPK3PXP")
    assert _require_valid(reader) == user


def test_a_stream_of_a_token_needs_none(people: People) -> None:
    token, _ = tokens.create(people.approver, by=people.approver, scopes=["read"])
    assert _require_valid(Reader(people.approver.pk, token_id=token.pk)) == people.approver


def test_it_cannot_be_turned_off_where_it_is_required(people: People) -> None:
    for user, stays in ((people.approver, True), (people.member, False)):
        TOTP.activate(user, "JBSWY3DPEHPK3PXP")
        user.set_unusable_password()
        user.save(update_fields=["password"])
        browser = browser_of(user)
        session = browser.session
        session["account_authentication_methods"] = [{"method": "mfa", "at": 9e9, "reauthenticated": True}]
        session["account_authentication_methods_user"] = str(user.pk)
        session.save()
        browser.post("/accounts/2fa/totp/deactivate/")
        assert Authenticator.objects.filter(user=user).exists() is stays


def test_the_installation_itself_needs_none(people: People) -> None:
    service = User.objects.create(username="installation", is_service=True, is_superuser=True)
    assert not access.lacks_second_factor(service)


def test_the_setting_follows_the_production_settings_unless_it_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "TRAINYARD_REQUIRE_SECOND_FACTOR"
    monkeypatch.delenv(name, raising=False)
    assert (env.flag(name, default=True), env.flag(name)) == (True, False)
    monkeypatch.setenv(name, "0")
    assert env.flag(name, default=True) is False
