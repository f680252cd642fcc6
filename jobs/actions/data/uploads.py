"""Counts uploads in progress against their projects' quotas, from the first byte to their row.

The rows have leases, which the web server renews: an upload whose server was killed is soon forgotten. Leases
of resumable uploads last longer, since their clients may come back.
"""

from django.db import transaction
from django.db.models import Sum

from jobs import clock
from jobs.actions.people import quotas
from jobs.errors import QuotaReached
from jobs.models import Project, UploadReservation
from jobs.queries.people.quotas import RAISE, count_uploads_being_prepared, disk_sentence, limits_of
from jobs.queries.storage import disk_use

LEASE_SECONDS = 60.0


def reserve(project: Project, size: int, *, held: int | None = None, seconds: float = LEASE_SECONDS) -> int:
    """Count an upload against its project's quotas.

    Args:
        project: the project.
        size: the file's bytes, as far as they are known.
        held: the key of an earlier reservation for the same upload, which gets this size.
        seconds: how long the lease lasts.

    Returns:
        The key of the reservation.

    Raises:
        QuotaReached: the file does not fit beside other uploads in progress, or the project has as many
            uploads in progress as it may have.
    """
    with transaction.atomic():
        project = quotas.lock_project(project)
        rows = UploadReservation.objects.filter(project=project)
        rows.filter(until__lt=clock.now()).delete()
        others = rows if held is None else rows.exclude(pk=held)
        received = others.aggregate(total=Sum("bytes"))["total"] or 0
        _require_room(project, size, reserved=received + disk_use.bytes_being_fetched(project.pk))
        until = clock.seconds_from_now(seconds)
        if held is not None and rows.filter(pk=held).update(bytes=size, until=until):
            return held
        require_fewer(project, others.count())
        return rows.create(project=project, bytes=size, until=until).pk


def _require_room(project: Project, size: int, *, reserved: int) -> None:
    quota, used = limits_of(project).bytes, disk_use.bytes_of_project(project.pk)
    if used + reserved + size > quota:
        raise QuotaReached(disk_sentence(project, used + reserved, quota, adding=size))


def require_fewer(project: Project, received: int = 0) -> None:
    """Require that a project has fewer uploads in progress than its quota.

    Args:
        project: the project.
        received: how many uploads are being received.

    Raises:
        QuotaReached: it has as many as it may have.
    """
    quota = limits_of(project).uploads
    used = received + count_uploads_being_prepared(project)
    if used >= quota:
        raise QuotaReached(
            f"Project {project} has {used:,} uploads that are received or prepared, and its quota is "
            f"{quota:,}. Wait until some of them are ready, stop their jobs, or {RAISE}."
        )


def renew(reservation: int, size: int | None = None, *, seconds: float = LEASE_SECONDS) -> None:
    """Extend a reservation's lease. `size` replaces the earlier size if the upload has grown."""
    changes = {} if size is None else {"bytes": size}
    until = clock.seconds_from_now(seconds)
    UploadReservation.objects.filter(pk=reservation).update(until=until, **changes)


def release(reservation: int) -> None:
    """End a reservation. A second call does nothing."""
    UploadReservation.objects.filter(pk=reservation).delete()
