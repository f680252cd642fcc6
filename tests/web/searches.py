"""Makes searches for page tests, and reads their markup."""

from typing import Any

from django.test import Client

from jobs.models import Job
from tests.factories import (
    SEARCH,
    make_experiment,
    make_job,
)
from tests.markup import one_line
from tests.people import People

DROPOUT = {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.5}

OPTIMIZER = {"name": "optimizer", "kind": "choice", "values": ["adam", "sgd"]}


def searching(people: People, space: list[dict[str, Any]]) -> Job:
    spec = {**SEARCH, "search": {**SEARCH["search"], "space": space}}
    experiment = make_experiment(project=people.project, by=people.owner, spec=spec)
    return make_job(experiment=experiment, by=people.owner, state="running")


def markup_of(browser: Client, job: Job) -> str:
    return one_line(browser.get(f"/jobs/{job.pk}"))
