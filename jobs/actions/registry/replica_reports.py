"""Records prediction servers' reports: the versions they serve, and the requests they have answered."""

from django.db import transaction
from django.db.models import Min

from jobs import access, clock
from jobs.access import Action
from jobs.actions.audit import audit
from jobs.actions.registry import traffic
from jobs.errors import NotFound
from jobs.messages.release import ReplicaReport
from jobs.models import Endpoint, PromotionRequest, Replica, User
from jobs.queries.registry import endpoints


def record_report(report: ReplicaReport, *, by: User) -> Replica:
    """Store a prediction server's report on an endpoint, and complete promotions that are now served.

    Its request counts are added, unless an earlier delivery of the same report has added them.

    Raises:
        NotFound: the endpoint does not exist, or `by` may not report for its servers.
    """
    endpoint = _reported_endpoint(report.model, by)
    with transaction.atomic():
        replica, _ = Replica.objects.update_or_create(
            name=report.replica[:200],
            endpoint=endpoint,
            defaults={
                "generation": report.generation,
                "report": report.model_dump(mode="json", exclude={"traffic"}),
                "seen": clock.now(),
            },
        )
        if report.traffic is not None:
            traffic.add_report(replica, report.traffic)
        _mark_released(endpoint, by=by)
    return replica


def _reported_endpoint(name: str, by: User) -> Endpoint:
    # The service account for the installation's own servers is no project's member.
    if not by.is_service:
        return access.get_endpoint(by, name, Action.SERVE)
    endpoint = Endpoint.objects.select_related("model__project").filter(model__name=name).first()
    if endpoint is None:
        raise NotFound(f"There is no endpoint {name!r}.")
    return endpoint


def _mark_released(endpoint: Endpoint, *, by: User) -> None:
    """Mark approved promotions as released once every live replica serves their generation."""
    lowest = endpoints.live_replicas(endpoint).aggregate(lowest=Min("generation"))["lowest"]
    served = PromotionRequest.objects.filter(
        model=endpoint.model_id, state=PromotionRequest.State.APPROVED, generation__lte=lowest or 0
    )
    for promotion in served.select_related("model__project"):
        # By compare-and-set: several replicas may report at the same time, and one writes the audit row.
        approved = PromotionRequest.objects.filter(pk=promotion.pk, state=PromotionRequest.State.APPROVED)
        if approved.update(state=PromotionRequest.State.RELEASED):
            audit.record(
                "promotion.released",
                f"promotion:{promotion.pk}",
                # A server elsewhere reports with the token of a person, who answers for it.
                by=None if by.is_service else by,
                project=promotion.model.project,
                generation=promotion.generation,
            )
