"""Reads releases: an endpoint's history, a rollback's target, new ones for prediction servers."""

from collections.abc import Collection

from django.db.models import Max, QuerySet

from jobs.models import Alias, Endpoint, ModelVersion, ReleaseRecord

TO_PRODUCTION = ("promote", "rollback")


def releases_of_endpoint(endpoint: Endpoint) -> QuerySet[ReleaseRecord]:
    """Return the endpoint's releases, newest first."""
    related = ("version", "replaced", "by", "promotion__requested_by")
    return endpoint.releases.select_related(*related).order_by("-generation")


def has_releases() -> bool:
    """Return whether anything was ever released."""
    return ReleaseRecord.objects.exists()


def rollback_target(
    endpoint: Endpoint, *, next_production: ModelVersion | None = None, by_rollback: bool = False
) -> ModelVersion | None:
    """Return the version to which a rollback would return.

    It is the latest production version that is not the current one and was never rolled back from. So a
    second rollback returns to a still older version, and never to the version that failed.

    Args:
        endpoint: the endpoint.
        next_production: compute the target for the time after this version has become production.
        by_rollback: whether it becomes production by a rollback from the current version.
    """
    current = next_production or endpoint.production
    failed = set(
        endpoint.releases.filter(kind="rollback").exclude(replaced=None).values_list("replaced", flat=True)
    )
    if by_rollback and endpoint.production_id is not None:
        failed.add(endpoint.production_id)
    earlier = ModelVersion.objects.filter(releases__endpoint=endpoint, releases__kind__in=TO_PRODUCTION)
    if current is not None:
        earlier = earlier.exclude(pk=current.pk)
    newest_first = earlier.exclude(pk__in=failed).annotate(last=Max("releases__generation")).order_by("-last")
    return newest_first.select_related("artifact").first()


def served_aliases(
    endpoint: Endpoint, *, served: Collection[ModelVersion] = (), failed: ModelVersion | None = None
) -> dict[str, ModelVersion]:
    """Return the versions that clients may address by an alias, by alias.

    These are the approved ones: a version is approved from its first release until it is rolled back from.

    Args:
        endpoint: the endpoint.
        served: versions in the release that is being made, which are approved.
        failed: the version from which that release rolls back.
    """
    released = _last_generations(endpoint, "version", ("promote", "stage"))
    rolled_back = _last_generations(endpoint, "replaced", ("rollback",))
    approved = {key for key, last in released.items() if last > rolled_back.get(key, 0)}
    approved = (approved - ({failed.pk} if failed else set())) | {version.pk for version in served}
    rows = Alias.objects.filter(model=endpoint.model_id, version__in=approved)
    return {alias.name: alias.version for alias in rows.select_related("version__artifact").order_by("name")}


def _last_generations(endpoint: Endpoint, field: str, kinds: tuple[str, ...]) -> dict[int, int]:
    """Return each version's last generation with one of these kinds."""
    rows = endpoint.releases.filter(kind__in=kinds).exclude(**{field: None})
    return dict(rows.values_list(field).annotate(last=Max("generation")).values_list(field, "last"))


def newest_releases(after: int | None) -> tuple[int, list[ReleaseRecord]]:
    """Return the newest release id, and the newest release after `after` for each endpoint that has one."""
    newest = ReleaseRecord.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    if after is not None and newest <= after:
        return newest, []
    # A release made since `newest` was read is left to the next call.
    unread = ReleaseRecord.objects.filter(pk__gt=after or 0, pk__lte=newest)
    heads = unread.values("endpoint").annotate(head=Max("pk"))
    records = ReleaseRecord.objects.filter(pk__in=[row["head"] for row in heads])
    return newest, list(records.order_by("pk"))
