"""Records prediction servers' reports: the versions they serve, and the requests they have answered."""

from django.db import transaction
from django.db.models import Min

from jobs import clock
from jobs.actions.audit import audit
from jobs.actions.registry import traffic
from jobs.errors import Conflict, NotFound
from jobs.messages.release import ReplicaReport
from jobs.models import Endpoint, PromotionRequest, Replica
from jobs.queries.registry import endpoints


def record_report(report: ReplicaReport, *, server: str) -> Replica:
    """Store a prediction server's report on an endpoint, and complete promotions that are now served.

    Its request counts are added, unless an earlier delivery of the same report has added them.

    Args:
        report: the report.
        server: the name of the credential with which it was sent. It names the replica.

    Raises:
        NotFound: the endpoint does not exist.
        Conflict: another server reports with the same credential.
    """
    endpoint = Endpoint.objects.select_related("model__project").filter(model__name=report.model).first()
    if endpoint is None:
        raise NotFound(f"There is no endpoint {report.model!r}.")
    with transaction.atomic():
        name = endpoints.replica_name(server, report.instance)
        _check_unshared(name, endpoint, report)
        replica, _ = Replica.objects.update_or_create(
            name=name,
            endpoint=endpoint,
            defaults={
                "generation": report.generation,
                "report": report.model_dump(mode="json", exclude={"traffic"}),
                "seen": clock.now(),
                "stopped": report.stops,
            },
        )
        if report.traffic is not None:
            traffic.add_report(replica, report.traffic)
        _mark_released(endpoint)
    return replica


def _check_unshared(name: str, endpoint: Endpoint, report: ReplicaReport) -> None:
    """Refuse a second server with the same credential: one of them would hide the versions of the other."""
    other = endpoints.live_replicas(endpoint).filter(name=name).first()
    if other is None or other.report["replica"] == report.replica:
        return
    place = (other.report.get("server") or {}).get("host", other.report["replica"])
    raise Conflict(
        f"The credential {name!r} is in use by the prediction server {other.report['replica']} ({place}): "
        "each needs one of its own, which an administrator makes with the command `serving-token NAME`.",
        code="credential_in_use",
    )


def _mark_released(endpoint: Endpoint) -> None:
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
                by=None,
                project=promotion.model.project,
                generation=promotion.generation,
            )
