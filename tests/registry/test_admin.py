from typing import Any

import pytest
from django.urls import reverse

from jobs.actions.registry import promotions
from jobs.models import PromotionRequest, User
from tests.people import browser_of
from tests.registry.conftest import Yard, judge

CHANGELIST = "admin:jobs_promotionrequest_changelist"


@pytest.fixture
def admin(yard: Yard) -> User:
    return User.objects.create_superuser("root")


def choose(user: User, verb: str, *rows: PromotionRequest) -> Any:
    fields = {"action": verb, "_selected_action": [row.pk for row in rows]}
    return browser_of(user).post(reverse(CHANGELIST), fields, follow=True)


def test_an_administrator_approves_in_the_admin(yard: Yard, admin: User) -> None:
    waiting = yard.pending()
    page = choose(admin, "approve", waiting)
    assert f"Request {waiting.pk} is approved." in page.content.decode()
    assert yard.endpoint.production == waiting.version


def test_the_admin_rejects_by_the_same_action(yard: Yard, admin: User) -> None:
    waiting = yard.pending()
    choose(admin, "reject", waiting)
    waiting.refresh_from_db()
    assert waiting.state == "rejected"
    assert waiting.decisions.get().user == admin


def test_the_requester_cannot_decide_in_the_admin(yard: Yard, admin: User) -> None:
    promotion = promotions.request(yard.version(), stage="production", by=admin)
    judge(promotion, {"gates": [{"name": "loads", "state": "passed"}]})
    page = choose(admin, "approve", promotion)
    assert "Another person must decide" in page.content.decode()
    assert yard.endpoint.production is None


def test_no_field_can_be_written_by_hand(yard: Yard, admin: User) -> None:
    waiting = yard.pending()
    path = reverse("admin:jobs_promotionrequest_change", args=[waiting.pk])
    browser_of(admin).post(path, {"state": "approved", "stage": "production"})
    waiting.refresh_from_db()
    assert waiting.state == "pending"
