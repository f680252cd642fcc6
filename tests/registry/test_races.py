"""Races between decisions, in threads with their own database connections.

They run on whatever database the suite runs on: SQLite's file, or PostgreSQL by TRAINYARD_DATABASE_URL.
"""

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connections, transaction

from jobs.actions.registry import promotions, releases
from jobs.errors import Conflict, StaleState
from jobs.messages.release import SignedRelease
from jobs.models import Decision, PromotionRequest, ReleaseRecord
from jobs.queries.audit.audit_verification import verify_chain
from tests.registry.conftest import Yard, make_yard

ROUNDS = 50
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def yard(transactional_db: None, tmp_path: Path) -> Yard:
    return make_yard(tmp_path)


def race(*racers: Callable[[], Any]) -> list[str]:
    """Start all at once; return each outcome: `won`, or the error code."""
    line = threading.Barrier(len(racers))
    ends = [""] * len(racers)

    def run(lane: int, racer: Callable[[], Any]) -> None:
        try:
            line.wait(timeout=10)
            racer()
            ends[lane] = "won"
        except Conflict as refusal:
            ends[lane] = refusal.code
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=lane) for lane in enumerate(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return ends


def fresh(promotion: PromotionRequest) -> PromotionRequest:
    """Return the request as another process would have read it."""
    return PromotionRequest.objects.select_related("model__project", "version__artifact").get(pk=promotion.pk)


def test_of_two_approvers_one_wins_fifty_times(yard: Yard) -> None:
    ends: Counter[tuple[str, ...]] = Counter()
    for _ in range(ROUNDS):
        waiting = yard.pending()
        mine, theirs = fresh(waiting), fresh(waiting)
        result = race(
            partial(promotions.approve, mine, by=yard.approver),
            partial(promotions.approve, theirs, by=yard.second_approver),
        )
        ends[tuple(sorted(result))] += 1
        assert Decision.objects.filter(promotion=waiting, verdict="approve").count() == 1
    assert ends == {("stale_state", "won"): ROUNDS}
    generations = list(ReleaseRecord.objects.order_by("pk").values_list("generation", flat=True))
    assert generations == list(range(1, ROUNDS + 1))
    assert verify_chain().holds


def test_an_approval_and_a_withdrawal_do_not_both_happen(yard: Yard) -> None:
    for _ in range(10):
        waiting = yard.pending()
        mine, theirs = fresh(waiting), fresh(waiting)
        before = yard.endpoint.generation
        result = race(
            partial(promotions.approve, mine, by=yard.approver),
            partial(promotions.withdraw, theirs, by=yard.member),
        )
        waiting.refresh_from_db()
        assert sorted(result) == ["stale_state", "won"]
        released = yard.endpoint.generation - before
        assert (waiting.state, released) in (("approved", 1), ("withdrawn", 0))
    assert verify_chain().holds


def test_a_rollback_and_an_approval_give_one_order_of_generations(yard: Yard) -> None:
    yard.live()
    for _ in range(10):
        yard.live()
        waiting, endpoint = fresh(yard.pending()), yard.endpoint
        before = endpoint.generation
        result = race(
            partial(promotions.approve, waiting, by=yard.approver),
            partial(releases.rollback, endpoint, reason="bad", by=yard.second_approver),
        )
        assert result in (["won", "won"], ["stale_state", "won"])
        records = ReleaseRecord.objects.filter(generation__gt=before).order_by("generation")
        assert [record.generation - before for record in records] == list(range(1, result.count("won") + 1))
        newest = ReleaseRecord.objects.latest("generation")
        assert yard.endpoint.production == newest.version
        if result[0] == "stale_state":
            promotions.withdraw(fresh(waiting), by=yard.member)
    assert verify_chain().holds


def test_two_promotions_to_one_endpoint_do_not_overtake_each_other(yard: Yard) -> None:
    one, other = yard.pending(), yard.pending()
    result = race(
        lambda: promotions.approve(fresh(one), by=yard.approver),
        lambda: promotions.approve(fresh(other), by=yard.second_approver),
    )
    assert sorted(result) == ["stale_state", "won"]
    assert sorted(row.state for row in (fresh(one), fresh(other))) == ["approved", "gating"]


def test_versions_made_at_once_are_numbered_without_gap(yard: Yard) -> None:
    result = race(*[yard.version] * 6)
    assert result == ["won"] * 6
    assert sorted(yard.model.versions.values_list("number", flat=True)) == list(range(1, 7))


def test_the_signed_history_agrees_with_the_endpoint(yard: Yard) -> None:
    waiting = [yard.pending() for _ in range(3)]
    race(*[lambda row=row: promotions.approve(fresh(row), by=yard.approver) for row in waiting])
    newest = SignedRelease.model_validate(ReleaseRecord.objects.latest("generation").body).release
    production = yard.endpoint.production
    assert production is not None
    assert (newest.generation, newest.production) == (yard.endpoint.generation, production.number)


def test_a_stale_endpoint_row_changes_nothing(yard: Yard) -> None:
    yard.live()
    yard.live()
    old = yard.endpoint
    waiting = yard.pending()
    yard.live()
    with pytest.raises(StaleState), transaction.atomic():
        releases.put_into_production(old, waiting, by=yard.approver)
