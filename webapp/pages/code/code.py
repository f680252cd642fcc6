"""Lists versions of code, accepts new ones, shows and compares them, and lets a worker load their data."""

from typing import Any, get_args
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpResponse
from django.urls import path
from django.utils.text import slugify

from jobs import access
from jobs.access import Action
from jobs.actions.code import code as actions
from jobs.actions.code import package_installs as installs
from jobs.actions.code import package_sets as sets
from jobs.actions.code.code import Created
from jobs.actions.data import code_data as loading
from jobs.answers.code.code import CodeDataOut
from jobs.errors import Conflict, TrainyardError
from jobs.messages.code import MAX_BYTES, MAX_FILES, MAX_SHOWN_BYTES, CodeEntry, CodeFound
from jobs.models import CodeFile, CodeVersion
from jobs.queries.code import code as queries
from jobs.queries.code import environments, package_installs, package_sets
from jobs.queries.data import code_data
from jobs.queries.paging import page_of
from jobs.queries.runs import workers
from jobs.spec.problems import Problem
from jobs.spec.sections.code_model import CODE_ENTRIES
from jobs.spec.sections.data import Task
from jobs.states import FINAL
from webapp import code_reader
from webapp.http_errors import Unavailable
from webapp.pages.shortcuts import (
    Request,
    action,
    crumbs,
    form_page,
    notify,
    page,
    problems_of,
    redirect,
    render,
    url,
    valid_choice,
    writable_projects,
)
from webapp.uploads import received_code

KINDS: dict[str, str] = {
    "build_model": "function that builds a model",
    "hypermodel": "HyperModel",
    "load_data": "function that loads data",
    "preprocess": "function that prepares data",
    "layer": "layer of Keras",
    "metric": "metric of Keras",
    "loss": "loss of Keras",
    "model": "model of Keras",
    "object": "object of Keras",
    "script": "script",
}
"""What entries are called on pages."""
MOST_NAMES = 4
"""Entries of a version that the list names."""
MOST_OTHERS = 100
"""Versions that the comparison offers."""


@page
def list_page(request: Request) -> HttpResponse:
    """List the versions of code in the projects of the user, newest first."""
    rows = queries.versions_with_file_counts(request.user)
    if text := request.GET.get("q", "").strip():
        rows = rows.filter(name__icontains=text) | rows.filter(digest__startswith=text.lower())
    shown = page_of(rows, cursor=request.GET.get("cursor"), order="-pk")
    context = {
        "shown": shown,
        "text": text,
        "rows": [_row(version) for version in shown.items],
        "may_upload": writable_projects(request.user).exists(),
        "is_reader": access.projects_of(request.user).exists(),
        "crumbs": crumbs("Code"),
    }
    return render(request, "code/list.html", context)


def _row(version: CodeVersion) -> tuple[CodeVersion, list[str], int, int]:
    """Return a version with the names of its first entries, the number of others, and that of problems."""
    names = version.entry_names
    return version, names[:MOST_NAMES], len(names[MOST_NAMES:]), version.problem_count


@form_page
def new(request: Request) -> HttpResponse:
    """Create a version of code from files, or with `?from=text` from pasted text."""
    if request.method != "POST":
        return _show_form(request)
    try:
        version, is_new = _create(request)
    except TrainyardError as error:
        return _show_form(request, problems=problems_of(error), status=error.status)
    if is_new:
        notify(request, f"{version} is stored.")
    else:
        notify(request, f"These files are already there, as {version}.", level="info")
    return redirect(_address(version))


def _create(request: Request) -> Created:
    given = request.POST
    project = access.get_project(request.user, given.get("project", ""), Action.WRITE)
    with received_code(request) as sent, code_reader.checked(sent.files, sent.field) as (files, found):
        name = actions.check_name(given.get("name", "").strip() or sent.proposed_name)
        stored = actions.store_files(project, files, found)
    return actions.create(project, name=name, code=stored, by=request.user)


