"""The single-person rule: who switches it, to which requests it applies, and where it is shown."""

import json

import pytest
from django.core.management import CommandError, call_command

from jobs.actions.people import people
from jobs.actions.registry import promotions
from jobs.errors import Forbidden
from jobs.models import AuditEvent, Project, PromotionRequest, User
from tests.people import browser_of
from tests.registry.conftest import GOOD_GATES, Yard, in_inbox, judge


@pytest.fixture
def root(yard: Yard) -> User:
    return User.objects.create_superuser("root")


def asked_by_owner(yard: Yard) -> PromotionRequest:
    """Open a request by the owner for her version; its gates have passed."""
    promotion = promotions.request(yard.version(by=yard.owner), stage="production", by=yard.owner)
    judge(promotion, GOOD_GATES)
    return promotion


def switch(yard: Yard, on: bool, by: User) -> None:
    people.change_project(yard.project, single_person=on, by=by)


def test_a_project_admin_cannot_switch_it(yard: Yard) -> None:
    browser = browser_of(yard.owner)
    answer = browser.patch("/api/v1/projects/vision", {"single_person": True}, "application/json")
    assert answer.status_code == 403
    browser.post("/p/vision/settings", {"name": "Vision", "single_person": "on"})
    assert not Project.objects.get(pk=yard.project.pk).single_person


def test_a_refused_switch_changes_no_other_field(yard: Yard) -> None:
    body = {"single_person": True, "name": "Mine"}
    browser_of(yard.owner).patch("/api/v1/projects/vision", body, "application/json")
    assert Project.objects.get(pk=yard.project.pk).name == "Vision"


@pytest.mark.parametrize("what", ["request", "version"])
def test_an_administrator_with_an_open_request_cannot_switch_it_on(yard: Yard, root: User, what: str) -> None:
    version = yard.version(by=root if what == "version" else yard.member)
    promotions.request(version, stage="production", by=root if what == "request" else yard.member)
    with pytest.raises(Forbidden, match="another administrator"):
        switch(yard, True, root)
    page = browser_of(root).post("/p/vision/settings", {"name": "Vision", "single_person": "on"})
    assert (page.status_code, "another administrator" in page.content.decode()) == (403, True)


def test_a_request_that_was_open_before_needs_another_person(yard: Yard, root: User) -> None:
    before = asked_by_owner(yard)
    switch(yard, True, root)
    before = PromotionRequest.objects.get(pk=before.pk)
    assert not in_inbox(before, yard.owner)
    with pytest.raises(Forbidden):
        promotions.approve(before, by=yard.owner)


def test_a_request_keeps_the_rule_that_it_was_opened_under(yard: Yard, root: User) -> None:
    switch(yard, True, root)
    promotion = asked_by_owner(yard)
    switch(yard, False, root)
    assert in_inbox(promotion, yard.owner)
    promotions.approve(promotion, by=yard.owner)
    with pytest.raises(Forbidden):
        promotions.approve(asked_by_owner(yard), by=yard.owner)


def test_the_administrator_who_switched_it_on_still_needs_another_person(yard: Yard, root: User) -> None:
    switch(yard, True, root)
    promotion = promotions.request(yard.version(), stage="production", by=root)
    judge(promotion, GOOD_GATES)
    with pytest.raises(Forbidden):
        promotions.approve(promotion, by=root)


def test_the_operator_switches_it_for_an_installation_of_one_person(yard: Yard, root: User) -> None:
    call_command("single_person", "vision", "on")
    promotion = promotions.request(yard.version(by=root), stage="production", by=root)
    judge(promotion, GOOD_GATES)
    assert promotions.approve(promotion, by=root).generation == 1
    with pytest.raises(CommandError, match="no project 'other'"):
        call_command("single_person", "other", "on")


def test_each_switch_is_an_audit_row(yard: Yard, root: User) -> None:
    for on in (True, True, False):
        switch(yard, on, root)
    rows = AuditEvent.objects.filter(action="project.single_person", actor=root, project=yard.project)
    assert [row.detail["on"] for row in rows.order_by("pk")] == [True, False]


def test_project_request_and_version_show_it_also_after_it_is_switched_back(yard: Yard, root: User) -> None:
    switch(yard, True, root)
    promotion = promotions.approve(asked_by_owner(yard), by=yard.owner)
    browser = browser_of(yard.viewer)
    assert ">single person</span>" in browser.get("/models/digits").content.decode()
    switch(yard, False, root)
    assert ">was single person</span>" in browser.get("/p/vision/settings").content.decode()
    for address in (f"/approvals/{promotion.pk}", "/models/digits/versions/1"):
        text = " ".join(browser.get(address).content.decode().split())
        assert "approved under the single-person rule" in text, address
    for address in (f"promotions/{promotion.pk}", "models/digits/versions/1"):
        assert json.loads(browser.get(f"/api/v1/{address}").content)["single_person"], address
