"""Operations on users' code: files are stored and read, and nothing in them is executed."""

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from jobs import access
from jobs.actions.code import code as actions
from jobs.actions.storage import deletions
from jobs.answers.code.code import (
    CodeDifferencesOut,
    CodeFilesOut,
    CodeSummaryOut,
    CodeTextOut,
    CodeVersionOut,
)
from jobs.models import CodeVersion, Project
from jobs.queries.code import code as queries
from webapp import code_reader
from webapp.api.auth import actor
from webapp.api.data import uploads
from webapp.api.idempotency import begin, idempotent, idempotent_upload
from webapp.api.media import form_text, is_multipart
from webapp.api.paging import NEWEST, Page, Paging, paginate
from webapp.code_definitions import keep_definitions
from webapp.json_text import read_json
from webapp.uploads import received_code, written_code

router = Router(by_alias=True)
SORTS = NEWEST | {"name": "name"}


class CodeFilter(Schema):
    """The list's filters."""

    project: str | None = None
    name: str = Field("", max_length=200, description="Versions with this name.")


def _find_project(request: HttpRequest, slug: str | None) -> Project | None:
    return access.get_project(actor(request), slug) if slug else None


def _find_version(request: HttpRequest, digest: str, project: str | None) -> CodeVersion:
    return access.get_code(actor(request), digest, _find_project(request, project))


@router.get("/code", response=Page[CodeSummaryOut])
def list_code(
    request: HttpRequest, paging: Query[Paging], filters: Query[CodeFilter]
) -> Page[CodeSummaryOut]:
    """List the code versions in the caller's projects, newest first."""
    rows = queries.versions_with_file_counts(
        actor(request), _find_project(request, filters.project), name=filters.name
    )
    return paginate(Page[CodeSummaryOut], rows, paging, queries.version_summary, sorts=SORTS)


@router.post(
    "/code",
    response={200: CodeVersionOut, 201: CodeVersionOut},
    openapi_extra=uploads.describe_body("CodeUpload", "CodeIn"),
)
@idempotent_upload
def create_code(request: HttpRequest) -> Status[CodeVersionOut]:
    """Create a code version from Python files, from their zip or tar, or from text. Nothing is executed.

    The same files have the same digest: the version that exists is returned with status 200.
    """
    if is_multipart(request):
        slug, name = form_text(request, "project"), form_text(request, "name", "")
        upload = received_code(request)
    else:
        body = uploads.parse_body(read_json(request.body), uploads.CodeIn)
        slug, name = body.project, body.name
        upload = written_code([(file.path, file.text) for file in body.files], "files")
    project = access.get_project(actor(request), slug, access.Action.WRITE)
    with upload as sent, code_reader.check_files(sent.files, sent.field) as (files, contents):
        name = actions.check_name(name or sent.proposed_name)
        stored = actions.store_files(project, files, contents)
    begin(request)
    version, is_new = actions.create(project, name=name, code=stored, by=actor(request))
    return Status(201 if is_new else 200, queries.version_out(version))


@router.get("/code/{code}", response=CodeVersionOut)
def get_code(request: HttpRequest, code: str, project: str | None = None) -> CodeVersionOut:
    """Return a code version by its digest, with the findings about it."""
    return queries.version_out(_find_version(request, code, project))


@router.post("/code/{code}/definitions", response={200: CodeVersionOut, 201: CodeVersionOut})
@idempotent
def keep_code_definitions(
    request: HttpRequest, code: str, project: str | None = None
) -> Status[CodeVersionOut]:
    """Store a version with the definitions of this one alone, without the statements in `runs`.

    These are imports, functions, classes, and the constants that they need.
    """
    version, is_new = keep_definitions(_find_version(request, code, project), by=actor(request))
    return Status(201 if is_new else 200, queries.version_out(version))


@router.delete("/code/{code}", response={204: None})
def delete_code(request: HttpRequest, code: str, project: str | None = None) -> Status[None]:
    """Delete a code version."""
    deletions.delete(_find_version(request, code, project), by=actor(request))
    return Status(204, None)


@router.get("/code/{code}/files", response=CodeFilesOut)
def list_code_files(request: HttpRequest, code: str, project: str | None = None) -> CodeFilesOut:
    """List a version's files."""
    return queries.files_out(_find_version(request, code, project))


@router.get("/code/{code}/text", response=CodeTextOut)
def get_code_text(
    request: HttpRequest, code: str, file: str | None = None, project: str | None = None
) -> CodeTextOut:
    """Return a version's file as text; without `file`, the one that its page shows first."""
    return queries.text_out(_find_version(request, code, project), file)


@router.get("/code/{code}/differences", response=CodeDifferencesOut)
def get_code_differences(
    request: HttpRequest, code: str, old: str | None = None, project: str | None = None
) -> CodeDifferencesOut:
    """Return the differences between a version and another one in its project, `old`.

    Without `old`, it is the one before it with the same name, else the one before it, else the newest other.
    """
    new = _find_version(request, code, project)
    before = access.get_code(actor(request), old, new.project) if old else queries.default_comparison(new)
    pairs, equal = queries.different_files(before, new)
    comparison = code_reader.compare_files(pairs, f"{before.digest}:{new.digest}")
    return CodeDifferencesOut(old=before.digest, new=new.digest, equal=equal, files=comparison.files)
