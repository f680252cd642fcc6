"""Changes how a version's file is read, by a new version with the same file."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

from django.db import transaction

from jobs import access
from jobs.actions.audit import audit
from jobs.actions.data import datasets, fetches
from jobs.actions.data.datasets import Roles
from jobs.actions.data.fetch_addresses import check_address, seal_address, url_of
from jobs.errors import BadInput, NotFound, StaleState
from jobs.models import DatasetVersion, Fetch, User
from jobs.spec.data.columns import NUMERIC
from jobs.spec.data.dialect import DialectRequest
from jobs.spec.data.fetching import FetchRequest
from jobs.spec.data.images import ImageOptions
from jobs.spec.data.offers import Offer
from jobs.spec.data.profile import Profile

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
    """Change roles, types, the dialect or the image size in a new version, which names its origin.

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
    with transaction.atomic():
        new_version = _read_again(version, roles, by, changes)
        new_version.request = {**new_version.request, "from_version": version.number}
        new_version.save(update_fields=["request"])
    return new_version


def _read_again(version: DatasetVersion, roles: Roles, by: User, changes: _Changes) -> DatasetVersion:
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
    """Read a version's file as an offer of its profile proposes; see `accept_offers`."""
    return accept_offers(version, (position,), by=by)


def accept_offers(version: DatasetVersion, positions: Sequence[int], *, by: User) -> DatasetVersion:
    """Read a version's file as offers of its profile propose, in one new version.

    Rows whose target becomes missing are left out, since accepting is the consent to it. Offers that keep how
    the file was read are recorded in the version itself, and so are known to versions that are made from it.

    Args:
        version: the version; its file and its profile stay as they are.
        positions: the offers' places in the profile, counted from 0.
        by: who accepts them.

    Returns:
        The new version; `version` if nothing is read in another way.

    Raises:
        Forbidden: `by` may not write in the project.
        BadInput: no offer is chosen, or two exclude each other.
        StaleState: the version is not ready.
        NotFound: there is no such offer.
        Conflict: the data set is bundled, or the version has no file.
        QuotaReached: the project has too many uploads in progress.
    """
    access.require(by, version.dataset.project, access.Action.WRITE)
    with transaction.atomic():
        # Locked before its answers are read: two people may answer for two columns at the same time.
        row = DatasetVersion.objects.select_for_update().get(pk=version.pk)
        profile, offers = _chosen_offers(row, positions)
        roles = _roles_with(row, profile, offers)
        if all(profile.is_read_as(offer.change) for offer in offers):
            return _record_answers(row, roles, by)
    return set_roles(version, roles, by=by)


def _chosen_offers(version: DatasetVersion, positions: Sequence[int]) -> tuple[Profile, list[Offer]]:
    """Return a version's profile and its offers at these places, which can be accepted together."""
    profile = version.profile
    if profile is None or version.state != DatasetVersion.State.READY:
        raise StaleState(f"{version} is {version.state}; its offers can be accepted when it is ready")
    if wrong := [position for position in positions if not 0 <= position < len(profile.offers)]:
        raise NotFound(
            f"{version} has {len(profile.offers)} offers, counted from 0; there is no offer {wrong[0]}"
        )
    offers = [profile.offers[position] for position in dict.fromkeys(positions)]
    _check_together(offers)
    return profile, offers


def _roles_with(version: DatasetVersion, profile: Profile, offers: Sequence[Offer]) -> Roles:
    """Return the roles that were requested for a version, changed by offers."""
    roles = Roles.requested_for(version)
    for change in (offer.change for offer in offers):
        roles = roles.with_change(change)
        if change.name == profile.target and (change.gap_words or change.type in NUMERIC):
            roles = replace(roles, rows_without_target="leave_out")
    return roles


def _check_together(offers: Sequence[Offer]) -> None:
    """Check that offers can be accepted together.

    Raises:
        BadInput: there are none, or two change the same of a column.
    """
    if not offers:
        raise BadInput("No choice is marked: mark those that one new version has.")
    taken: dict[tuple[str, str], Offer] = {}
    for offer in offers:
        fields = {*offer.change.model_dump(exclude_none=True)} - {"name", "role"}
        # A format belongs to a type.
        kinds = {"type" if field in ("date_format", "number_format") else field for field in fields}
        for kind in kinds:
            other = taken.setdefault((offer.change.name, kind), offer)
            if other is not offer:
                raise BadInput(
                    f"{other.label!r} and {offer.label!r} exclude each other for column "
                    f"{offer.change.name!r}; choose one of them."
                )


def _record_answers(version: DatasetVersion, roles: Roles, by: User) -> DatasetVersion:
    """Record in a locked version's request how it was read, so that its finding is not shown again."""
    version.request = {**version.request, **roles.as_request()}
    version.save(update_fields=["request"])
    audit.record("dataset.answer", version, by=by, project=version.dataset.project)
    return version


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
