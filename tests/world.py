"""Three known people: an owner, a viewer and a stranger, beside the bundled data sets."""

from dataclasses import dataclass

import pytest
from django.test import Client

from jobs.models import Membership, Project, User
from tests.datasets.making import bundle


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


@pytest.fixture
def world(db: None) -> World:
    return make_world()
