from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.actions.registry import promotions, registration, replica_reports
from jobs.errors import BadInput, Conflict, Forbidden, GatesOpen, NotFound, StaleState
from jobs.messages.release import ReplicaReport, SignedRelease
from jobs.models import AuditEvent, PromotionRequest, ReleaseRecord, User
from jobs.queries.audit.audit_verification import verify_chain
from jobs.store import store
from tests.registry.conftest import BAD_GATES, GOOD_GATES, OPEN_GATES, Yard, judge

State = PromotionRequest.State


def test_a_request_queues_its_gates(yard: Yard) -> None:
    promotion = yard.request()
    assert promotion.state == State.GATING
    assert promotion.gate_job is not None
    assert promotion.gate_job.payload_json == {"promotion": promotion.pk}


def test_gates_that_pass_make_it_pending(yard: Yard) -> None:
    assert yard.pending().state == State.PENDING


def test_one_failed_gate_fails_it(yard: Yard) -> None:
    promotion = yard.request()
    judge(promotion, BAD_GATES)
    assert promotion.state == State.FAILED
    with pytest.raises(StaleState):
        promotions.approve(promotion, by=yard.approver)


def test_gates_that_cannot_run_fail_it(yard: Yard) -> None:
    promotion = yard.request()
    assert promotion.gate_job is not None
    promotions.record_gate_failure(promotion.gate_job, {"code": "crashed", "message": "the runner died"})
    promotion.refresh_from_db()
    assert promotion.state == State.FAILED
    assert promotion.gates[0]["detail"] == "the runner died"


def test_a_late_gate_result_changes_nothing(yard: Yard) -> None:
    promotion = yard.pending()
    judge(promotion, BAD_GATES)
    assert promotion.state == State.PENDING


def test_a_gate_result_against_an_earlier_champion_is_ignored(yard: Yard) -> None:
    waiting = yard.pending()
    earlier = waiting.gate_job
    assert earlier is not None
    yard.live()
    with pytest.raises(StaleState, match="are running again"):
        promotions.approve(waiting, by=yard.approver)
    promotions.record_gates(earlier, GOOD_GATES["gates"])
    waiting.refresh_from_db()
    assert waiting.state == State.GATING


def test_approval_releases_the_version(yard: Yard) -> None:
    promotion = promotions.approve(yard.pending(), comment="good", by=yard.approver)
    endpoint = yard.endpoint
    assert (promotion.state, promotion.generation) == (State.APPROVED, 1)
    assert (endpoint.production, endpoint.generation) == (promotion.version, 1)
    assert ReleaseRecord.objects.get().promotion == promotion
    assert verify_chain().holds


@pytest.mark.parametrize("who", ["member", "viewer"])
def test_only_approvers_decide(yard: Yard, who: str) -> None:
    with pytest.raises(Forbidden):
        promotions.approve(yard.pending(), by=getattr(yard, who))


def test_a_stranger_cannot_find_a_request(yard: Yard) -> None:
    with pytest.raises(NotFound):
        promotions.approve(yard.pending(), by=yard.stranger)


def test_an_installation_admin_may_decide(yard: Yard) -> None:
    admin = User.objects.create_superuser("root")
    assert promotions.approve(yard.pending(), by=admin).state == State.APPROVED


def test_the_requester_cannot_decide_even_as_an_admin(yard: Yard) -> None:
    promotion = promotions.request(yard.version(), stage="production", by=yard.owner)
    judge(promotion, GOOD_GATES)
    for decide in (promotions.approve, promotions.reject):
        with pytest.raises(Forbidden) as refusal:
            decide(promotion, by=yard.owner)
        assert refusal.value.code == "not_independent"


def test_the_versions_author_cannot_decide(yard: Yard) -> None:
    promotion = yard.pending(yard.version(by=yard.owner))
    with pytest.raises(Forbidden):
        promotions.approve(promotion, by=yard.owner)


def test_a_gate_that_was_not_evaluated_must_be_accepted_by_name(yard: Yard) -> None:
    promotion = yard.request()
    judge(promotion, OPEN_GATES)
    with pytest.raises(GatesOpen, match="test_metric"):
        promotions.approve(promotion, accept=["loads"], by=yard.approver)
    approved = promotions.approve(promotion, accept=["test_metric"], by=yard.approver)
    assert approved.decisions.get().accept == ["test_metric"]


def test_a_champion_that_changed_sends_the_request_back_to_its_gates(yard: Yard) -> None:
    waiting = yard.pending()
    champion = yard.live()
    with pytest.raises(StaleState, match="are running again"):
        promotions.approve(waiting, by=yard.approver)
    waiting.refresh_from_db()
    assert waiting.state == State.GATING
    assert waiting.baseline_version == champion
    judge(waiting, GOOD_GATES)
    assert promotions.approve(waiting, by=yard.approver).generation == 2


def test_a_file_altered_in_the_store_is_not_released(yard: Yard) -> None:
    promotion = yard.pending()
    store().path(promotion.version.artifact_id).write_text("other weights")
    with pytest.raises(Conflict) as refusal:
        promotions.approve(promotion, by=yard.approver)
    assert refusal.value.code == "artifact_altered"


