"""Claims fetches for the processes that carry them out, and records their progress and their end.

A fetch belongs to the process that claimed it, until its lease ends or a person cancels it. Each write by
that process names its attempt's fence, so that it changes nothing afterwards.
"""

from collections import Counter
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Count, F, QuerySet

from jobs import clock, upload_formats
from jobs.actions.data import credentials
from jobs.actions.data.fetch_addresses import unreadable_message, url_of
from jobs.actions.data.profiles import queue_profile
from jobs.actions.people import quotas
from jobs.actions.storage import artifacts
from jobs.errors import FetchFailed, QuotaReached, TrainyardError
from jobs.keys import sealing
from jobs.models import DatasetVersion, Fetch, Project
from jobs.queries.people.quotas import disk_sentence, limits_of
from jobs.queries.storage import disk_use
from jobs.sources import refusals
from jobs.spec.data import addresses
from jobs.spec.data.addresses import Address
from jobs.spec.data.credentials import Credential
from jobs.store import StoredFile, store

OPEN_SECONDS = 120.0
"""The longest time in which a source must begin to send."""
LEASE_SECONDS = 60.0
MOST_ATTEMPTS = 3
"""How often a fetch is begun whose process ended without a result."""
MOST_RUNNING = 4
MOST_RUNNING_OF_PROJECT = 2

State = Fetch.State


class Claimed(NamedTuple):
    """A process's right to fetch: the row, and the attempt's fence."""

    fetch: int
    fence: int


class NotHeld(Exception):
    """The fetch was cancelled, or another process has it now."""


class Work(NamedTuple):
    """A fetch's inputs.

    Attributes:
        address: where the data are.
        credential: with its secrets; None without one.
        name: the file's name.
        sha256: the digest that it must have; empty accepts any.
        unchanged_since: the version whose file has this digest; empty if a person gave it.
    """

    address: Address
    credential: Credential | None
    name: str
    sha256: str
    unchanged_since: str


def claim_waiting() -> list[Claimed]:
    """Claim fetches, oldest first, as many as may run at once. Call it in one process only."""
    rows = Fetch.objects.filter(version__dataset__deletion=None)
    waiting = rows.filter(state=State.WAITING).order_by("pk").values_list("pk", "version__dataset__project")
    # Mostly there are none, and the scheduler asks each second.
    if not (first := list(waiting[:100])):
        return []
    running = Counter(
        dict(
            rows.filter(state=State.RUNNING)
            .values_list("version__dataset__project")
            .annotate(count=Count("pk"))
        )
    )
    claimed = []
    for pk, project in first:
        if running.total() >= MOST_RUNNING:
            break
        if running[project] < MOST_RUNNING_OF_PROJECT and (claimed_fetch := _claim_fetch(pk)) is not None:
            running[project] += 1
            claimed.append(claimed_fetch)
    return claimed


def _claim_fetch(pk: int) -> Claimed | None:
    now = clock.now()
    waiting = Fetch.objects.filter(pk=pk, state=State.WAITING)
    with transaction.atomic():
        if not waiting.update(
            state=State.RUNNING,
            fence=F("fence") + 1,
            attempts=F("attempts") + 1,
            until=clock.seconds_from_now(OPEN_SECONDS + LEASE_SECONDS),
            started=now,
            received=0,
            total=None,
            reserved=0,
        ):
            return None
        return Claimed(pk, Fetch.objects.values_list("fence", flat=True).get(pk=pk))


def _held_row(claimed: Claimed) -> QuerySet[Fetch]:
    # Without a join: PostgreSQL checks the conditions of the updated row itself again after it waited for
    # another transaction, but not those of a subquery on the same table.
    visible = DatasetVersion.objects.filter(dataset__deletion=None)
    return Fetch.objects.filter(
        pk=claimed.fetch, fence=claimed.fence, state=State.RUNNING, version__in=visible
    )


def is_held(claimed: Claimed) -> bool:
    """Return whether a fetch still belongs to the process that claimed it."""
    return _held_row(claimed).filter(until__gt=clock.now()).exists()


def work_of(claimed: Claimed) -> Work:
    """Return the process's inputs.

    Raises:
        NotHeld: the fetch belongs to it no more.
        FetchFailed: the credential was deleted, or the secret key has changed.
    """
    row = _held_row(claimed).select_related("credential", "version__dataset__project").first()
    if row is None:
        raise NotHeld
    address = addresses.parse(url_of(row))
    # The settings of administrators may have changed since the request.
    refusals.require_allowed(address)
    name = str(row.version.request.get("file", address.name))
    return Work(address, _credential_of(row, address), name, row.expected_sha256, row.unchanged_since)


