"""The learning curves of earlier trials that a pruner gets."""

import pytest
from pytest_django import DjangoAssertNumQueries

from jobs.models import Execution, Job, Trial
from jobs.queries.search import learning_curves
from tests.jobs.yard import SEARCH, Yard

LOSSES = [[1, 0.5], [3, 0.4]]


@pytest.fixture
def search(installation: Yard) -> Job:
    """A search under a pruner with trials in all states; trial 2 never had a figure."""
    job = installation.submit(search=SEARCH | {"pruner": {"kind": "median"}})
    for number, state in enumerate(("completed", "completed", "pruned", "failed", "running"), 1):
        end(job, number, state, [] if number == 2 else LOSSES)
    return job


def end(search: Job, number: int, state: str, best: list[list[float]]) -> None:
    trial = Trial.objects.create(job=search, number=number, state=state, values={}, values_digest=str(number))
    for execution in (1, 2):
        Execution.objects.create(trial=trial, number=execution, state=state, seed=1, epochs=3, best=best)


def test_curves_of_completed_and_pruned_trials_are_compared(search: Job) -> None:
    curves = [
        (curve.trial, curve.execution, curve.over) for curve in learning_curves.curves_of_search(search)
    ]
    assert curves == [(1, 1, True), (1, 2, True), (3, 1, False), (3, 2, False)]
    assert learning_curves.curves_of_search(search)[0].at(3) == 0.4


def test_a_read_without_new_curves_costs_one_statement(
    search: Job, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    assert list(learning_curves.newly_ended_curves(search.pk, known=(1,))) == [2, 3]
    with django_assert_num_queries(1):
        assert learning_curves.newly_ended_curves(search.pk, known=(1, 2, 3)) == {}
    Trial.objects.filter(number=5).update(state="completed")
    assert [
        len(curves) for curves in learning_curves.newly_ended_curves(search.pk, known=(1, 2, 3)).values()
    ] == [2]


def test_only_the_newest_trials_are_read(search: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning_curves, "MAX_TRIALS", 2)
    assert list(learning_curves.newly_ended_curves(search.pk, known=())) == [2, 3]
    assert learning_curves.newly_ended_curves(search.pk, known=(2, 3)) == {}
