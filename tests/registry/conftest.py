"""Fixtures of registry tests: a project with its users, and models whose versions are files in the store."""

import itertools
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.db import transaction

from jobs.actions.registry import promotions, registration, registry
from jobs.models import (
    Artifact,
    Endpoint,
    Membership,
    ModelVersion,
    Project,
    PromotionRequest,
    RegisteredModel,
    Role,
    User,
)
from jobs.queries import home
from jobs.store import store
from tests.people import browser_of

SIGNATURE = {
    "inputs": [{"name": "features", "dtype": "float32", "shape": [64]}],
    "outputs": [{"name": "probabilities", "dtype": "float32", "shape": [10]}],
}
GOOD_GATES: dict[str, Any] = {
    "gates": [
        {"name": "loads", "state": "passed"},
        {"name": "digest", "state": "passed"},
        {"name": "signature", "state": "skipped"},
        {"name": "test_metric", "state": "passed", "value": 0.97, "limit": 0.95, "champion": 0.96},
    ]
}
OPEN_GATES = {
    "gates": [{"name": "loads", "state": "passed"}, {"name": "test_metric", "state": "not_evaluated"}]
}
BAD_GATES = {"gates": [{"name": "loads", "state": "passed"}, {"name": "test_metric", "state": "failed"}]}


def judge(promotion: PromotionRequest, result: dict[str, Any]) -> None:
    """Complete a request's newest gate job with a result."""
    promotion.refresh_from_db()
    assert promotion.gate_job is not None
    promotions.record_gates(promotion.gate_job, result["gates"])
    promotion.refresh_from_db()


def see(user: User, path: str, **query: Any) -> Any:
    """Request a page; return the answer."""
    return browser_of(user).get(path, query)


def in_inbox(promotion: PromotionRequest, user: User) -> bool:
    """Return whether `user` may decide a request; the number in the navigation must agree with the inbox."""
    listed = list(home.approvals_to_decide(user))
    assert home.count_approvals_to_decide(user) == len(listed)
    return promotion in listed


@dataclass
class Yard:
    """A project with its users and one model."""

    project: Project
    owner: User
    member: User
    approver: User
    second_approver: User
    viewer: User
    stranger: User
    model: RegisteredModel
    new_bytes: Callable[[], Artifact]

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint.objects.select_related("production", "previous", "staging").get(model=self.model)

    def version(self, *, by: User | None = None) -> ModelVersion:
        """Make a version that has been validated."""
        with transaction.atomic():
            version = registration._create_numbered(
                self.model, artifact=self.new_bytes(), what="best", created_by=by or self.member
            )
        labels = list("0123456789")
        registration.mark_validated(version.pk, signature=SIGNATURE, class_labels=labels)
        version.refresh_from_db()
        return version

    def request(self, version: ModelVersion | None = None, stage: str = "production") -> PromotionRequest:
        """Ask for a promotion as the member; its gates have not been run."""
        return promotions.request(version or self.version(), stage=stage, comment="better", by=self.member)

    def pending(self, version: ModelVersion | None = None, stage: str = "production") -> PromotionRequest:
        """Ask for a promotion whose gates have passed."""
        promotion = self.request(version, stage)
        judge(promotion, GOOD_GATES)
        return promotion

    def live(self) -> ModelVersion:
        """Release a new version to production."""
        return promotions.approve(self.pending(), by=self.approver).version


def make_yard(folder: Path) -> Yard:
    """Build the rows; the caller's database holds nothing with that name yet."""
    count = itertools.count()

    def new_bytes() -> Artifact:
        # A file of its own, since several threads call this at once.
        name = uuid.uuid4()
        file = folder / f"{name}.keras"
        file.write_text(f"weights {next(count)} {name}")
        stored = store().put(file)
        return Artifact.objects.get_or_create(digest=stored.digest, defaults={"bytes": stored.bytes})[0]

    names = ("owner", "member", "approver", "second-approver", "viewer", "stranger")
    # Hundreds of tests begin with these rows: one statement for each table.
    users = [User(username=name, password=make_password(None)) for name in names]
    people = {user.username: user for user in User.objects.bulk_create(users)}
    project = Project.objects.create(slug="vision", name="Vision", created_by=people["owner"])
    roles = {
        "owner": Role.ADMIN,
        "member": Role.MEMBER,
        "approver": Role.APPROVER,
        "second-approver": Role.APPROVER,
        "viewer": Role.VIEWER,
    }
    Membership.objects.bulk_create(
        Membership(project=project, user=people[name], role=role) for name, role in roles.items()
    )
    model = registry.create_model(project, "digits", by=people["member"])
    members = {name.replace("-", "_"): user for name, user in people.items()}
    return Yard(project=project, model=model, new_bytes=new_bytes, **members)


@pytest.fixture
def yard(db: None, tmp_path: Path) -> Yard:
    return make_yard(tmp_path)
