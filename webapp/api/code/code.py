"""Operations on code of users: files are stored and read, and nothing in them is executed."""

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
from webapp.api.idempotency import begin, idempotent_upload
from webapp.api.media import form_text, is_multipart
from webapp.api.paging import NEWEST, Page, Paging, paginate
from webapp.json_text import read_json
from webapp.uploads import received_code, written_code

router = Router(by_alias=True)
SORTS = NEWEST | {"name": "name"}


class CodeFilter(Schema):
    """Filters of the list."""

    project: str | None = None
    name: str = Field("", max_length=200, description="Versions with this name.")


def _project(request: HttpRequest, slug: str | None) -> Project | None:
    return access.get_project(actor(request), slug) if slug else None


def _version(request: HttpRequest, digest: str, project: str | None) -> CodeVersion:
    return access.get_code(actor(request), digest, _project(request, project))


@router.get("/code", response=Page[CodeSummaryOut])
def list_code(request: HttpRequest, paging: Query[Paging], wanted: Query[CodeFilter]) -> Page[CodeSummaryOut]:
    """List the versions of code in the caller's projects, newest first."""
    rows = queries.versions_with_file_counts(
        actor(request), _project(request, wanted.project), name=wanted.name
    )
    return paginate(Page[CodeSummaryOut], rows, paging, queries.version_summary, sorts=SORTS)


@router.post(
    "/code",
    response={200: CodeVersionOut, 201: CodeVersionOut},
    openapi_extra=uploads.described("CodeUpload", "CodeIn"),
)
@idempotent_upload
def create_code(request: HttpRequest) -> Status[CodeVersionOut]:
    """Create a version of code from Python files, a zip or tar of them, or text. Nothing is executed.

    The same files have the same digest: the version that exists is returned with status 200.
    """
    if is_multipart(request):
        slug, name = form_text(request, "project"), form_text(request, "name", "")
        given = received_code(request)
    else:
        body = uploads.parsed(read_json(request.body), uploads.CodeIn)
        slug, name = body.project, body.name
        given = written_code([(file.path, file.text) for file in body.files], "files")
    project = access.get_project(actor(request), slug, access.Action.WRITE)
    with given as sent, code_reader.checked(sent.files, sent.field) as (files, found):
        name = actions.check_name(name or sent.proposed_name)
        stored = actions.store_files(project, files, found)
    begin(request)
    version, is_new = actions.create(project, name=name, code=stored, by=actor(request))
    return Status(201 if is_new else 200, queries.version_out(version))


@router.get("/code/{code}", response=CodeVersionOut)
def get_code(request: HttpRequest, code: str, project: str | None = None) -> CodeVersionOut:
    """Return a version of code by its digest, with the findings about it."""
    return queries.version_out(_version(request, code, project))


@router.delete("/code/{code}", response={204: None})
def delete_code(request: HttpRequest, code: str, project: str | None = None) -> Status[None]:
    """Delete a version of code."""
    deletions.delete(_version(request, code, project), by=actor(request))
    return Status(204, None)


@router.get("/code/{code}/files", response=CodeFilesOut)
def list_code_files(request: HttpRequest, code: str, project: str | None = None) -> CodeFilesOut:
    """List the files of a version."""
    return queries.files_out(_version(request, code, project))


@router.get("/code/{code}/text", response=CodeTextOut)
def get_code_text(
    request: HttpRequest, code: str, file: str | None = None, project: str | None = None
) -> CodeTextOut:
    """Return a file of a version as text; without `file`, the one that its page shows first."""
    return queries.text_out(_version(request, code, project), file)


@router.get("/code/{code}/differences", response=CodeDifferencesOut)
def get_code_differences(
    request: HttpRequest, code: str, old: str | None = None, project: str | None = None
) -> CodeDifferencesOut:
    """Return the differences between a version and another one of its project, `old`.

    Without `old`, it is the one before it with the same name, else the one before it, else the newest other.
    """
    new = _version(request, code, project)
    before = access.get_code(actor(request), old, new.project) if old else queries.default_comparison(new)
    pairs, equal = queries.different_files(before, new)
    found = code_reader.compared(pairs, f"{before.digest}:{new.digest}")
    return CodeDifferencesOut(old=before.digest, new=new.digest, equal=equal, files=found.files)
