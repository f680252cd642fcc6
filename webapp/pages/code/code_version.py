"""Shows a code version, has its packages installed, and has its data loaded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import path
from django.utils.text import slugify

from jobs import access
from jobs.access import Action
from jobs.actions.code import package_installs as installs
from jobs.actions.code import package_sets as sets
from jobs.actions.data import code_data as loading
from jobs.answers.code.code import CodeDataOut
from jobs.messages.code import (
    MAX_SHOWN_BYTES,
    CodeEntry,
    CodeFound,
    CodeNotice,
    CodeProblem,
    CodeSearch,
    Highlighted,
)
from jobs.models import CodeFile, CodeVersion, Job, PackageEnvironment, PackageResolution, RecordedPackages
from jobs.public_path import beside_public_path
from jobs.queries.code import code as queries
from jobs.queries.code import environments, package_installs, package_sets
from jobs.queries.data import code_data
from jobs.queries.runs import workers
from jobs.spec.sections.code_model import CODE_ENTRIES
from jobs.spec.sections.data import Task
from jobs.states import FINAL
from webapp import code_reader
from webapp.code_definitions import keep_definitions
from webapp.code_edits import is_editable
from webapp.pages.code.code_lookup import line_address, version_address, version_of
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    action,
    crumbs,
    notify,
    page,
    redirect,
    render_page,
    url,
    valid_choice,
)
from webapp.template_context import Context

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
"""The words for the kinds of entries on pages."""
DATA_HINT = (
    "A new name, or a data set of the project, which gets a further version. "
    "Lower-case letters, digits, - and _."
)


@dataclass(frozen=True)
class CodeVersionPage(Context):
    """A code version: its files, and the entries and problems in them."""

    version: CodeVersion
    files: list[tuple[CodeFile, str, bool]]
    file: CodeFile
    is_editable: bool
    contents: CodeFound
    entries: list[tuple[CodeEntry, str, str]]
    searches: list[tuple[CodeSearch, bool]]
    is_unread: bool
    unreadable: list[tuple[CodeProblem, str]]
    notices: list[tuple[CodeNotice, str]]
    runs: list[tuple[CodeNotice, str]]
    of_same_name: QuerySet[CodeVersion]
    has_others: bool
    may_write: bool
    may_run: bool
    crumbs: Crumbs


@page
def version_page(request: Request, code: str) -> HttpResponse:
    """Show a version: its files, the source code in one file, and the findings."""
    version = version_of(request, code)
    files, contents = queries.files_of(version), version.findings
    file = queries.choose_file(version, files, request.GET.get("file"))
    may_run = access.can(request.user, version.project, Action.RUN_CODE)
    page_context = CodeVersionPage(
        version=version,
        files=[
            (code_file, version_address(version, file=code_file.path), code_file == file)
            for code_file in files
        ],
        file=file,
        is_editable=is_editable(file),
        contents=contents,
        entries=[_describe_entry(version, entry) for entry in contents.entries],
        searches=[(search, may_run and _is_offered(contents, search)) for search in contents.described],
        is_unread=any(problem.path.endswith(".py") for problem in contents.problems),
        unreadable=[
            (problem, line_address(version, problem.path, problem.line)) for problem in contents.problems
        ],
        notices=[(notice, line_address(version, notice.path, notice.line)) for notice in contents.notices],
        runs=[(run, line_address(version, run.path, run.line)) for run in contents.runs],
        of_same_name=queries.versions_of_same_name(version)[:20],
        has_others=queries.other_versions(version).exists(),
        may_write=access.can(request.user, version.project, Action.WRITE),
        may_run=may_run,
        crumbs=crumbs(("Code", url("code")), str(version)),
    )
    return render_page(
        request,
        "code/version.html",
        page_context,
        _source_context(version, file),
        _packages_context(version),
        _data_context(version, contents),
        partial=valid_choice(request.GET.get("part"), ("environments", "data"), ""),
    )


@dataclass(frozen=True)
class CodePackages(Context):
    """A version's environments, the packages for its next runs, and the job that installs them."""

    environments: QuerySet[PackageEnvironment]
    package_problems: list[str]
    resolution: PackageResolution | None
    recorded: list[RecordedPackages]
    installing: Job | None
    package_uses: tuple[str, ...]
    pools: list[str]
    address: str


def _packages_context(version: CodeVersion) -> CodePackages:
    resolution = package_sets.resolution_of(version)
    return CodePackages(
        environments=environments.environments_of_code(version),
        package_problems=environments.requirement_problems(version),
        resolution=resolution,
        recorded=package_sets.rows_of(resolution) if resolution is not None else [],
        installing=package_installs.open_installations(version).order_by("-pk").first(),
        package_uses=package_installs.uses_of(version),
        pools=workers.live_pools(),
        address=version_address(version),
    )


