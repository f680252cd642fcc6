"""Who made a version's file does not approve it, even if another person registers and requests it."""

import pytest

from jobs.actions.registry import gate_rules, promotions, registration
from jobs.errors import Forbidden
from jobs.models import Artifact, Job, JobArtifact, ModelVersion, PromotionRequest, Role, User
from jobs.queries.registry.gates import AUTHORSHIP
from jobs.spec.gates import GateRules
from tests.registry.conftest import GOOD_GATES, Yard, in_inbox, judge


def trained(yard: Yard, by: User) -> Artifact:
    """Return the model that a person's job has made."""
    job = Job.objects.create(
        kind="train", state="completed", project=yard.project, created_by=by, payload_json={}
    )
    artifact = yard.new_bytes()
    JobArtifact.objects.create(job=job, attempt=1, artifact=artifact, role="model", name="model.keras")
    return artifact


def registered(yard: Yard, artifact: Artifact, by: User) -> ModelVersion:
    """Register a file for a person; return the version, whose validation has ended."""
    version = registration.add_version(yard.model, artifact.digest, by=by)
    ModelVersion.objects.filter(pk=version.pk).update(state=ModelVersion.State.CANDIDATE)
    version.refresh_from_db()
    return version


def requested(yard: Yard, version: ModelVersion) -> PromotionRequest:
    promotion = promotions.request(version, stage="production", by=yard.member)
    judge(promotion, GOOD_GATES)
    return promotion


def test_whose_job_made_it_does_not_decide(yard: Yard) -> None:
    promotion = requested(yard, registered(yard, trained(yard, by=yard.owner), by=yard.member))
    assert not in_inbox(promotion, yard.owner)
    with pytest.raises(Forbidden, match="a job of yours made its file"):
        promotions.approve(promotion, by=yard.owner)
    assert in_inbox(promotion, yard.approver)
    promotions.approve(promotion, by=yard.approver)


def test_who_registered_it_before_does_not_decide(yard: Yard) -> None:
    artifact = trained(yard, by=yard.member)
    registered(yard, artifact, by=yard.owner)
    promotion = requested(yard, registered(yard, artifact, by=yard.member))
    assert not in_inbox(promotion, yard.owner)
    with pytest.raises(Forbidden, match="Another person must decide"):
        promotions.reject(promotion, by=yard.owner)


def test_an_account_that_they_made_does_not_decide(yard: Yard) -> None:
    promotion = requested(yard, registered(yard, trained(yard, by=yard.owner), by=yard.member))
    yard.approver.login_issuers = frozenset({yard.owner.pk})
    assert not in_inbox(promotion, yard.approver)
    with pytest.raises(Forbidden, match="login link"):
        promotions.approve(promotion, by=yard.approver)


def test_the_single_person_rule_that_they_switched_on_does_not_apply(yard: Yard) -> None:
    root = User.objects.create_superuser("root")
    yard.project.memberships.create(user=root, role=Role.ADMIN)
    yard.project.single_person, yard.project.single_person_by = True, root
    yard.project.save(update_fields=["single_person", "single_person_by"])
    assert not requested(yard, registered(yard, trained(yard, by=root), by=yard.member)).single_person
    assert requested(yard, registered(yard, trained(yard, by=yard.owner), by=yard.member)).single_person


@pytest.fixture
def puppet(yard: Yard) -> User:
    """An account that the owner made, whose password the owner may know."""
    user = User.objects.create_user("puppet")
    user.password_issuers.set([yard.owner])
    yard.project.memberships.create(user=user, role=Role.ADMIN)
    return user


def test_an_account_of_theirs_made_it(yard: Yard, puppet: User) -> None:
    promotion = requested(yard, registered(yard, trained(yard, by=puppet), by=yard.member))
    assert not in_inbox(promotion, yard.owner)
    with pytest.raises(Forbidden, match="from a login link of yours"):
        promotions.approve(promotion, by=yard.owner)
    yard.second_approver.login_issuers = frozenset({yard.owner.pk})
    assert not in_inbox(promotion, yard.second_approver)
    with pytest.raises(Forbidden, match="Let another person decide"):
        promotions.approve(promotion, by=yard.second_approver)
    assert in_inbox(promotion, yard.approver)
    promotions.approve(promotion, by=yard.approver)


def test_an_account_of_theirs_does_not_hide_who_changed_the_gates(yard: Yard, puppet: User) -> None:
    strict, loose = GateRules(latency_p95_ms=5.0), GateRules(latency_p95_ms=500.0)
    gate_rules.change_rules(yard.model, strict, by=yard.approver)
    gate_rules.change_rules(yard.model, loose, by=puppet)
    of_member = requested(yard, registered(yard, trained(yard, by=yard.member), by=yard.member))
    assert AUTHORSHIP not in {gate["name"] for gate in of_member.gates}
    promotions.approve(of_member, by=puppet)  # which judges nothing for the owner
    version = registered(yard, trained(yard, by=yard.owner), by=yard.owner)
    of_owner = promotions.request(version, stage="production", by=yard.owner)
    judge(of_owner, GOOD_GATES)
    assert AUTHORSHIP in {gate["name"] for gate in of_owner.gates}
