"""A refused decision names the members who could decide, or the next step if none could."""

import pytest
from pytest_django import DjangoAssertNumQueries

from jobs.actions.people import people
from jobs.actions.registry import promotions
from jobs.errors import Forbidden
from jobs.models import Role, User
from jobs.queries.registry import deciders
from tests.registry.conftest import Yard


def test_the_requester_reads_who_could_decide(yard: Yard) -> None:
    promotion = yard.request()
    User.objects.filter(pk=yard.second_approver.pk).update(is_active=False)
    with pytest.raises(Forbidden, match=r"roles: approver, admin. approver or owner could decide it\."):
        promotions.approve(promotion, by=yard.member)
    User.objects.filter(pk=yard.approver.pk).update(is_active=False)
    request = promotions.request(yard.version(), stage="staging", by=yard.owner)
    with pytest.raises(
        Forbidden, match=r"Another person must decide\. No member of vision could decide it now"
    ):
        promotions.approve(request, by=yard.owner)


def test_who_logs_in_by_a_link_of_the_requester_is_not_named(yard: Yard) -> None:
    root = User.objects.create_superuser("root")
    invited = people.add_person("invited", by=root)
    yard.project.memberships.create(user=invited, role=Role.APPROVER)
    promotion = promotions.request(yard.version(), stage="staging", by=root)
    assert "invited" in deciders.describe_deciders(promotion)
    link = people.create_login_link(invited, by=root)
    people.use_login_link(link.rsplit("/", 1)[-1])
    assert "invited" not in deciders.describe_deciders(promotion)
    people.use_login_link(people.create_login_link(invited, by=None).rsplit("/", 1)[-1])
    assert "invited" in deciders.describe_deciders(promotion)
    # A password counts instead of the links.
    User.objects.filter(pk=invited.pk).update(password="x")
    assert "invited" not in deciders.describe_deciders(promotion)


def test_who_made_the_version_is_not_named(yard: Yard) -> None:
    assert "owner" not in deciders.describe_deciders(yard.request(yard.version(by=yard.owner)))


def test_an_administrator_of_the_installation_is_named_without_a_membership(yard: Yard) -> None:
    promotion = yard.request()
    User.objects.create_superuser("aroot", password="x")
    User.objects.create_superuser("gone", password="x", is_active=False)
    named = deciders.describe_deciders(promotion)
    assert ("aroot" in named, "gone" in named) == (True, False)


def test_the_queries_do_not_grow_with_the_members(
    yard: Yard, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    promotion = yard.request()
    for number in range(60):
        person = User.objects.create(username=f"a{number:02}", password="x")
        yard.project.memberships.create(user=person, role=Role.MEMBER if number < 40 else Role.APPROVER)
    with django_assert_max_num_queries(70):
        assert deciders.describe_deciders(promotion).startswith("a40, ")


def test_many_names_are_counted(yard: Yard) -> None:
    for number in range(6):
        person = User.objects.create(username=f"a{number}", password="x")
        yard.project.memberships.create(user=person, role=Role.APPROVER)
    assert deciders.describe_deciders(yard.request()) == "a0, a1, a2, a3 or others could decide it."
