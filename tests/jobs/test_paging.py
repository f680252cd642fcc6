"""Lists in pages by key, for the API and the pages alike."""

import base64
import json
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from jobs.errors import BadInput
from jobs.models import Project, RegisteredModel
from jobs.queries.paging import page_of, part_of
from tests.factories import make_model
from tests.people import People

ORDERS = ("pk", "-pk", "name", "-created", "project__slug", "-project__slug")


@pytest.fixture
def models(people: People) -> list[RegisteredModel]:
    return [make_model(name, project=people.project, by=people.owner, versions=0) for name in "dbaec"]


def forged(*content: Any) -> str:
    """Return a cursor as it was before cursors were signed."""
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


@pytest.mark.parametrize("order", ORDERS)
def test_every_row_comes_once_and_in_order(models: list[RegisteredModel], order: str) -> None:
    seen: list[RegisteredModel] = []
    cursor, more = None, True
    while more:
        part = part_of(RegisteredModel.objects.all(), cursor=cursor, limit=2, order=order)
        seen += part.items
        cursor, more = part.next, part.next is not None
    by_id = "-pk" if order.startswith("-") else "pk"
    assert seen == list(RegisteredModel.objects.order_by(order, by_id))


def test_a_row_added_between_two_pages_does_not_shift_the_second(
    people: People, models: list[RegisteredModel]
) -> None:
    first = part_of(RegisteredModel.objects.all(), limit=2, order="name")
    make_model("aa", project=people.project, by=people.owner, versions=0)
    second = part_of(RegisteredModel.objects.all(), limit=2, order="name", cursor=first.next)
    assert [row.name for row in first.items + second.items] == ["a", "b", "c", "d"]


def test_a_list_that_fits_has_no_further_page(models: list[RegisteredModel]) -> None:
    assert part_of(RegisteredModel.objects.all(), limit=5).next is None


def test_only_pages_that_show_the_count_pay_for_it(
    models: list[RegisteredModel], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        part_of(RegisteredModel.objects.all(), limit=2)
    with django_assert_num_queries(2):
        assert page_of(RegisteredModel.objects.all(), limit=2).total == 5


def test_a_cursor_serves_the_order_it_was_made_for(models: list[RegisteredModel]) -> None:
    cursor = part_of(RegisteredModel.objects.all(), limit=2, order="name").next
    for order in ("-name", "created", "pk"):
        with pytest.raises(BadInput) as refusal:
            part_of(RegisteredModel.objects.all(), cursor=cursor, order=order)
        assert [problem.pointer for problem in refusal.value.problems] == ["/cursor"]


def test_a_cursor_serves_the_list_it_was_made_for(models: list[RegisteredModel]) -> None:
    cursor = part_of(RegisteredModel.objects.all(), limit=2).next
    with pytest.raises(BadInput):
        part_of(Project.objects.all(), cursor=cursor)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "cursor",
    [
        "", "x", "W10", ":", "a:b", "ß:ß", "\udcff", "a:\udcff", "\udcff:a", "é" * 300,
        forged("-pk", 1, 1), forged("-pk", "\0", 2**70), forged("-pk", float("inf"), float("nan")),
    ],
)  # fmt: skip
def test_an_invalid_cursor_is_refused_with_its_pointer(cursor: str) -> None:
    with pytest.raises(BadInput) as refusal:
        part_of(RegisteredModel.objects.all(), cursor=cursor)
    assert [problem.pointer for problem in refusal.value.problems] == ["/cursor"]
