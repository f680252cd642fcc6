"""Operations on data sets and their versions. Files are uploaded as multipart forms."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from jobs import access
from jobs.actions import datasets as actions
from jobs.actions import deletions
from jobs.actions.datasets import Roles
from jobs.contracts.answers.datasets import DatasetOut, DatasetVersionOut, PreviewOut
from jobs.contracts.dialect import ReadOptions
from jobs.contracts.problems import Problem
from jobs.errors import BadInput
from jobs.models import Dataset, Project
from jobs.queries import datasets as queries
from webapp.api import uploads
from webapp.api.auth import actor
from webapp.api.idempotency import begin, idempotent_upload
from webapp.api.media import form_text, is_multipart
from webapp.api.paging import Page, Paging, paginate, paginate_bulk
from webapp.api.shapes import OneOf
from webapp.http_errors import Malformed
from webapp.json_text import read_json
from webapp.uploads import received

router = Router(by_alias=True)
UPLOAD = uploads.described("DatasetUpload")
SORTS = {"slug": "slug", "created": "created", "id": "pk"}


class DatasetFilter(Schema):
    """Filters of the list."""

    project: str | None = Field(None, description="This project's data sets and the bundled ones.")
    source: Annotated[str, OneOf(Dataset.Source)] | None = None


def _project(request: HttpRequest, slug: str | None) -> Project | None:
    return access.get_project(actor(request), slug) if slug else None


@router.get("/datasets", response=Page[DatasetOut])
def list_datasets(
    request: HttpRequest, paging: Query[Paging], wanted: Query[DatasetFilter]
) -> Page[DatasetOut]:
    """List the data sets of the caller's projects and the bundled ones."""
    rows = queries.listed(actor(request), _project(request, wanted.project))
    if wanted.source is not None:
        rows = rows.filter(source=wanted.source)
    return paginate(Page[DatasetOut], rows, paging, queries.shown_dataset, sorts=SORTS, default="slug")


@router.post("/datasets", response={201: DatasetOut}, openapi_extra=UPLOAD)
@idempotent_upload
def create_dataset(request: HttpRequest) -> Status[DatasetOut]:
    """Create a data set from a file. A worker then describes its columns."""
    _require_form(request)
    project = access.get_project(actor(request), form_text(request, "project"), access.Action.WRITE)
    slug = actions.check_slug(form_text(request, "slug"))
    name, description = form_text(request, "name", ""), form_text(request, "description", "")
    roles, reading = _roles(request), _reading(request)
    stored = _stored(request, project)
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
    return Status(201, queries.shown_dataset(version.dataset))


@router.get("/datasets/{slug}", response=DatasetOut)
def get_dataset(request: HttpRequest, slug: str, project: str | None = None) -> DatasetOut:
    """Return a data set."""
    return queries.shown_dataset(access.get_dataset(actor(request), slug, _project(request, project)))


@router.delete("/datasets/{slug}", response={204: None})
def delete_dataset(request: HttpRequest, slug: str, project: str | None = None) -> Status[None]:
    """Delete a data set with its versions. Refused while an experiment or a job uses it."""
    found = access.get_dataset(actor(request), slug, _project(request, project))
    deletions.delete(found, by=actor(request))
    return Status(204, None)


@router.get("/datasets/{slug}/versions", response=Page[DatasetVersionOut])
def list_dataset_versions(
    request: HttpRequest, slug: str, paging: Query[Paging], project: str | None = None
) -> Page[DatasetVersionOut]:
    """List the versions of a data set, newest first."""
    dataset = access.get_dataset(actor(request), slug, _project(request, project))
    rows = dataset.versions.select_related("dataset__project", "created_by")
    return paginate_bulk(
        Page[DatasetVersionOut],
        rows,
        paging,
        queries.shown_versions,
        sorts={"number": "number"},
        default="-number",
    )


@router.post(
    "/datasets/{slug}/versions",
    response={201: DatasetVersionOut},
    openapi_extra=UPLOAD,
)
@idempotent_upload
def create_dataset_version(
    request: HttpRequest, slug: str, project: str | None = None
) -> Status[DatasetVersionOut]:
    """Add a version to an uploaded data set."""
    _require_form(request)
    named = project or form_text(request, "project", "") or None
    dataset = access.get_dataset(actor(request), slug, _project(request, named), access.Action.WRITE)
    roles, reading = _roles(request), _reading(request)
    version = actions.add_version(
        dataset, stored=_stored(request, dataset.project), by=actor(request), roles=roles, reading=reading
    )
    return Status(201, queries.shown_version(version))


@router.get("/datasets/{slug}/versions/{number}", response=DatasetVersionOut)
def get_dataset_version(
    request: HttpRequest, slug: str, number: int, project: str | None = None
) -> DatasetVersionOut:
    """Return a version. Its schema and statistics are present once it is ready."""
    found = access.get_dataset_version(actor(request), slug, number, _project(request, project))
    return queries.shown_version(found)


@router.get("/datasets/{slug}/versions/{number}/preview", response=PreviewOut)
def get_dataset_preview(
    request: HttpRequest, slug: str, number: int, project: str | None = None
) -> PreviewOut:
    """Return the first rows of a version. Images are nested lists."""
    found = access.get_dataset_version(actor(request), slug, number, _project(request, project))
    return queries.preview(found)


def _require_form(request: HttpRequest) -> None:
    """Require a form with a file.

    Raises:
        BadInput: the body is JSON, with a URL or without; data sets by URL are not supported yet.
        UnsupportedMediaType: the body is neither a form nor JSON.
    """
    if is_multipart(request):
        return
    body = read_json(request.body)
    message = "URLs are not supported yet: send the file as multipart/form-data"
    pointer = "/url" if isinstance(body, dict) and "url" in body else "/file"
    raise BadInput(message, [Problem(pointer, message)])


def _stored(request: HttpRequest, project: Project | None) -> actions.StoredUpload:
    """Store the form's file, and then begin the transaction of the request's rows."""
    with received(request, project, sha256=form_text(request, "sha256", "")) as upload:
        stored = actions.store_upload(upload, project)
    begin(request)
    return stored


def _roles(request: HttpRequest) -> Roles:
    target, features, task = (form_text(request, name, "") for name in ("target", "features", "task"))
    return Roles.read(target, features, task, _columns(form_text(request, "columns", "")))


def _reading(request: HttpRequest) -> ReadOptions:
    dialect = _json_field("dialect", form_text(request, "dialect", ""), {})
    if not isinstance(dialect, dict):
        message = 'dialect must be an object such as {"delimiter": ";", "decimal": ","}'
        raise BadInput(message, [Problem("/dialect", message)])
    return actions.read_options(dialect, form_text(request, "max_bad_share", ""))


def _json_field(name: str, text: str, default: object) -> Any:
    """Return the value of a form field that holds JSON."""
    if not text:
        return default
    try:
        return read_json(text.encode())
    except Malformed as error:
        raise BadInput(error.message, [Problem(f"/{name}", error.message)]) from error


def _columns(text: str) -> list[dict[str, Any]]:
    """Return the field `columns`, a JSON list of objects with name, role and type."""
    columns = _json_field("columns", text, [])
    if not isinstance(columns, list) or not all(isinstance(column, dict) for column in columns):
        message = 'columns must be a list such as [{"name": "city", "type": "category"}]'
        raise BadInput(message, [Problem("/columns", message)])
    return columns
