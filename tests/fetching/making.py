"""Requests for data at addresses, and their fetches in this process."""

from typing import Any

from jobs.actions.data import fetch_attempts, fetches
from jobs.actions.data.fetch_attempts import Claimed
from jobs.fetching.download import run
from jobs.models import DatasetVersion, Fetch, Membership, User
from jobs.spec.data.fetching import FetchRequest
from tests.world import World

CSV = b"age,bmi,progression\n59,32.1,151\n48,21.6,75\n"


def make_admin(world: World) -> User:
    """Make a project admin for "yard"."""
    user = User.objects.create(username="ada")
    Membership.objects.create(project=world.project, user=user, role="admin")
    return user


def ask(world: World, url: str, slug: str = "people", **fields: Any) -> DatasetVersion:
    """Ask for a data set at an address."""
    request = FetchRequest(url=url, **fields)
    return fetches.create(world.project, slug=slug, request=request, by=world.owner)


def claim() -> Claimed:
    """Claim the only fetch that waits."""
    (claimed,) = fetch_attempts.claim_waiting()
    return claimed


def fetch(version: DatasetVersion) -> DatasetVersion:
    """Fetch a version's file in this process."""
    run(claim())
    return DatasetVersion.objects.get(pk=version.pk)


def row_of(version: DatasetVersion) -> Fetch:
    """Return the present state of a version's fetch."""
    return Fetch.objects.get(version=version)


def error_of(version: DatasetVersion) -> dict[str, Any]:
    """Return a failed version's error."""
    version.refresh_from_db()
    assert version.state == DatasetVersion.State.FAILED
    assert version.error is not None
    return dict(version.error)