def _show_form(request: Request, *, problems: tuple[Problem, ...] = (), status: int = 200) -> HttpResponse:
    given = request.POST or request.GET
    keep = {name: request.GET.get(name) for name in ("name", "project")}
    context = {
        "is_text": request.GET.get("from") == "text",
        "tab": "text" if request.GET.get("from") == "text" else "files",
        "tabs": [
            ("files", "Files", url("code_new", **keep)),
            ("text", "Paste", url("code_new", **keep, **{"from": "text"})),
        ],
        "projects": writable_projects(request.user),
        "chosen": given.get("project") or request.session.get("project"),
        "given": given,
        "problems": problems,
        "wrong": {problem.pointer: problem.message for problem in problems},
        "most_files": MAX_FILES,
        "most_at_once": settings.DATA_UPLOAD_MAX_NUMBER_FILES,
        "most_bytes": MAX_BYTES,
        "snippet": _snippet(request),
        "crumbs": crumbs(("Code", url("code")), "New version"),
    }
    return render(request, "code/new.html", context, status=status)


def _snippet(request: Request) -> str:
    """Return the same upload as a command."""
    address = request.build_absolute_uri("/api/v1/code")
    header = '-H "Authorization: Bearer $TOKEN"'
    return f"curl {header} {address} \\\n  -F project=PROJECT -F file=@model.py"


def _version_of(request: Request, digest: str) -> CodeVersion:
    named = request.GET.get("project") or request.POST.get("project")
    home = access.get_project(request.user, named) if named else None
    return access.get_code(request.user, digest, home)


def _address(version: CodeVersion, **query: str) -> str:
    return url("code_version", version.digest, project=version.project.slug, **query)


@page
def version_page(request: Request, code: str) -> HttpResponse:
    """Show a version: its files, one of them with its source, and the findings about it."""
    version = _version_of(request, code)
    files, found = queries.files_of(version), version.found
    file = queries.choose_file(version, files, request.GET.get("file"))
    context = {
        "version": version,
        "files": [(each, _address(version, file=each.path), each == file) for each in files],
        "file": file,
        **_source(version, file),
        "found": found,
        "entries": [_entry(version, entry) for entry in found.entries],
        "unreadable": [(each, _line(version, each.path, each.line)) for each in found.problems],
        "of_same_name": queries.versions_of_same_name(version)[:20],
        "has_others": queries.other_versions(version).exists(),
        "may_write": access.can(request.user, version.project, Action.WRITE),
        "may_run": access.can(request.user, version.project, Action.RUN_CODE),
        "crumbs": crumbs(("Code", url("code")), str(version)),
    }
    context |= _packages(version) | _data(version, found)
    return render(request, "code/version.html", context, partial=_live_part(request))


def _live_part(request: Request) -> str:
    return valid_choice(request.GET.get("part"), ("environments", "data"), "")


def _packages(version: CodeVersion) -> dict[str, Any]:
    """Return the environments of a version, the packages of its next runs, and what installs them now."""
    resolution = package_sets.resolution_of(version)
    return {
        "environments": environments.environments_of_code(version),
        "package_problems": environments.requirement_problems(version),
        "resolution": resolution,
        "recorded": package_sets.rows_of(resolution) if resolution is not None else [],
        "installing": package_installs.open_installations(version).order_by("-pk").first(),
        "package_uses": package_installs.uses_of(version),
        "pools": workers.live_pools(),
        "address": _address(version),
    }


@action
def install(request: Request, code: str) -> HttpResponse:
    """Have a worker install the packages of a version before a run needs them."""
    version, given = _version_of(request, code), request.POST
    job = installs.request_installation(
        version, use=given.get("use", ""), pool=given.get("pool", "default"), by=request.user
    )
    notify(request, f"Job {job.pk} installs the packages of {version}.")
    return redirect(_address(version))


@action
def resolve(request: Request, code: str) -> HttpResponse:
    """Have the versions of the packages chosen again."""
    version = _version_of(request, code)
    sets.resolve_again(version, by=request.user)
    notify(request, "The next run or installation chooses the versions of the packages again.")
    return redirect(_address(version))


def _data(version: CodeVersion, found: CodeFound) -> dict[str, Any]:
    """Return the data that the code has loaded, and the choices of the form to load data."""
    entries = code_data.entry_names(version)
    if not entries:
        return {"data_entries": []}
    loads = code_data.newest_code_data(version)
    builds = next(
        (entry.name for entry in found.entries if entry.kind in CODE_ENTRIES and not entry.note), ""
    )
    return {
        "data_entries": entries,
        "data_name": loads[0].dataset if loads else _data_set_name(version.name),
        "data_hint": "A new name, or a data set of the project, which gets a further version. Lower-case "
        "letters, digits, - and _.",
        "tasks": get_args(Task),
        "is_loading": any(each.state not in FINAL or each.version_state == "preparing" for each in loads),
        "loads": [(each, *_places_of(version, each, builds)) for each in loads],
    }


