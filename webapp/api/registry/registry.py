"""Operations on registered models: versions, aliases, history and rollback."""

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from ninja.responses import Status
from pydantic import Field, ValidationError

from jobs import access
from jobs.access import Action
from jobs.actions.registry import gate_rules, registration, registry, releases
from jobs.actions.storage import deletions
from jobs.answers.registry.gates import GatesOut
from jobs.answers.registry.registry import (
    AliasOut,
    ModelOut,
    ReleaseOut,
    RollbackOut,
    VersionOut,
    VersionPackagesOut,
)
from jobs.answers.runs.jobs import JobOut
from jobs.errors import BadInput, NotFound, StaleState
from jobs.models import ModelVersion
from jobs.queries.registry import gate_rules as gate_queries
from jobs.queries.registry import registry as queries
from jobs.queries.registry import releases as release_queries
from jobs.queries.runs import jobs as job_queries
from jobs.spec.gates import GateRules
from jobs.spec.problems import Problem, problems
from jobs.spec.sections.data import Slug as ModelName
from webapp.api import etags, media
from webapp.api.auth import actor, needs
from webapp.api.data import uploads
from webapp.api.data.uploads import VersionIn
from webapp.api.idempotency import begin, idempotent, idempotent_upload
from webapp.api.paging import Page, Paging, paginate
from webapp.api.shapes import In, Number, Slug, Text
from webapp.http_errors import StaleEtag
from webapp.json_text import read_json
from webapp.uploads import model_on_disk

router = Router()
BY_NAME = {"name": "name", "created": "created"}
BY_NUMBER = {"number": "number", "created": "created"}
BY_GENERATION = {"generation": "generation"}


class ModelIn(In):
    """A new model."""

    name: ModelName = Field(examples=["digits"])
    project: Slug = Field(examples=["demo"])
    description: Text = ""


class ModelChange(In):
    """The model fields that can be changed."""

    description: Text


class VersionChange(In):
    """The version fields that can be changed."""

    card: str = Field(max_length=100_000, description="The model card as Markdown.")


class AliasIn(In):
    """The version that an alias names."""

    version: Number = Field(examples=[1])


class RollbackIn(In):
    """The reason for a rollback."""

    reason: str = Field(min_length=1, max_length=2000, examples=["wrong answers on sevens"])


class GatesIn(In):
    """The rules for a model's gates. They replace all earlier ones; absent fields have their defaults."""

    rules: GateRules
    comment: str = Field("", max_length=2000, description="Why they are changed.")


class ModelFilter(Schema):
    """The list's filters."""

    project: str | None = Field(None, max_length=63)


@router.get("/models", response=Page[ModelOut])
def list_models(request: HttpRequest, paging: Query[Paging], filters: Query[ModelFilter]) -> Page[ModelOut]:
    """List the models in the caller's projects."""
    rows = queries.models_for_lists(actor(request))
    if filters.project is not None:
        rows = rows.filter(project=access.get_project(actor(request), filters.project))
    return paginate(Page[ModelOut], rows, paging, queries.model_out, sorts=BY_NAME, default="name")


@router.post("/models", response={201: ModelOut})
@idempotent
def create_model(request: HttpRequest, body: ModelIn) -> Status[ModelOut]:
    """Create a model and its endpoint."""
    project = access.get_project(actor(request), body.project, Action.WRITE)
    model = registry.create_model(project, body.name, by=actor(request), description=body.description)
    return Status(201, queries.model_out(model))


@router.get("/models/{name}", response=ModelOut)
def get_model(request: HttpRequest, name: str, response: HttpResponse) -> ModelOut:
    """Return a model. The `ETag` belongs to its description, which alone can be changed."""
    model = access.get_model(actor(request), name)
    etags.set_etag(response, model.description_digest)
    return queries.model_out(model)