def test_a_decided_request_stays_decided(yard: Yard) -> None:
    promotion = promotions.reject(yard.pending(), comment="no", by=yard.approver)
    assert promotion.state == State.REJECTED
    for act in (promotions.approve, promotions.reject):
        with pytest.raises(StaleState):
            act(promotion, by=yard.second_approver)
    with pytest.raises(StaleState):
        promotions.withdraw(promotion, by=yard.member)


def test_only_the_requester_or_a_project_admin_withdraws(yard: Yard) -> None:
    promotion = yard.pending()
    with pytest.raises(Forbidden):
        promotions.withdraw(promotion, by=yard.approver)
    assert promotions.withdraw(promotion, by=yard.member).state == State.WITHDRAWN
    assert promotions.withdraw(yard.pending(), by=yard.owner).state == State.WITHDRAWN


def test_a_request_expires_once(yard: Yard) -> None:
    promotion = yard.pending()
    PromotionRequest.objects.update(expires=timezone.now() - timedelta(seconds=1))
    assert promotions.expire_due() == 1
    assert promotions.expire_due() == 0
    promotion.refresh_from_db()
    assert promotion.state == State.EXPIRED


def test_an_expired_request_cannot_be_approved_before_it_is_swept(yard: Yard) -> None:
    promotion = yard.pending()
    PromotionRequest.objects.update(expires=timezone.now() - timedelta(seconds=1))
    with pytest.raises(StaleState, match="expired"):
        promotions.approve(promotion, by=yard.approver)
    promotion.refresh_from_db()
    assert promotion.state == State.EXPIRED


def test_canary_is_refused_with_the_reason(yard: Yard) -> None:
    with pytest.raises(BadInput, match="not available yet"):
        yard.request(stage="canary")


def test_a_version_that_is_not_validated_cannot_be_requested(yard: Yard) -> None:
    version = registration._create_numbered(yard.model, artifact=yard.new_bytes(), created_by=yard.member)
    with pytest.raises(Conflict, match="being validated"):
        yard.request(version)


def test_a_duplicate_request_is_refused(yard: Yard) -> None:
    version = yard.version()
    yard.request(version)
    with pytest.raises(Conflict, match="for the same version and stage"):
        yard.request(version)


def test_staging_is_released_beside_production(yard: Yard) -> None:
    live = yard.live()
    staged = promotions.approve(yard.pending(stage="staging"), by=yard.approver).version
    endpoint = yard.endpoint
    assert (endpoint.production, endpoint.staging, endpoint.generation) == (live, staged, 2)
    body = SignedRelease.model_validate(ReleaseRecord.objects.latest("pk").body).release
    assert body.labels == {"production": live.number, "staging": staged.number}
    assert body.standby == (staged.number,)


def test_the_comments_of_a_request_are_limited_and_its_decision_is_not(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promotions, "MAX_COMMENTS", 2)
    promotion = yard.pending()
    for _ in range(2):
        promotions.comment(promotion, "hm", by=yard.viewer)
    with pytest.raises(Conflict, match="2 comments"):
        promotions.comment(promotion, "hm", by=yard.member)
    assert promotions.approve(promotion, comment="good", by=yard.approver).state == "approved"


def test_everyone_in_the_project_may_comment(yard: Yard) -> None:
    promotion = yard.pending()
    promotions.comment(promotion, " looks fine ", by=yard.viewer)
    assert promotion.decisions.get().comment == "looks fine"
    with pytest.raises(BadInput):
        promotions.comment(promotion, "  ", by=yard.viewer)


def report(yard: Yard, generation: int, replica: str = "a") -> None:
    body = ReplicaReport(replica=replica, model="digits", generation=generation)
    replica_reports.record_report(body, server=replica)


def test_it_is_released_once_every_live_replica_serves_it(yard: Yard) -> None:
    report(yard, 0, "a")
    report(yard, 0, "b")
    promotion = promotions.approve(yard.pending(), by=yard.approver)
    report(yard, 1, "a")
    promotion.refresh_from_db()
    assert promotion.state == State.APPROVED
    report(yard, 1, "b")
    promotion.refresh_from_db()
    assert promotion.state == State.RELEASED


def test_a_lost_replica_is_not_waited_for(yard: Yard) -> None:
    report(yard, 0, "gone")
    yard.endpoint.replicas.update(seen=timezone.now() - timedelta(seconds=16))
    promotion = promotions.approve(yard.pending(), by=yard.approver)
    report(yard, 1)
    promotion.refresh_from_db()
    assert promotion.state == State.RELEASED


def test_every_step_leaves_one_audit_row(yard: Yard) -> None:
    promotion = promotions.approve(yard.pending(), by=yard.approver)
    report(yard, 1)
    events = AuditEvent.objects.filter(target=f"promotion:{promotion.pk}").order_by("pk")
    names = events.values_list("action", flat=True)
    assert list(names) == ["promotion.request", "promotion.gated", "promotion.approve", "promotion.released"]
