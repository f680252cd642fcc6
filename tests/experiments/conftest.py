"""Three known people stand ready: an owner, a viewer and a stranger."""

from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from jobs.models import Membership, Project, User
from tests.datasets.making import bundle

SPEC: dict[str, Any] = {
    "version": 1,
    "data": {"dataset": "digits"},
    "model": {"kind": "template", "template": "mlp", "args": {"units": 32}},
    "fit": {"epochs": 5, "early_stopping": {"patience": 2}},
}
SEARCH: dict[str, Any] = {
    "algorithm": "random",
    "objective": {"metric": "val_accuracy", "direction": "max"},
    "max_trials": 4,
    "executions_per_trial": 2,
    "space": [{"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16}],
}


@dataclass
class World:
    """A project with its people, beside the bundled data sets."""

    owner: User
    viewer: User
    stranger: User
    project: Project

    def client(self, user: User) -> Client:
        """Return a browser in which `user` is logged in."""
        client = Client()
        client.force_login(user)
        return client


@pytest.fixture
def world(db: None) -> World:
    owner, viewer, stranger = (User.objects.create(username=name) for name in ("olga", "vera", "sam"))
    project = Project.objects.create(slug="yard", name="Yard", created_by=owner)
    Membership.objects.create(project=project, user=owner, role="member")
    Membership.objects.create(project=project, user=viewer, role="viewer")
    elsewhere = Project.objects.create(slug="elsewhere", name="Elsewhere", created_by=stranger)
    Membership.objects.create(project=elsewhere, user=stranger, role="admin")
    bundle()
    return World(owner, viewer, stranger, project)


@pytest.fixture
def spec() -> dict[str, Any]:
    return {**SPEC}


@pytest.fixture
def searching() -> dict[str, Any]:
    return {**SPEC, "search": SEARCH}