@action
def install(request: Request, code: str) -> HttpResponse:
    """Have a worker install a version's packages before a run needs them."""
    version, entries = version_of(request, code), request.POST
    job = installs.request_installation(
        version, use=entries.get("use", ""), pool=entries.get("pool", "default"), by=request.user
    )
    notify(request, f"Job {job.pk} installs the packages of {version}.")
    return redirect(version_address(version))


@action
def resolve(request: Request, code: str) -> HttpResponse:
    """Have the package versions chosen again."""
    version = version_of(request, code)
    sets.resolve_again(version, by=request.user)
    notify(request, "The next run or installation chooses the versions of the packages again.")
    return redirect(version_address(version))


@action
def definitions(request: Request, code: str) -> HttpResponse:
    """Store a version with the definitions alone."""
    version, is_new = keep_definitions(version_of(request, code), by=request.user)
    if is_new:
        notify(request, f"{version} has the definitions alone.")
    else:
        notify(request, f"The definitions are already there, as {version}.", level="info")
    return redirect(version_address(version))


@dataclass(frozen=True)
class CodeData(Context):
    """The data that the code has loaded, and the choices in the form that loads data."""

    data_entries: list[str]
    data_name: str = ""
    data_hint: str = DATA_HINT
    tasks: tuple[str, ...] = get_args(Task)
    is_loading: bool = False
    loads: Sequence[tuple[CodeDataOut, str, str]] = ()


def _data_context(version: CodeVersion, contents: CodeFound) -> CodeData:
    entries = code_data.entry_names(version)
    if not entries:
        return CodeData(data_entries=[])
    loads = code_data.newest_code_data(version)
    model_entries = (entry for entry in contents.entries if entry.kind in CODE_ENTRIES and not entry.note)
    model_entry = next((entry.name for entry in model_entries), "")
    return CodeData(
        data_entries=entries,
        data_name=loads[0].dataset if loads else _propose_dataset_name(version.name),
        is_loading=any(load.state not in FINAL or load.version_state == "preparing" for load in loads),
        loads=[(load, *_addresses_of_load(version, load, model_entry)) for load in loads],
    )


def _addresses_of_load(version: CodeVersion, load: CodeDataOut, model_entry: str) -> tuple[str, str]:
    """Return the addresses for a loaded data set and for a new experiment with it; empty for none."""
    if load.version is None:
        return "", ""
    project = version.project.slug
    address = url("dataset_version", load.dataset, load.version, project=project)
    if not model_entry or load.version_state != "ready":
        return address, ""
    query = {"code": version.digest, "entry": model_entry, "dataset": load.dataset, "version": load.version}
    return address, url("experiment_new", project, **query)


def _propose_dataset_name(name: str) -> str:
    """Propose a name for the data set that this code loads."""
    return f"{slugify(name)[:58].strip('-_') or 'own'}-data"


@action
def load_data(request: Request, code: str) -> HttpResponse:
    """Have a worker call the code's `load_data`. Its rows become a data set version."""
    version = version_of(request, code)
    access.require(request.user, version.project, Action.RUN_CODE)
    entries = request.POST
    job = loading.request_loading(
        version,
        dataset=entries.get("slug", "").strip(),
        entry=entries.get("entry", "load_data"),
        task=entries.get("task", ""),
        by=request.user,
        again=True,
    )
    notify(request, f"Job {job.pk} loads the data.")
    return redirect(version_address(version) + "#data")


@dataclass(frozen=True)
class CodeSource(Context):
    """The lines in a file, or the reason why they are not shown."""

    source: Highlighted | None = None
    whole: str = ""
    why_hidden: str = ""


def _source_context(version: CodeVersion, file: CodeFile) -> CodeSource:
    if file.lines is None:
        return CodeSource(why_hidden="It is not text.")
    if file.artifact.bytes > MAX_SHOWN_BYTES:
        return CodeSource(why_hidden="It is too large to be shown here.")
    address = beside_public_path(f"/api/v1/code/{version.digest}/text")
    whole = f"{address}?{urlencode({'project': version.project.slug, 'file': file.path})}"
    return CodeSource(source=code_reader.highlight_file(file), whole=whole)


def _is_offered(contents: CodeFound, search: CodeSearch) -> bool:
    """Return whether an experiment can be started from the entry of a search."""
    usable = [entry.name for entry in contents.entries if entry.kind in CODE_ENTRIES and not entry.note]
    return search.entry in usable if search.entry else bool(usable)


def _describe_entry(version: CodeVersion, entry: CodeEntry) -> tuple[CodeEntry, str, str]:
    kind = (
        "method that builds a model"
        if "." in entry.name and entry.kind in CODE_ENTRIES
        else KINDS[entry.kind]
    )
    return entry, kind, line_address(version, entry.path, entry.line)


urls = [
    path("code/<slug:code>", version_page, name="code_version"),
    path("code/<slug:code>/install", install, name="code_install"),
    path("code/<slug:code>/definitions", definitions, name="code_definitions"),
    path("code/<slug:code>/resolve", resolve, name="code_resolve"),
    path("code/<slug:code>/data", load_data, name="code_data"),
]
