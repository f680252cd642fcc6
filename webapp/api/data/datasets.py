"""Operations on data sets and their versions. Files are uploaded as forms, or fetched from an address."""

from functools import partial
from typing import Annotated

from django.db import transaction
from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from jobs import access
from jobs.actions.data import dataset_roles, fetches, resumable_uploads
from jobs.actions.data import datasets as actions
from jobs.actions.data.datasets import Roles
from jobs.actions.storage import deletions
from jobs.answers.data.datasets import DatasetOut, DatasetVersionOut, OverviewOut, PreviewOut
from jobs.models import Dataset, DatasetVersion, Project, ResumableUpload
from jobs.queries.data import datasets as queries
from webapp.api.auth import actor
from webapp.api.data import uploads
from webapp.api.data.dataset_forms import read_options, read_roles
from webapp.api.idempotency import begin, idempotent, idempotent_upload
from webapp.api.media import form_text, is_multipart
from webapp.api.paging import Page, Paging, paginate, paginate_bulk
from webapp.api.shapes import OneOf
from webapp.json_text import read_json
from webapp.uploads import arrived, received, require_one_for_digest

router = Router(by_alias=True)
NEW = uploads.describe_body("DatasetUpload", "DatasetAddressIn")
NEW_VERSION = uploads.describe_body("DatasetUpload", "VersionAddressIn")
SORTS = {"slug": "slug", "created": "created", "id": "pk"}


class DatasetFilter(Schema):
    """The list's filters."""

    project: str | None = Field(None, description="This project's data sets and the bundled ones.")
    source: Annotated[str, OneOf(Dataset.Source)] | None = None


def _find_project(request: HttpRequest, slug: str | None) -> Project | None:
    return access.get_project(actor(request), slug) if slug else None


@router.get("/datasets", response=Page[DatasetOut])
def list_datasets(
    request: HttpRequest, paging: Query[Paging], filters: Query[DatasetFilter]
) -> Page[DatasetOut]:
    """List the data sets in the caller's projects and the bundled ones."""
    rows = queries.datasets_with_versions(actor(request), _find_project(request, filters.project))
    if filters.source is not None:
        rows = rows.filter(source=filters.source)
    return paginate(Page[DatasetOut], rows, paging, queries.dataset_out, sorts=SORTS, default="slug")


@router.post("/datasets", response={201: DatasetOut}, openapi_extra=NEW)
@idempotent_upload
def create_dataset(request: HttpRequest) -> Status[DatasetOut]:
    """Create a data set from a file, or from an address. A worker then describes its columns."""
    if not is_multipart(request):
        return Status(201, queries.dataset_out(_create_from_address(request).dataset))
    project = access.get_project(actor(request), form_text(request, "project"), access.Action.WRITE)
    slug = actions.check_slug(form_text(request, "slug"))
    name, description = form_text(request, "name", ""), form_text(request, "description", "")
    roles, reading = read_roles(request), read_options(request)
    parts = arrived(request, actor(request))
    stored = _store_files(request, project, parts)
    version = actions.create(
        project,
        slug=slug,
        stored=stored,
        by=actor(request),
        name=name,
        description=description,
        roles=roles,
        reading=reading,
    )
    _end_uploads(parts)
    return Status(201, queries.dataset_out(version.dataset))


@router.get("/datasets/{slug}", response=DatasetOut)
def get_dataset(request: HttpRequest, slug: str, project: str | None = None) -> DatasetOut:
    """Return a data set."""
    return queries.dataset_out(access.get_dataset(actor(request), slug, _find_project(request, project)))


@router.delete("/datasets/{slug}", response={204: None})
def delete_dataset(request: HttpRequest, slug: str, project: str | None = None) -> Status[None]:
    """Delete a data set with its versions. Refused while an experiment or a job uses it."""
    dataset = access.get_dataset(actor(request), slug, _find_project(request, project))
    deletions.delete(dataset, by=actor(request))
    return Status(204, None)


@router.get("/datasets/{slug}/versions", response=Page[DatasetVersionOut])
def list_dataset_versions(
    request: HttpRequest, slug: str, paging: Query[Paging], project: str | None = None
) -> Page[DatasetVersionOut]:
    """List a data set's versions, newest first."""
    dataset = access.get_dataset(actor(request), slug, _find_project(request, project))
    rows = dataset.versions.select_related("dataset__project", "created_by")
    return paginate_bulk(
        Page[DatasetVersionOut],
        rows,
        paging,
        queries.versions_out,
        sorts={"number": "number"},
        default="-number",
    )


@router.post(
    "/datasets/{slug}/versions",
    response={201: DatasetVersionOut},
    openapi_extra=NEW_VERSION,
)
@idempotent_upload
def create_dataset_version(
    request: HttpRequest, slug: str, project: str | None = None
) -> Status[DatasetVersionOut]:
    """Add a version to a data set that is not bundled, from a file or from an address."""
    if not is_multipart(request):
        return Status(201, queries.version_out(_add_from_address(request, slug, project)))
    named = project or form_text(request, "project", "") or None
    dataset = access.get_dataset(actor(request), slug, _find_project(request, named), access.Action.WRITE)
    roles, reading = read_roles(request), read_options(request)
    parts = arrived(request, actor(request))
    stored = _store_files(request, dataset.project, parts)
    version = actions.add_version(dataset, stored=stored, by=actor(request), roles=roles, reading=reading)
    _end_uploads(parts)
    return Status(201, queries.version_out(version))


