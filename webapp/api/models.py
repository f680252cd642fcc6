"""Registered models, versions, aliases, history, rollback."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from ninja.responses import Status
from pydantic import Field, ValidationError

from jobs import access
from jobs.access import Action
from jobs.actions import registration, registry, releases
from jobs.contracts.problems import Problem, problems
from jobs.errors import BadInput, NotFound
from jobs.models import ModelVersion
from jobs.queries import history
from jobs.queries import registry as queries
from webapp.api import media, uploads
from webapp.api.auth import actor, needs
from webapp.api.idempotency import idempotent
from webapp.api.pages import Page, Paging, cut
from webapp.api.shapes import In, Json, Number, Slug, Text, Time
from webapp.json_text import read_json
from webapp.uploads import file_on_disk

router = Router()
BY_NAME = {"name": "name", "created": "created"}
BY_NUMBER = {"number": "number", "created": "created"}
BY_GENERATION = {"generation": "generation"}


class ModelIn(In):
    """A model to be made."""

    name: Slug = Field(examples=["digits"])
    project: Slug = Field(examples=["demo"])
    description: Text = ""


class ModelChange(In):
    """What may be changed of a model."""

    description: Text


class ModelOut(Schema):
    """A model and what its endpoint serves, by version number."""

    name: str
    project: str
    description: str
    production: int | None
    previous: int | None
    staging: int | None
    generation: int
    versions: int
    aliases: dict[str, int]
    created_by: str | None
    created: Time


class VersionIn(In):
    """A version made of a job's artifact."""

    artifact: str = Field(pattern=r"^[0-9a-f]{64}$", examples=["0" * 64])


class VersionChange(In):
    """What may be changed of a version: its card."""

    card: str = Field(max_length=100_000)


class VersionOut(Schema):
    """A version; `stage` is where it stands on the endpoint now."""

    model: str
    number: int
    digest: str
    bytes: int
    state: str
    stage: str | None
    what: str
    metrics: Json
    signature: Json
    class_labels: list[Any]
    lineage: Json
    aliases: list[str]
    card: str
    error: Json | None
    job: int | None
    created_by: str | None
    created: Time


class AliasIn(In):
    """Where an alias points."""

    version: Number = Field(examples=[1])


class AliasOut(Schema):
    """An alias."""

    alias: str
    version: int


class ReleaseOut(Schema):
    """One change of what was live."""

    generation: int
    kind: str
    version: int | None
    replaced: int | None
    promotion: int | None
    reason: str
    by: str | None
    created: Time


class RollbackIn(In):
    """Why."""

    reason: str = Field(min_length=1, max_length=2000, examples=["wrong answers on sevens"])


class RollbackOut(Schema):
    """What is being served now, and under which generation."""

    generation: int
    version: int


class ModelFilter(Schema):
    """`?project=`."""

    project: str | None = Field(None, max_length=63)


@router.get("/models", response=Page[ModelOut])
def list_models(request: HttpRequest, paging: Query[Paging], wanted: Query[ModelFilter]) -> Page[Json]:
    """List the models that you may see."""
    rows = queries.models_for_lists(actor(request))
    if wanted.project is not None:
        rows = rows.filter(project=access.get_project(actor(request), wanted.project))
    return cut(rows, paging, queries.shown_model, sorts=BY_NAME, default="name")


@router.post("/models", response={201: ModelOut})
@idempotent
def create_model(request: HttpRequest, body: ModelIn) -> Status[Any]:
    """Make a model; its endpoint comes with it."""
    project = access.get_project(actor(request), body.project, Action.WRITE)
    model = registry.create_model(project, body.name, by=actor(request), description=body.description)
    return Status(201, queries.shown_model(model))


@router.get("/models/{name}", response=ModelOut)
def get_model(request: HttpRequest, name: str) -> Json:
    """Return one model."""
    return queries.shown_model(access.get_model(actor(request), name))


