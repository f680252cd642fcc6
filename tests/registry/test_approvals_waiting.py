"""For every person, the navigation counts as many approvals as the inbox has requests."""

import pytest
from pytest_django import DjangoAssertNumQueries

from jobs.actions.registry import promotions
from jobs.models import Membership, PromotionRequest, Role, User
from jobs.queries import home
from tests.registry.conftest import GOOD_GATES, Yard, judge


@pytest.fixture
def people(yard: Yard) -> dict[str, User]:
    """Three requests: by the member, by the owner, and by the member for an administrator's version."""
    root = User.objects.create_superuser("root")
    yard.pending()
    for maker, by in ((yard.owner, yard.owner), (root, yard.member)):
        judge(promotions.request(yard.version(by=maker), stage="staging", by=by), GOOD_GATES)
    return {
        "root": root,
        **{name: getattr(yard, name) for name in ("owner", "member", "approver", "viewer", "stranger")},
    }


WAITING = {"root": 2, "owner": 2, "member": 0, "approver": 3, "viewer": 0, "stranger": 0}


@pytest.mark.parametrize("name", WAITING)
def test_it_counts_what_the_inbox_lists(
    people: dict[str, User], name: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    user = people[name]
    assert home.approvals_to_decide(user).count() == WAITING[name]
    with django_assert_num_queries(2):
        assert home.count_approvals_to_decide(user) == WAITING[name]


def test_without_a_pending_request_one_short_query_is_enough(
    people: dict[str, User], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    PromotionRequest.objects.update(state="rejected")
    with django_assert_num_queries(1) as asked:
        assert home.count_approvals_to_decide(people["approver"]) == 0
    assert "JOIN" not in asked.captured_queries[0]["sql"]


def test_it_follows_the_roles_and_the_requests(people: dict[str, User], yard: Yard) -> None:
    Membership.objects.filter(user=yard.approver).update(role=Role.VIEWER)
    assert home.count_approvals_to_decide(yard.approver) == 0
    Membership.objects.filter(user=yard.viewer).update(role=Role.APPROVER)
    assert home.count_approvals_to_decide(yard.viewer) == 3
    PromotionRequest.objects.filter(requested_by=yard.owner).update(single_person=True)
    assert home.count_approvals_to_decide(yard.owner) == 3
    PromotionRequest.objects.filter(requested_by=yard.member).update(state="rejected")
    assert home.count_approvals_to_decide(yard.viewer) == 1


def test_a_login_link_counts_nothing_of_the_person_who_made_it(people: dict[str, User], yard: Yard) -> None:
    user = yard.approver
    user.login_issuers = frozenset({yard.member.pk})
    assert home.count_approvals_to_decide(user) == home.approvals_to_decide(user).count() == 1


def test_an_account_that_was_switched_off_has_none(people: dict[str, User]) -> None:
    for name in ("owner", "root"):
        people[name].is_active = False
        assert (
            home.count_approvals_to_decide(people[name])
            == home.approvals_to_decide(people[name]).count()
            == 0
        )
