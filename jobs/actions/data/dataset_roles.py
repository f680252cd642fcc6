"""Changes how a version's file is read, by a new version with the same file."""

from dataclasses import replace
from typing import TypedDict

from django.db import transaction

from jobs import access
from jobs.actions.data import datasets, fetches
from jobs.actions.data.datasets import Roles
from jobs.actions.data.fetch_addresses import check_address, seal_address, url_of
from jobs.errors import NotFound, StaleState
from jobs.models import DatasetVersion, Fetch, User
from jobs.spec.data.columns import NUMERIC
from jobs.spec.data.dialect import DialectRequest
from jobs.spec.data.fetching import FetchRequest
from jobs.spec.data.images import ImageOptions

State = Fetch.State


class _Changes(TypedDict):
    """How a file is read in another way; None as before."""

    dialect: DialectRequest | None
    images: ImageOptions | None
    max_bad_share: float | None


def set_roles(
    version: DatasetVersion,
    roles: Roles,
    *,
    by: User,
    dialect: DialectRequest | None = None,
    images: ImageOptions | None = None,
    max_bad_share: float | None = None,
) -> DatasetVersion:
    """Change roles, types, the dialect or the image size in a new version with the same file.

    The file of a reference is fetched again. The new version fails if it has changed since.

    Args:
        version: its file is read again.
        roles: the columns' roles.
        by: who changes them.
        dialect: how the file is written; None as for `version`.
        images: the images' size; None as for `version`.
        max_bad_share: the share of rows that may be left out; None as for `version`.

    Raises:
        Forbidden: `by` may not write in the project.
        BadInput: a reference's address can no longer be used.
        Conflict: the version has no file.
        QuotaReached: the project has too many uploads in progress.
    """
    changes: _Changes = {"dialect": dialect, "images": images, "max_bad_share": max_bad_share}
    row = Fetch.objects.filter(version=version, state=State.DONE).first()
    if row is None:
        return datasets.set_roles(version, roles, by=by, **changes)
    if version.upload_id is not None:
        with transaction.atomic():
            new_version = datasets.set_roles(version, roles, by=by, **changes)
            _note_same_file(row, new_version)
        return new_version
    dataset = version.dataset
    access.require(by, dataset.project, access.Action.WRITE)
    assert dataset.project is not None  # noqa: S101 - bundled data sets have no fetched versions
    reading = datasets.changed_reading(version, **changes)
    request = FetchRequest(
        url=url_of(row),
        mode="reference",
        credential=row.credential_name,
        sha256=row.sha256,
        file_name=str(version.request.get("file", "")),
    )
    address = check_address(dataset.project, request)
    with transaction.atomic():
        return fetches.new_version(
            dataset, address, request, roles, reading, by=by, unchanged_since=f"v{version.number}"
        )


def accept_offer(version: DatasetVersion, position: int, *, by: User) -> DatasetVersion:
    """Read a version's file as an offer of its profile proposes, in a new version.

    Rows whose target becomes missing are left out, since accepting is the consent to it.

    Args:
        version: the version, which stays as it is.
        position: the offer's place in the profile, counted from 0.
        by: who accepts it.

    Raises:
        Forbidden: `by` may not write in the project.
        StaleState: the version is not ready.
        NotFound: there is no such offer.
        Conflict: the data set is bundled, or the version has no file.
        QuotaReached: the project has too many uploads in progress.
    """
    access.require(by, version.dataset.project, access.Action.WRITE)
    profile = version.profile
    if profile is None or version.state != DatasetVersion.State.READY:
        raise StaleState(f"{version} is {version.state}; its offers can be accepted when it is ready")
    if not 0 <= position < len(profile.offers):
        raise NotFound(
            f"{version} has {len(profile.offers)} offers, counted from 0; there is no offer {position}"
        )
    change = profile.offers[position].change
    roles = Roles.requested_for(version).with_change(change)
    if change.name == profile.target and (change.gap_words or change.type in NUMERIC):
        roles = replace(roles, rows_without_target="leave_out")
    return set_roles(version, roles, by=by)


def _note_same_file(row: Fetch, version: DatasetVersion) -> None:
    """Record that a version has an earlier fetch's file, so that it is a copy or a reference as well."""
    Fetch.objects.create(
        version=version,
        mode=row.mode,
        shown=row.shown,
        sealed_url=seal_address(url_of(row), version),
        credential=row.credential,
        credential_name=row.credential_name,
        state=State.DONE,
        received=row.received,
        total=row.total,
        etag=row.etag,
        modified=row.modified,
        sha256=row.sha256,
    )
