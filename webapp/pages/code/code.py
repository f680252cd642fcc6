"""Lists code versions, and accepts new ones."""

from dataclasses import dataclass

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.code import code as actions
from jobs.actions.code.code import Created
from jobs.errors import TrainyardError
from jobs.messages.code import (
    MAX_BYTES,
    MAX_FILES,
)
from jobs.models import CodeVersion, Project
from jobs.public_path import beside_public_path
from jobs.queries.code import code as queries
from jobs.queries.paging import Page, page_of
from jobs.spec.problems import Problem
from webapp import code_reader
from webapp.pages.code.code_lookup import version_address
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    Tabs,
    crumbs,
    form_page,
    notify,
    page,
    problems_of,
    redirect,
    render_page,
    url,
    writable_projects,
)
from webapp.scope import scope_of
from webapp.template_context import Context
from webapp.uploads import received_code

MOST_NAMES = 4
"""Entries of a version that the list names."""


@dataclass(frozen=True)
class CodePage(Context):
    """The code versions in the user's projects, newest first."""

    page: Page[CodeVersion]
    text: str
    rows: list[tuple[CodeVersion, list[str], int, int]]
    may_upload: bool
    is_reader: bool
    crumbs: Crumbs


@page
def list_page(request: Request) -> HttpResponse:
    """List the code versions in the user's projects, newest first."""
    rows = scope_of(request, request.user).limit(queries.versions_with_file_counts(request.user))
    if text := request.GET.get("q", "").strip():
        rows = rows.filter(name__icontains=text) | rows.filter(digest__startswith=text.lower())
    listed = page_of(rows, cursor=request.GET.get("cursor"), order="-pk")
    context = CodePage(
        page=listed,
        text=text,
        rows=[_list_row(version) for version in listed.items],
        may_upload=writable_projects(request.user).exists(),
        is_reader=access.projects_of(request.user).exists(),
        crumbs=crumbs("Code"),
    )
    return render_page(request, "code/list.html", context)


def _list_row(version: CodeVersion) -> tuple[CodeVersion, list[str], int, int]:
    """Return a version, its first entry names, and the counts for other entries and problems."""
    names = version.entry_names
    return version, names[:MOST_NAMES], len(names[MOST_NAMES:]), version.problem_count


@form_page
def new(request: Request) -> HttpResponse:
    """Create a code version from files, or with `?from=text` from pasted text."""
    if request.method != "POST":
        return _show_form(request)
    try:
        version, is_new = _create_version(request)
    except TrainyardError as error:
        return _show_form(request, problems=problems_of(error), status=error.status)
    if is_new:
        notify(request, f"{version} is stored.")
    else:
        notify(request, f"These files are already there, as {version}.", level="info")
    return redirect(version_address(version))


def _create_version(request: Request) -> Created:
    entries = request.POST
    project = access.get_project(request.user, entries.get("project", ""), Action.WRITE)
    with received_code(request) as sent, code_reader.check_files(sent.files, sent.field) as (files, contents):
        name = actions.check_name(entries.get("name", "").strip() or sent.proposed_name)
        stored = actions.store_files(project, files, contents)
    return actions.create(project, name=name, code=stored, by=request.user)


@dataclass(frozen=True)
class NewCodePage(Context):
    """The form for a code version, as files or as text."""

    is_text: bool
    tab: str
    tabs: Tabs
    projects: QuerySet[Project]
    chosen: str | None
    entries: QueryDict
    problems: tuple[Problem, ...]
    wrong: dict[str, str]
    most_files: int
    most_at_once: int
    most_bytes: int
    snippet: str
    crumbs: Crumbs


def _show_form(request: Request, *, problems: tuple[Problem, ...] = (), status: int = 200) -> HttpResponse:
    entries = request.POST or request.GET
    keep = {name: request.GET.get(name) for name in ("name", "project")}
    context = NewCodePage(
        is_text=request.GET.get("from") == "text",
        tab="text" if request.GET.get("from") == "text" else "files",
        tabs=[
            ("files", "Files", url("code_new", **keep)),
            ("text", "Paste", url("code_new", **keep, **{"from": "text"})),
        ],
        projects=writable_projects(request.user),
        chosen=entries.get("project") or request.session.get("project"),
        entries=entries,
        problems=problems,
        wrong={problem.pointer: problem.message for problem in problems},
        most_files=MAX_FILES,
        most_at_once=settings.DATA_UPLOAD_MAX_NUMBER_FILES,
        most_bytes=MAX_BYTES,
        snippet=_upload_command(request),
        crumbs=crumbs(("Code", url("code")), "New version"),
    )
    return render_page(request, "code/new.html", context, status=status)


def _upload_command(request: Request) -> str:
    """Return the same upload as a command."""
    address = request.build_absolute_uri(beside_public_path("/api/v1/code"))
    header = '-H "Authorization: Bearer $TOKEN"'
    return f"curl {header} {address} \\\n  -F project=PROJECT -F file=@model.py"


urls = [
    path("code", list_page, name="code"),
    path("code/new", new, name="code_new"),
]