@router.patch("/models/{name}", response=ModelOut)
def change_model(request: HttpRequest, name: str, body: ModelChange, response: HttpResponse) -> ModelOut:
    """Change a model's description.

    With `If-Match`, a description that another person has changed meanwhile is a 412.
    """
    model = access.get_model(actor(request), name, Action.WRITE)
    etags.require_match(request, model.description_digest)
    seen = model.description_digest if "If-Match" in request.headers else None
    try:
        registry.set_description(model, body.description, seen=seen, by=actor(request))
    except StaleState as error:  # changed since the check above
        raise StaleEtag(error.message) from error
    etags.set_etag(response, model.description_digest)
    return queries.model_out(model)


@router.get("/models/{name}/gates", response=GatesOut)
def get_gates(request: HttpRequest, name: str, response: HttpResponse) -> GatesOut:
    """Return the rules for a model's gates. The `ETag` is their revision number."""
    gates = gate_queries.gates_out(access.get_model(actor(request), name))
    etags.set_etag(response, gates.revision)
    return gates


@router.put("/models/{name}/gates", response=GatesOut, auth=needs("approve"))
def set_gates(request: HttpRequest, name: str, body: GatesIn, response: HttpResponse) -> GatesOut:
    """Replace the rules for a model's gates. Open requests keep the revision that they were made under."""
    model = access.get_model(actor(request), name, Action.APPROVE)
    revision = gate_queries.revision_number(gate_queries.current_revision(model))
    etags.require_match(request, revision)
    seen = revision if "If-Match" in request.headers else None
    try:
        gate_rules.change_rules(model, body.rules, comment=body.comment, seen=seen, by=actor(request))
    except StaleState as error:  # changed since the check above
        raise StaleEtag(error.message) from error
    gates = gate_queries.gates_out(model)
    etags.set_etag(response, gates.revision)
    return gates


@router.get("/models/{name}/versions", response=Page[VersionOut])
def list_model_versions(request: HttpRequest, name: str, paging: Query[Paging]) -> Page[VersionOut]:
    """List a model's versions, newest first."""
    rows: QuerySet[ModelVersion] = queries.versions_of(access.get_model(actor(request), name))
    return paginate(Page[VersionOut], rows, paging, queries.version_out, sorts=BY_NUMBER, default="-number")


@router.post(
    "/models/{name}/versions",
    response={200: VersionOut, 201: VersionOut},
    openapi_extra=uploads.describe_body("ModelUpload", "VersionIn"),
)
@idempotent_upload
def create_model_version(request: HttpRequest, name: str) -> Status[VersionOut]:
    """Create a version from a job's artifact (JSON) or from a `.keras` file (multipart form).

    A version whose file needs users' code takes the right to run code. Rows in the field `sample` are those
    with which its validation and its gates try the model.

    If the model has a version with the same file, code and data already, the answer is that version with 200.
    """
    model = access.get_model(actor(request), name, Action.WRITE)
    if media.is_multipart(request):
        code = registration.code_for_upload(model, request.POST.get("code", ""), by=actor(request))
        with model_on_disk(request, model.project) as (path, rows):
            stored = registration.store_upload(path, model.project)
            sample = None if rows is None else registration.store_sample(rows, model.project)
        begin(request)
        made = registration.add_uploaded(model, stored, code=code, sample=sample, by=actor(request))
    else:
        # django-ninja cannot declare a body that is JSON or a form, so the JSON is parsed here.
        body = read_json(request.body)
        try:
            digest = VersionIn.model_validate(body).artifact
        except ValidationError as error:
            raise BadInput("The version is invalid.", problems(error, body)) from error
        begin(request)
        made = registration.add_version(model, digest, by=actor(request))
    return Status(201 if made.is_new else 200, queries.version_out(made.version))


@router.get("/models/{name}/versions/{number}", response=VersionOut)
def get_model_version(request: HttpRequest, name: str, number: Number, response: HttpResponse) -> VersionOut:
    """Return a version. The `ETag` belongs to its card, which alone can be changed."""
    version = access.get_version(actor(request), name, number)
    etags.set_etag(response, version.card_digest)
    return queries.version_out(version)


