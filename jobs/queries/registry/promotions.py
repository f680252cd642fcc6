"""Reads promotion requests; `deciders` checks who may decide them."""

from django.db.models import QuerySet, prefetch_related_objects

from jobs import access
from jobs.answers.registry.promotions import CutOffOut, GateOut, PromotionDecisionOut, PromotionOut
from jobs.kinds.base import value_of
from jobs.models import Decision, ModelVersion, PromotionRequest, User
from jobs.queries.registry import gates
from jobs.queries.registry.endpoints import cut_off_replicas


def promotions_for_lists(user: User) -> QuerySet[PromotionRequest]:
    """Return the requests that `user` may see, with the related rows that lists need."""
    related = (
        "model__project",
        "version__created_by",
        "requested_by",
        "baseline_version",
        "gate_revision__created_by",
    )
    rows = access.visible_promotions(user).select_related(*related)
    return rows.prefetch_related("decisions__user", "model__endpoint__replicas")


def replaced_version(promotion: PromotionRequest) -> ModelVersion | None:
    """Return the version that a request replaced or would replace."""
    release = promotion.releases.select_related("replaced").first()
    return release.replaced if release else promotion.baseline_version


def measured_metrics(promotion: PromotionRequest) -> dict[str, dict[str, float | None]]:
    """Return the test metrics that the gates have measured, for `challenger` and `champion`."""
    metrics = promotion.gate_job.results.metrics if promotion.gate_job is not None else {}
    return {name: {key: value_of(value) for key, value in values.items()} for name, values in metrics.items()}


def evaluation_job(promotion: PromotionRequest) -> int | None:
    """Return the gates' job if it has evaluated a version that needs code."""
    job = promotion.gate_job
    return job.pk if job is not None and job.artifacts.filter(role="evaluation").exists() else None


def decisions_of(promotion: PromotionRequest) -> QuerySet[Decision]:
    """Return the decisions and comments on a request, in order."""
    return promotion.decisions.select_related("user").order_by("pk")


def promotion_out(promotion: PromotionRequest) -> PromotionOut:
    """Return a request's API representation."""
    # This costs no query for a row of a list, which has its decisions already.
    prefetch_related_objects([promotion], "decisions__user", "model__endpoint__replicas")
    revision = promotion.gate_revision
    decisions = sorted(promotion.decisions.all(), key=lambda decision: decision.pk)
    return PromotionOut(
        id=promotion.pk,
        state=promotion.state,
        model=promotion.model.name,
        version=promotion.version.number,
        digest=promotion.version.identity,
        stage=promotion.stage,
        comment=promotion.comment,
        requested_by=promotion.requested_by.username,
        single_person=promotion.single_person,
        baseline=promotion.baseline_version.number if promotion.baseline_version else None,
        gates=[
            GateOut(**gate.model_dump(), next_step=gates.next_step(gate))
            for gate in gates.read_gates(promotion)
        ],
        gates_revision=revision.number if revision is not None else 0,
        gates_changed_by=revision.created_by.username if revision is not None else None,
        gates_changed=revision.created if revision is not None else None,
        gate_job=promotion.gate_job_id,
        decisions=[decision_out(decision) for decision in decisions],
        generation=promotion.generation,
        cut_off=cut_off_servers(promotion),
        expires=promotion.expires,
        created=promotion.created,
        decided=promotion.decided,
    )


def cut_off_servers(promotion: PromotionRequest) -> list[CutOffOut]:
    """Return the prediction servers that have not learnt of the release of a request, if it is the newest."""
    endpoint = promotion.model.endpoint
    if promotion.generation is None or promotion.generation != endpoint.generation:
        return []
    behind = [row for row in endpoint.replicas.all() if row.generation < endpoint.generation]
    return [
        CutOffOut(replica=row.name, since=since, generation=row.generation)
        for row, since in cut_off_replicas(behind)
    ]


def decision_out(decision: Decision) -> PromotionDecisionOut:
    """Return a decision's or comment's API representation."""
    return PromotionDecisionOut(
        user=decision.user.username,
        verdict=decision.verdict,
        comment=decision.comment,
        accept=decision.accept,
        digest=decision.digest,
        created=decision.created,
    )