def _credential_of(row: Fetch, address: Address) -> Credential | None:
    if not row.credential_name:
        return None
    if row.credential is None:
        raise FetchFailed(f"Credential {row.credential_name!r} was deleted.", code="credential")
    try:
        credential = credentials.secret_of(row.credential)
    except sealing.Unreadable as error:
        message = unreadable_message(row.credential_name)
        raise FetchFailed(message[0].upper() + message[1:] + ".", code="credential") from error
    if not credential.fits(address):
        raise FetchFailed(
            f"Credential {row.credential_name!r} is no longer for this address.", code="credential"
        )
    return credential


def renew(claimed: Claimed, *, received: int, total: int | None) -> None:
    """Extend the lease, and store how much was received.

    Raises:
        NotHeld: the fetch belongs to the process no more.
    """
    until = clock.seconds_from_now(LEASE_SECONDS)
    if not _held_row(claimed).update(until=until, received=received, total=total):
        raise NotHeld


def extend(claimed: Claimed) -> None:
    """Extend the lease while a received file is stored.

    Raises:
        NotHeld: the fetch belongs to the process no more.
    """
    if not _held_row(claimed).update(until=clock.seconds_from_now(LEASE_SECONDS)):
        raise NotHeld


def reserve(claimed: Claimed, size: int) -> None:
    """Count a fetch's bytes against its project's disk quota, before they are received.

    Raises:
        NotHeld: the fetch belongs to the process no more.
        QuotaReached: the file does not fit beside other uploads in progress.
    """
    with transaction.atomic():
        row = _held_row(claimed).select_related("version__dataset__project").first()
        if row is None:
            raise NotHeld
        project = quotas.lock_project(_project_of(row))
        quota, used = limits_of(project).bytes, disk_use.bytes_of_project(project.pk)
        others = disk_use.bytes_being_received(project.pk) - row.reserved
        if used + others + size > quota:
            raise QuotaReached(disk_sentence(project, used + others, quota, adding=size))
        if not _held_row(claimed).update(reserved=size):
            raise NotHeld


def _project_of(row: Fetch) -> Project:
    project = row.version.dataset.project
    assert project is not None  # noqa: S101 - bundled data sets have no fetched versions
    return project


def complete(claimed: Claimed, stored: StoredFile, *, etag: str, modified: str) -> None:
    """Give a version its file, which a worker then reads.

    Raises:
        NotHeld: the fetch belongs to the process no more.
        BadInput: the file does not match its name.
        QuotaReached: the file does not fit into the project's disk quota.
    """
    row = _held_row(claimed).select_related("version__dataset__project", "version__created_by").first()
    if row is None:
        raise NotHeld
    version, project = row.version, _project_of(row)
    source = upload_formats.format_of_upload(
        store().path(stored.digest), str(version.request.get("file", ""))
    )
    with transaction.atomic():
        quotas.lock_project(project)
        done = _held_row(claimed).update(
            state=State.DONE,
            until=None,
            reserved=0,
            received=stored.bytes,
            total=stored.bytes,
            etag=etag,
            modified=modified,
            sha256=stored.digest,
        )
        if not done:
            raise NotHeld
        version.upload = artifacts.adopt(stored)
        quotas.require_room_for_artifact(project, version.upload)
        version.request = {**version.request, "source": source}
        version.save(update_fields=["upload", "request"])
        queue_profile(version, by=version.created_by)


def fail(claimed: Claimed, error: TrainyardError) -> None:
    """End a fetch with the reason, unless the process has lost it."""
    with transaction.atomic():
        version = _held_row(claimed).values_list("version", flat=True).first()
        if version is not None and _held_row(claimed).update(state=State.FAILED, until=None, reserved=0):
            fail_version(version, error.code, error.message)


def fail_version(version: int, code: str, message: str) -> None:
    """End a version without a file, unless it has ended already."""
    error: dict[str, Any] = {"code": code, "message": message}
    rows = DatasetVersion.objects.filter(pk=version, state=DatasetVersion.State.PREPARING)
    rows.update(state=DatasetVersion.State.FAILED, error=error)


def give_back(claimed: Claimed) -> None:
    """Return a fetch to the queue, since this process is asked to end. No attempt is counted."""
    _held_row(claimed).update(state=State.WAITING, until=None, reserved=0, attempts=F("attempts") - 1)


def process_ended(claimed: Claimed) -> None:
    """Begin a fetch again whose process ended without a result, or end it after the last attempt."""
    row = _held_row(claimed).first()
    if row is None:
        return
    if row.attempts < MOST_ATTEMPTS:
        _held_row(claimed).update(state=State.WAITING, until=None, reserved=0)
        return
    message = (
        f"The process that fetches the file ended {MOST_ATTEMPTS} times without a result. Nothing was stored."
    )
    fail(claimed, FetchFailed(message, code="process_lost"))


def reap_fetches() -> None:
    """Begin fetches again whose processes ended together with the scheduler that had started them."""
    expired = Fetch.objects.filter(state=State.RUNNING, until__lt=clock.now())
    for pk, fence in expired.values_list("pk", "fence"):
        process_ended(Claimed(pk, fence))
