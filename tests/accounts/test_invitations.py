"""Inviting a person from the page of a project: account, role and login link in one row."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from jobs.actions.people import people as actions
from jobs.models import LoginLink, Role, User
from jobs.queries.people.login_states import LoginKind, login_states
from tests.markup import text_of
from tests.people import People, browser_of

INVITE = "/p/yard/invite"
SETTINGS = "/p/yard/settings"


def kind_of(user: User) -> LoginKind:
    user.refresh_from_db()
    return login_states([user])[user.pk].kind


def test_an_administrator_invites_a_new_person_with_a_role_and_gets_the_link_on_the_same_page(
    people: People,
) -> None:
    answer = browser_of(people.administrator).post(INVITE, {"user": "grace", "role": "approver"})
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    assert people.project.memberships.get(user__username="grace").role == "approver"
    text = text_of(answer)
    assert "Login link for grace" in text and "link not yet used" in text
    path = re.search(r"/login/[\w-]+", answer.content.decode())
    assert path is not None
    entered = Client()
    entered.post(path[0])
    assert entered.get(SETTINGS).status_code == 200
    assert path[0] not in browser_of(people.administrator).get(SETTINGS).content.decode(), "shown once"


def test_a_person_with_an_account_is_added_without_a_link(people: People) -> None:
    answer = browser_of(people.owner).post(INVITE, {"user": "stranger", "role": "viewer"}, follow=True)
    assert "stranger is viewer of The yard." in text_of(answer)
    assert not LoginLink.objects.exists()


def test_an_admin_of_the_project_alone_invites_no_new_people_and_keeps_the_entry(people: People) -> None:
    answer = browser_of(people.owner).post(INVITE, {"user": "grace", "role": "approver"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "There is no person &#x27;grace&#x27;. New people are invited by administrators" in page
    assert 'value="grace"' in page and '<option value="approver" selected>' in page
    assert not User.objects.filter(username="grace").exists()


@pytest.mark.parametrize("role", ["member", "trainer", "approver", "viewer"])
def test_only_admins_of_a_project_invite(people: People, role: str) -> None:
    browser = browser_of(getattr(people, role))
    assert browser.post(INVITE, {"user": "stranger", "role": "viewer"}).status_code == 403
    assert browser.post("/p/yard/members/member/link").status_code == 403


def test_a_bad_name_is_an_error_of_the_field_and_makes_nothing(people: People) -> None:
    answer = browser_of(people.administrator).post(INVITE, {"user": "grace hopper", "role": "member"})
    assert answer.status_code == 422
    assert "is not a valid user name" in text_of(answer)
    assert not LoginLink.objects.exists()


def test_an_administrator_makes_a_new_link_for_a_member_who_has_not_logged_in(people: People) -> None:
    browser = browser_of(people.administrator)
    browser.post(INVITE, {"user": "grace", "role": "member"})
    LoginLink.objects.update(expires=timezone.now() - timedelta(minutes=1))
    page = browser.get(SETTINGS)
    assert "link expired" in text_of(page)
    assert 'action="/p/yard/members/grace/link"' in page.content.decode()
    answer = browser.post("/p/yard/members/grace/link")
    assert answer["Cache-Control"] == "no-store"
    assert "Login link for grace" in text_of(answer) and "link not yet used" in text_of(answer)
    assert browser.get("/p/yard/members/grace/link").status_code == 303, "a reload makes no other link"
    assert LoginLink.objects.count() == 2


def test_the_state_of_a_link_follows_what_happens_to_it(people: People) -> None:
    grace = actions.add_person("grace", by=people.administrator)
    assert kind_of(grace) == LoginKind.NONE
    link = actions.create_login_link(grace, by=people.administrator)
    assert kind_of(grace) == LoginKind.UNUSED
    User.objects.filter(pk=people.administrator.pk).update(is_superuser=False)
    assert kind_of(grace) == LoginKind.VOID
    User.objects.filter(pk=people.administrator.pk).update(is_superuser=True)
    LoginLink.objects.update(expires=timezone.now())
    assert kind_of(grace) == LoginKind.EXPIRED
    link = actions.create_login_link(grace, by=people.administrator)
    assert kind_of(grace) == LoginKind.UNUSED
    Client().post(link)
    assert kind_of(grace) == LoginKind.LOGGED_IN
    User.objects.filter(pk=grace.pk).update(last_login=None)
    assert kind_of(grace) == LoginKind.USED
    User.objects.filter(pk=grace.pk).update(last_login=timezone.now())
    actions.create_login_link(grace, by=None)
    assert kind_of(grace) == LoginKind.UNUSED


def test_the_page_people_invites_into_a_project(people: People) -> None:
    answer = browser_of(people.administrator).post(
        "/people", {"username": "grace", "project": "yard", "role": "trainer"}
    )
    assert "Login link for grace" in text_of(answer)
    assert people.project.memberships.get(user__username="grace").role == Role.TRAINER
    assert "link not yet used" in text_of(browser_of(people.administrator).get("/people"))


def test_a_project_explains_both_ways_of_approval_beside_the_rule(people: People) -> None:
    page = text_of(browser_of(people.administrator).get(SETTINGS))
    assert "Another person" in page and "adduser NAME" in page and "A single person" in page
    assert "One person may request and approve" in page
    member = text_of(browser_of(people.member).get(SETTINGS))
    assert "adduser NAME" in member
    assert "The rule is switched by administrators of the installation." in member


def test_quotas_are_collapsed_unless_one_is_nearly_used_up(people: People) -> None:
    browser = browser_of(people.administrator)
    assert "<details open" not in browser.get(SETTINGS).content.decode().partition('id="quotas"')[0]
    people.project.max_slots = 0
    people.project.save(update_fields=["max_slots"])
    assert "<details open" in browser.get(SETTINGS).content.decode()


def test_before_the_first_project_experiments_leads_to_making_one(people: People) -> None:
    people.project.memberships.filter(user=people.viewer).delete()
    answer = browser_of(people.viewer).get("/")
    page = answer.content.decode()
    assert re.search(r'<a[^>]*href="/projects/new"[^>]*>(?:(?!</a>).)*Experiments', page, re.DOTALL)
    assert "Invite people" in text_of(answer) and "a single person" in text_of(answer)
