"""A search in the project, for tests of its pages."""

from typing import Any

import pytest
from django.test import Client

from jobs.models import Job
from tests.factories import (
    SEARCH,
    make_experiment,
    make_job,
    make_trials,
)
from tests.people import People, browser_of
from tests.reports import ensemble_report, evaluation_report, quantization_report, store_report
from tests.web.searches import DROPOUT, OPTIMIZER, searching


@pytest.fixture
def search(people: People) -> Job:
    experiment = make_experiment(project=people.project, by=people.owner)
    job = make_job(experiment=experiment, by=people.owner, state="running")
    make_trials(job, 2)
    return job


@pytest.fixture
def wide_search(people: People) -> Job:
    return searching(people, [*SEARCH["search"]["space"], DROPOUT, OPTIMIZER])


@pytest.fixture
def browser(people: People, search: Job) -> Client:
    return browser_of(people.owner)


@pytest.fixture
def family(people: People) -> Job:
    """A completed root with two trainings, their ensemble, its quantization, and a report for each."""
    experiment = make_experiment(project=people.project, by=people.owner)
    common: dict[str, Any] = {"by": people.owner, "project": people.project, "state": "completed"}
    root = make_job(by=people.owner, experiment=experiment, state="completed")
    trainings = [
        make_job(kind="train", parent=root, title=f"Retrain trial {n}", ordinal=n, **common) for n in (4, 7)
    ]
    members = {"members": [training.pk for training in trainings]}
    pooled = make_job(kind="ensemble", parent=root, title="Ensemble", payload=members, **common)
    small = make_job(kind="quantize", parent=root, title="Quantize to int8", **common)
    names = tuple(f"m{training.pk}" for training in trainings)
    store_report(
        pooled, ensemble_report((2.0, 2.0), names=names, titles=("Retrain trial 4", "Retrain trial 7"))
    )
    store_report(pooled, evaluation_report(), role="evaluation", name="evaluation.json")
    store_report(small, quantization_report())
    return root
