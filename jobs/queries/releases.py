"""Releases of endpoints: their history, the target of a rollback, the newest ones for prediction servers."""

from django.db.models import Max, QuerySet

from jobs.models import Endpoint, ModelVersion, ReleaseRecord

WENT_LIVE = ("promote", "rollback")


def of_endpoint(endpoint: Endpoint) -> QuerySet[ReleaseRecord]:
    """Return the endpoint's releases, newest first."""
    related = ("version", "replaced", "by", "promotion__requested_by")
    return endpoint.releases.select_related(*related).order_by("-generation")


def rollback_target(
    endpoint: Endpoint, *, becoming: ModelVersion | None = None, by_rollback: bool = False
) -> ModelVersion | None:
    """Return the version that a rollback would make production.

    It is the one that was production latest, is not so now, and was never rolled back from: rolling
    back twice goes back twice and never returns to the version that failed.

    Args:
        endpoint: as it is now.
        becoming: look at it as if this version had just become production,
        by_rollback: and that by rolling back from the one that is so now.
    """
    current = becoming or endpoint.production
    failed = set(
        endpoint.releases.filter(kind="rollback").exclude(replaced=None).values_list("replaced", flat=True)
    )
    if by_rollback and endpoint.production_id is not None:
        failed.add(endpoint.production_id)
    earlier = ModelVersion.objects.filter(releases__endpoint=endpoint, releases__kind__in=WENT_LIVE)
    if current is not None:
        earlier = earlier.exclude(pk=current.pk)
    newest_first = earlier.exclude(pk__in=failed).annotate(last=Max("releases__generation")).order_by("-last")
    return newest_first.select_related("artifact").first()


def newest_releases(after: int | None) -> tuple[int, list[ReleaseRecord]]:
    """Return the newest release id, and of each endpoint its newest release if that is after `after`."""
    newest = ReleaseRecord.objects.aggregate(newest=Max("pk"))["newest"] or 0
    if after is not None and newest <= after:
        return newest, []
    heads = ReleaseRecord.objects.filter(pk__gt=after or 0).values("endpoint").annotate(head=Max("pk"))
    records = ReleaseRecord.objects.filter(pk__in=[row["head"] for row in heads], pk__lte=newest)
    return newest, list(records.order_by("pk"))