@router.get("/datasets/{slug}/versions/{number}", response=DatasetVersionOut)
def get_dataset_version(
    request: HttpRequest, slug: str, number: int, project: str | None = None
) -> DatasetVersionOut:
    """Return a version. Its schema and statistics are present once it is ready."""
    version = access.get_dataset_version(actor(request), slug, number, _find_project(request, project))
    return queries.version_out(version)


@router.post("/datasets/{slug}/versions/{number}/fetch", response={202: DatasetVersionOut})
@idempotent
def fetch_again(
    request: HttpRequest, slug: str, number: int, project: str | None = None
) -> Status[DatasetVersionOut]:
    """Fetch a version's file again, whose fetch failed or was cancelled."""
    version = _writable_version(request, slug, number, project)
    fetches.fetch_again(version, by=actor(request))
    version.refresh_from_db()
    return Status(202, queries.version_out(version))


@router.post("/datasets/{slug}/versions/{number}/fetch/cancel", response={202: DatasetVersionOut})
def cancel_fetch(
    request: HttpRequest, slug: str, number: int, project: str | None = None
) -> Status[DatasetVersionOut]:
    """Cancel a version's fetch. Received bytes are not kept."""
    version = _writable_version(request, slug, number, project)
    fetches.cancel(version, by=actor(request))
    version.refresh_from_db()
    return Status(202, queries.version_out(version))


@router.post("/datasets/{slug}/versions/{number}/read", response={201: DatasetVersionOut})
@idempotent
def read_again(
    request: HttpRequest, slug: str, number: int, body: uploads.ReadAgainIn, project: str | None = None
) -> Status[DatasetVersionOut]:
    """Read a version's file in another way, in a new version, since versions never change."""
    version = _writable_version(request, slug, number, project)
    new_version = dataset_roles.set_roles(
        version,
        body.roles(Roles.requested_for(version)),
        by=actor(request),
        dialect=body.dialect,
        images=body.images,
        max_bad_share=body.max_bad_share,
    )
    return Status(201, queries.version_out(new_version))


@router.post(
    "/datasets/{slug}/versions/{number}/offers/{position}",
    response={200: DatasetVersionOut, 201: DatasetVersionOut},
)
@idempotent
def accept_offer(
    request: HttpRequest, slug: str, number: int, position: int, project: str | None = None
) -> Status[DatasetVersionOut]:
    """Accept one of `schema.offers`, counted from 0, in a new version of the same file.

    A choice that keeps how the file was read is recorded, and the answer is the version itself, with status
    200: nothing is created.
    """
    version = _writable_version(request, slug, number, project)
    read = dataset_roles.accept_offer(version, position, by=actor(request))
    return Status(200 if read.pk == version.pk else 201, queries.version_out(read))


def _writable_version(request: HttpRequest, slug: str, number: int, project: str | None) -> DatasetVersion:
    home = _find_project(request, project)
    return access.get_dataset_version(actor(request), slug, number, home, access.Action.WRITE)


@router.get("/datasets/{slug}/versions/{number}/preview", response=PreviewOut)
def get_dataset_preview(
    request: HttpRequest, slug: str, number: int, project: str | None = None
) -> PreviewOut:
    """Return a version's first rows. Images are nested lists."""
    version = access.get_dataset_version(actor(request), slug, number, _find_project(request, project))
    return queries.preview_out(version)


@router.get("/datasets/{slug}/versions/{number}/overview", response=OverviewOut)
def get_dataset_overview(
    request: HttpRequest, slug: str, number: int, project: str | None = None
) -> OverviewOut:
    """Return missing values by blocks, correlations, mutual information, and the split's parts."""
    version = access.get_dataset_version(actor(request), slug, number, _find_project(request, project))
    return queries.overview_out(version)


def _create_from_address(request: HttpRequest) -> DatasetVersion:
    body = uploads.parse_body(read_json(request.body), uploads.DatasetAddressIn)
    project = access.get_project(actor(request), body.project, access.Action.WRITE)
    slug, roles = actions.check_slug(body.slug), body.roles()
    begin(request)
    return fetches.create(
        project,
        slug=slug,
        request=body.fetch(),
        by=actor(request),
        name=body.name.strip(),
        description=body.description,
        roles=roles,
        reading=body.reading(),
    )


def _add_from_address(request: HttpRequest, slug: str, project: str | None) -> DatasetVersion:
    body = uploads.parse_body(read_json(request.body), uploads.VersionAddressIn)
    home = _find_project(request, project or body.project)
    dataset = access.get_dataset(actor(request), slug, home, access.Action.WRITE)
    roles = body.roles()
    begin(request)
    return fetches.add_version(
        dataset, request=body.fetch(), by=actor(request), roles=roles, reading=body.reading()
    )


def _store_files(
    request: HttpRequest, project: Project | None, arrived_before: list[ResumableUpload]
) -> actions.StoredUpload:
    """Store the form's files, and then begin the transaction for the request's rows."""
    sha256 = form_text(request, "sha256", "")
    if arrived_before:
        require_one_for_digest(len(arrived_before), sha256)
        parts = [resumable_uploads.store_received(upload, project, sha256) for upload in arrived_before]
    else:
        with received(request, project, sha256) as files:
            parts = [actions.store_upload(file, project) for file in files]
    stored = actions.combine_uploads(parts)
    begin(request)
    return stored


def _end_uploads(uploads_in_version: list[ResumableUpload]) -> None:
    """End uploads whose files are in a version now."""
    for upload in uploads_in_version:
        transaction.on_commit(partial(resumable_uploads.end_used, upload))