@router.get("/models/{name}/versions/{number}/packages", response=VersionPackagesOut)
def get_model_version_packages(request: HttpRequest, name: str, number: Number) -> VersionPackagesOut:
    """Return the packages that are installed for a version's code, and how production differs."""
    user = actor(request)
    version = access.get_version(user, name, number)
    return queries.version_packages_out(version, access.get_endpoint(user, name).production)


@router.patch("/models/{name}/versions/{number}", response=VersionOut)
def change_model_version(
    request: HttpRequest, name: str, number: Number, body: VersionChange, response: HttpResponse
) -> VersionOut:
    """Change a version's card. Everything else about a version is immutable.

    With `If-Match`, a card that another person has changed meanwhile is a 412.
    """
    version = access.get_version(actor(request), name, number, Action.WRITE)
    etags.require_match(request, version.card_digest)
    seen = version.card_digest if "If-Match" in request.headers else None
    try:
        registry.write_card(version, body.card, seen=seen, by=actor(request))
    except StaleState as error:  # changed since the check above
        raise StaleEtag(error.message) from error
    etags.set_etag(response, version.card_digest)
    return queries.version_out(version)


@router.post("/models/{name}/versions/{number}/describe", response={202: JobOut})
@idempotent
def describe_model_version(request: HttpRequest, name: str, number: Number) -> Status[JobOut]:
    """Queue a job that reads a candidate's layers again, for its report with the role `summary`.

    Summaries from earlier releases have no `graph`.
    """
    version = access.get_version(actor(request), name, number, Action.WRITE)
    return Status(202, job_queries.job_out(registration.queue_description(version, by=actor(request))))


@router.delete("/models/{name}/versions/{number}", response={204: None})
def delete_model_version(request: HttpRequest, name: str, number: Number) -> HttpResponse:
    """Delete a version that was never released. Its number is not used again."""
    deletions.delete(access.get_version(actor(request), name, number), by=actor(request))
    return HttpResponse(status=204)


@router.put("/models/{name}/aliases/{alias}", response=AliasOut)
def set_alias(request: HttpRequest, name: str, alias: str, body: AliasIn) -> AliasOut:
    """Set an alias to a version."""
    model = access.get_model(actor(request), name, Action.WRITE)
    version = model.versions.filter(number=body.version).first()
    if version is None:
        message = f"{name} has no version {body.version}"
        raise BadInput(message, [Problem("/version", message)])
    named = registry.set_alias(model, alias, version, by=actor(request))
    return AliasOut(alias=named.name, version=version.number)


@router.delete("/models/{name}/aliases/{alias}", response={204: None})
def delete_alias(request: HttpRequest, name: str, alias: str) -> HttpResponse:
    """Delete an alias."""
    model = access.get_model(actor(request), name, Action.WRITE)
    registry.delete_alias(model, alias, by=actor(request))
    return HttpResponse(status=204)


@router.get("/models/{name}/history", response=Page[ReleaseOut])
def list_model_history(request: HttpRequest, name: str, paging: Query[Paging]) -> Page[ReleaseOut]:
    """List a model's releases, newest first."""
    rows = release_queries.releases_of_endpoint(access.get_endpoint(actor(request), name))
    return paginate(
        Page[ReleaseOut],
        rows,
        paging,
        queries.release_out,
        sorts=BY_GENERATION,
        default="-generation",
    )


@router.post("/models/{name}/rollback", response={202: RollbackOut}, auth=needs("approve"))
@idempotent
def rollback_model(request: HttpRequest, name: str, body: RollbackIn) -> Status[RollbackOut]:
    """Roll back to the latest earlier production version that was never rolled back from."""
    endpoint = access.get_endpoint(actor(request), name)
    record = releases.rollback(endpoint, reason=body.reason, by=actor(request))
    if record.version is None:  # a rollback always names one; for the type checker
        raise NotFound(f"{name} has no earlier version.")
    return Status(202, RollbackOut(generation=record.generation, version=record.version.number))
