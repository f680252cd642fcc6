"""The answer of a search over own code advises about hyperparameters that have an effect."""

from typing import Any

import pytest
from django.test import Client

from jobs.models import Job, Trial
from jobs.spec.checks.dry_build import Unasked
from tests import factories
from tests.code.dry_builds import BUILT, SPACE, ask, finish, spec_of
from tests.code.test_dry_builds_of_searches import submitted
from tests.jobs.yard import PretendWorker

AT_BOUNDS = {"units": 32, "rate": 0.1, "dropout": True}


def answer_with(api: Client, code: str, worker: PretendWorker, *unasked: Unasked) -> Any:
    """Return the answer of a search whose best trial is at the bounds, after a dry build that found this."""
    ask(api, code)
    finish(worker, BUILT.model_copy(update={"unasked": unasked}))
    root = submitted(api, spec_of(code, space=SPACE, algorithm="random"))
    (trial,) = factories.make_trials(root, 1)
    Trial.objects.filter(pk=trial.pk).update(values=AT_BOUNDS)
    Job.objects.filter(pk=root.pk).update(state="completed")
    return api.get(f"/api/v1/jobs/{root.pk}/answer").json()


@pytest.mark.parametrize(
    ("value", "at_edge"), [(True, ["units"]), (False, ["units", "rate"]), (1, ["units", "rate"])]
)
def test_nothing_is_advised_about_what_the_code_does_not_ask_for_beside_the_best_values(
    api: Client, code: str, worker: PretendWorker, value: Any, at_edge: list[str]
) -> None:
    advice = answer_with(api, code, worker, Unasked(name="dropout", value=value, names=("rate",)))
    assert advice["at_edge"] == at_edge
    assert any("rate" in change for change in advice["smaller_range"]) == ("rate" in at_edge)


def test_without_such_a_finding_all_values_at_a_bound_are_named(
    api: Client, code: str, worker: PretendWorker
) -> None:
    assert answer_with(api, code, worker)["at_edge"] == ["units", "rate"]
