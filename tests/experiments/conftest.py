"""Three known people stand ready: an owner, a viewer and a stranger."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoDbBlocker

from jobs.models import Membership, Project, User
from tests.datasets.making import bundle
from tests.kept_rows import kept

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


def make_world() -> World:
    owner, viewer, stranger = (User.objects.create(username=name) for name in ("olga", "vera", "sam"))
    project = Project.objects.create(slug="yard", name="Yard", created_by=owner)
    Membership.objects.create(project=project, user=owner, role="member")
    Membership.objects.create(project=project, user=viewer, role="viewer")
    elsewhere = Project.objects.create(slug="elsewhere", name="Elsewhere", created_by=stranger)
    Membership.objects.create(project=elsewhere, user=stranger, role="admin")
    bundle()
    return World(owner, viewer, stranger, project)


@pytest.fixture(scope="module")
def kept_world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with kept(django_db_blocker, make_world) as world:
        yield world


@pytest.fixture
def world(kept_world: World, db: None) -> World:
    return deepcopy(kept_world)


@pytest.fixture
def spec() -> dict[str, Any]:
    return {**SPEC}


@pytest.fixture
def searching() -> dict[str, Any]:
    return {**SPEC, "search": SEARCH}