@router.patch("/models/{name}", response=ModelOut)
def change_model(request: HttpRequest, name: str, body: ModelChange) -> Json:
    """Describe a model."""
    model = access.get_model(actor(request), name, Action.WRITE)
    return queries.shown_model(registry.describe(model, body.description, by=actor(request)))


@router.get("/models/{name}/versions", response=Page[VersionOut])
def list_versions(request: HttpRequest, name: str, paging: Query[Paging]) -> Page[Json]:
    """List a model's versions."""
    rows: QuerySet[ModelVersion] = queries.versions_of(access.get_model(actor(request), name))
    return cut(rows, paging, queries.shown_version, sorts=BY_NUMBER, default="-number")


@router.post("/models/{name}/versions", response={201: VersionOut}, openapi_extra=uploads.either(VersionIn))
@idempotent
def create_version(request: HttpRequest, name: str) -> Status[Any]:
    """Make a version of a job's artifact (JSON `{"artifact"}`), or of a `.keras` sent as `file`."""
    model = access.get_model(actor(request), name, Action.WRITE)
    if media.is_multipart(request):
        with file_on_disk(request, "file") as path:
            version = registration.add_uploaded(model, path, by=actor(request))
    else:
        version = registration.add_version(model, _artifact(request), by=actor(request))
    return Status(201, queries.shown_version(version))


def _artifact(request: HttpRequest) -> str:
    body = read_json(request.body)
    try:
        return VersionIn.model_validate(body).artifact
    except ValidationError as error:
        raise BadInput("The version does not hold.", problems(error, body)) from error


@router.get("/models/{name}/versions/{number}", response=VersionOut)
def get_version(request: HttpRequest, name: str, number: Number) -> Json:
    """Return one version."""
    return queries.shown_version(access.get_version(actor(request), name, number))


@router.patch("/models/{name}/versions/{number}", response=VersionOut)
def change_version(request: HttpRequest, name: str, number: Number, body: VersionChange) -> Json:
    """Write a version's card; all else about it is immutable."""
    version = access.get_version(actor(request), name, number, Action.WRITE)
    return queries.shown_version(registry.write_card(version, body.card, by=actor(request)))


@router.put("/models/{name}/aliases/{alias}", response=AliasOut)
def set_alias(request: HttpRequest, name: str, alias: str, body: AliasIn) -> Json:
    """Point an alias at a version."""
    model = access.get_model(actor(request), name, Action.WRITE)
    version = model.versions.filter(number=body.version).first()
    if version is None:
        message = f"{name} has no version {body.version}"
        raise BadInput(message, [Problem("/version", message)])
    made = registry.set_alias(model, alias, version, by=actor(request))
    return {"alias": made.name, "version": version.number}


@router.delete("/models/{name}/aliases/{alias}", response={204: None})
def delete_alias(request: HttpRequest, name: str, alias: str) -> HttpResponse:
    """Remove an alias."""
    model = access.get_model(actor(request), name, Action.WRITE)
    registry.delete_alias(model, alias, by=actor(request))
    return HttpResponse(status=204)


@router.get("/models/{name}/history", response=Page[ReleaseOut])
def list_history(request: HttpRequest, name: str, paging: Query[Paging]) -> Page[Json]:
    """List what was live when, by whom and why."""
    rows = history.of_endpoint(access.get_endpoint(actor(request), name))
    return cut(rows, paging, queries.shown_release, sorts=BY_GENERATION, default="-generation")


@router.post("/models/{name}/rollback", response={202: RollbackOut}, auth=needs("serve", "approve"))
@idempotent
def rollback(request: HttpRequest, name: str, body: RollbackIn) -> Status[Any]:
    """Go back to the latest earlier production version that was never rolled back from."""
    endpoint = access.get_endpoint(actor(request), name)
    record = releases.rollback(endpoint, reason=body.reason, by=actor(request))
    if record.version is None:  # a rollback always names one; for the type checker
        raise NotFound(f"{name} has no earlier version.")
    return Status(202, {"generation": record.generation, "version": record.version.number})