def _places_of(version: CodeVersion, each: CodeDataOut, builds: str) -> tuple[str, str]:
    """Return the addresses of a loaded data set, and of the form of an experiment with it; empty for none."""
    if each.version is None:
        return "", ""
    project = version.project.slug
    place = url("dataset_version", each.dataset, each.version, project=project)
    if not builds or each.version_state != "ready":
        return place, ""
    chosen = {"code": version.digest, "entry": builds, "dataset": each.dataset, "version": each.version}
    return place, url("experiment_new", project, **chosen)


def _data_set_name(name: str) -> str:
    """Return a proposal for the name of a data set."""
    return f"{slugify(name)[:58].strip('-_') or 'own'}-data"


@action
def load_data(request: Request, code: str) -> HttpResponse:
    """Let a worker call `load_data` of the code; its rows become a version of a data set."""
    version = _version_of(request, code)
    access.require(request.user, version.project, Action.RUN_CODE)
    fields = request.POST
    job = loading.request_loading(
        version,
        dataset=fields.get("slug", "").strip(),
        entry=fields.get("entry", "load_data"),
        task=fields.get("task", ""),
        by=request.user,
        again=True,
    )
    notify(request, f"Job {job.pk} loads the data.")
    return redirect(_address(version) + "#data")


def _source(version: CodeVersion, file: CodeFile) -> dict[str, Any]:
    """Return the lines of a file for the page, or why they are not shown."""
    if file.lines is None:
        return {"why_hidden": "It is not text."}
    if file.artifact.bytes > MAX_SHOWN_BYTES:
        return {"why_hidden": "It is too large to be shown here."}
    address = f"/api/v1/code/{version.digest}/text"
    whole = f"{address}?{urlencode({'project': version.project.slug, 'file': file.path})}"
    return {"source": code_reader.highlighted(file), "whole": whole}


def _entry(version: CodeVersion, entry: CodeEntry) -> tuple[CodeEntry, str, str]:
    return entry, KINDS[entry.kind], _line(version, entry.path, entry.line)


def _line(version: CodeVersion, file: str, line: int | None) -> str:
    return _address(version, file=file) + (f"#L{line}" if line else "")


@page
def compare(request: Request, code: str) -> HttpResponse:
    """Show the differences between a version and an earlier one, `?old=`, by default the one before it."""
    new_version = _version_of(request, code)
    old_version = _compared_with(request, new_version)
    context: dict[str, Any] = {
        "new": new_version,
        "old": old_version,
        "offered": _offered(new_version, old_version),
        "back": _address(new_version),
        "crumbs": crumbs(("Code", url("code")), (str(new_version), _address(new_version)), "Compare"),
    }
    if old_version is not None:
        pairs, context["equal"] = queries.different_files(old_version, new_version)
        try:
            context["files"] = code_reader.compared(pairs, f"{old_version.digest}:{new_version.digest}").files
        except Unavailable:
            raise
        except TrainyardError as error:
            context["too_different"] = error.message
    return render(request, "code/compare.html", context)


def _offered(new_version: CodeVersion, old: CodeVersion | None) -> list[CodeVersion]:
    """Return the versions to compare with, among them the one that is shown."""
    newest = list(queries.other_versions(new_version)[:MOST_OTHERS])
    return newest if old is None or old in newest else [*newest, old]


def _compared_with(request: Request, version: CodeVersion) -> CodeVersion | None:
    if digest := request.GET.get("old"):
        return access.get_code(request.user, digest, version.project)
    try:
        return queries.default_comparison(version)
    except Conflict:
        return None


urls = [
    path("code", list_page, name="code"),
    path("code/new", new, name="code_new"),
    path("code/<slug:code>", version_page, name="code_version"),
    path("code/<slug:code>/compare", compare, name="code_compare"),
    path("code/<slug:code>/install", install, name="code_install"),
    path("code/<slug:code>/resolve", resolve, name="code_resolve"),
    path("code/<slug:code>/data", load_data, name="code_data"),
]
