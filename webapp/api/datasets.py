"""Data sets and their versions; uploads as multipart forms."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status

from jobs import access
from jobs.actions import datasets as actions
from jobs.actions.datasets import Roles
from jobs.contracts.problems import Problem
from jobs.errors import BadInput
from jobs.models import Dataset, DatasetVersion, Project
from jobs.queries import datasets as queries
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent
from webapp.api.media import form_text, is_multipart
from webapp.api.pages import Page, Paging, cut
from webapp.api.shapes import Json, OneOf, Time, username
from webapp.json_text import read_json
from webapp.uploads import received

router = Router()
SORTS = {"slug": "slug", "created": "created", "id": "pk"}
UPLOAD: dict[str, Any] = {
    "requestBody": {
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "project": {"type": "string"},
                        "slug": {"type": "string"},
                        "file": {"type": "string", "format": "binary", "description": "CSV, NPZ or Parquet"},
                        "name": {"type": "string"},
                        "description": {"type": "string"},
                        "target": {"type": "string"},
                        "features": {"type": "string", "description": "column names, comma-separated"},
                        "task": {"type": "string"},
                        "sha256": {"type": "string", "description": "checked against what arrives"},
                    },
                }
            }
        }
    }
}


class VersionOut(Schema):
    """One immutable version. `schema` stands once it is ready, `error` when it failed."""

    dataset: str
    project: str | None
    number: int
    state: str
    source: str
    file: str | None
    digest: str | None
    rows: int | None
    schema_: Json | None = None
    error: Json | None
    job: int | None
    created_by: str | None
    created: Time

    model_config = {"serialize_by_alias": True}


class DatasetOut(Schema):
    """A data set with its newest version."""

    slug: str
    name: str
    description: str
    project: str | None
    source: str
    versions: int
    latest: Json | None
    created_by: str | None
    created: Time


class DatasetFilter(Schema):
    """`?project=&source=`."""

    project: str | None = None
    source: Annotated[str, OneOf(Dataset.Source)] | None = None


def show_version(version: DatasetVersion) -> Json:
    """Return a version as the API shows it."""
    profile = version.profile
    job = queries.profile_job(version)
    return {
        "dataset": version.dataset.slug,
        "project": version.dataset.project.slug if version.dataset.project else None,
        "number": version.number,
        "state": version.state,
        "source": version.request.get("source", ""),
        "file": version.request.get("file"),
        "digest": version.digest or None,
        "rows": version.rows,
        "schema": profile.model_dump(mode="json", exclude={"preview", "rows"}) if profile else None,
        "error": version.error,
        "job": job.pk if job is not None else None,
        "created_by": username(version.created_by),
        "created": version.created,
    }


def show(dataset: Dataset) -> DatasetOut:
    """Return a data set as the API shows it."""
    versions = list(dataset.versions.all())
    latest = max(versions, key=lambda version: version.number, default=None)
    return DatasetOut(
        slug=dataset.slug,
        name=dataset.name,
        description=dataset.description,
        project=dataset.project.slug if dataset.project else None,
        source=dataset.source,
        versions=len(versions),
        latest=_brief(latest) if latest is not None else None,
        created_by=username(dataset.created_by),
        created=dataset.created,
    )


def _brief(version: DatasetVersion) -> Json:
    return {
        "number": version.number,
        "state": version.state,
        "digest": version.digest or None,
        "rows": version.rows,
    }


def _project(request: HttpRequest, slug: str | None) -> Project | None:
    return access.get_project(actor(request), slug) if slug else None


@router.get("/datasets", response=Page[DatasetOut])
def list_datasets(
    request: HttpRequest, paging: Query[Paging], wanted: Query[DatasetFilter]
) -> Page[DatasetOut]:
    """List the data sets in sight; `?project=` gives its own and the bundled."""
    rows = queries.listed(actor(request), _project(request, wanted.project))
    if wanted.source is not None:
        rows = rows.filter(source=wanted.source)
    return cut(rows, paging, show, sorts=SORTS, default="slug")


@router.post("/datasets", response={201: DatasetOut}, openapi_extra=UPLOAD)
@idempotent
def create_dataset(request: HttpRequest) -> Status[DatasetOut]:
    """Make a data set from an uploaded CSV, NPZ or Parquet file. A worker then reads and describes it."""
    _refuse_urls(request)
    project = access.get_project(actor(request), form_text(request, "project"), access.Action.WRITE)
    slug = actions.check_slug(form_text(request, "slug"))
    with received(request, sha256=form_text(request, "sha256", "")) as upload:
        version = actions.create(
            project,
            slug=slug,
            upload=upload,
            by=actor(request),
            name=form_text(request, "name", ""),
            description=form_text(request, "description", ""),
            roles=_roles(request),
        )
    return Status(201, show(version.dataset))


@router.get("/datasets/{slug}", response=DatasetOut)
def get_dataset(request: HttpRequest, slug: str, project: str | None = None) -> DatasetOut:
    """Return one data set."""
    return show(access.get_dataset(actor(request), slug, _project(request, project)))


@router.get("/datasets/{slug}/versions", response=Page[Json])
def list_versions(
    request: HttpRequest, slug: str, paging: Query[Paging], project: str | None = None
) -> Page[Json]:
    """List the versions of a data set, newest first."""
    dataset = access.get_dataset(actor(request), slug, _project(request, project))
    rows = dataset.versions.select_related("dataset__project", "created_by")
    return cut(rows, paging, show_version, sorts={"number": "number"}, default="-number")


@router.post("/datasets/{slug}/versions", response={201: Json}, openapi_extra=UPLOAD)
@idempotent
def create_version(request: HttpRequest, slug: str, project: str | None = None) -> Status[Json]:
    """Add a version to an uploaded data set."""
    _refuse_urls(request)
    named = project or form_text(request, "project", "") or None
    dataset = access.get_dataset(actor(request), slug, _project(request, named), access.Action.WRITE)
    with received(request, sha256=form_text(request, "sha256", "")) as upload:
        version = actions.add_version(dataset, upload=upload, by=actor(request), roles=_roles(request))
    return Status(201, show_version(version))


@router.get("/datasets/{slug}/versions/{number}", response=Json)
def get_version(request: HttpRequest, slug: str, number: int, project: str | None = None) -> Json:
    """Return one version: its state, and once it is ready its schema and statistics."""
    return show_version(access.get_dataset_version(actor(request), slug, number, _project(request, project)))


@router.get("/datasets/{slug}/versions/{number}/preview", response=Json)
def preview(request: HttpRequest, slug: str, number: int, project: str | None = None) -> Json:
    """Return the first rows of a ready version; images as nested lists."""
    version = access.get_dataset_version(actor(request), slug, number, _project(request, project))
    profile = version.profile
    if profile is None:
        return {"state": version.state, "columns": [], "rows": []}
    names = [column.name for column in profile.columns]
    return {"state": version.state, "columns": names, "rows": list(profile.preview)}


def _refuse_urls(request: HttpRequest) -> None:
    if is_multipart(request):
        return
    body = read_json(request.body)
    message = "data from a URL come later: send the file itself as multipart/form-data"
    pointer = "/url" if isinstance(body, dict) and "url" in body else "/file"
    raise BadInput(message, [Problem(pointer, message)])


def _roles(request: HttpRequest) -> Roles:
    texts = (form_text(request, name, "") for name in ("target", "features", "task"))
    return Roles.read(*texts)
