"""Shows the form that runs a script in a code version, or searches over its arguments."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.experiments import experiments as actions
from jobs.errors import Forbidden, StaleState
from jobs.messages.code import CodeEntry
from jobs.messages.script_command import path_of
from jobs.models import CodeVersion, Experiment, Project
from jobs.queries.code import code as code_queries
from jobs.queries.data import datasets
from jobs.queries.experiments import experiments
from jobs.queries.registry.registry import model_names
from jobs.queries.runs.offered_devices import offered_devices
from jobs.queries.runs.workers import live_pools
from jobs.spec.plan import names
from webapp.forms.experiments.script.arguments import ArgumentFormSet, ArgumentRows
from webapp.forms.experiments.script.descriptions import describe_others
from webapp.forms.experiments.script.rows import rows_of
from webapp.forms.experiments.script.script import ScriptForm
from webapp.forms.experiments.script.spec import initial_values, spec_from, spec_part
from webapp.pages.experiments.opened_settings import OpenedSettings
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    crumbs,
    form_page,
    notify,
    page,
    redirect,
    render_page,
    url,
)
from webapp.template_context import Context
from webapp.uploads import PASTED

HELPER = Path(settings.BASE_DIR) / "workers" / "script_helper" / "trainyard_report.py"
METADATA = ("name", "tags", "notes")
"""The fields of an experiment beside its spec."""
Json = dict[str, Any]
type OnConflict = Callable[[Request, Experiment, Json, Json], HttpResponse]


@dataclass(frozen=True)
class _Edit:
    """The form in one request, with the experiment that it changes.

    Attributes:
        request: the request.
        project: the experiment's project.
        experiment: None for a new one.
        before: the spec that is revised.
        form, arguments: the form.
        on_conflict: compares both versions if another one was saved meanwhile.
    """

    request: Request
    project: Project
    experiment: Experiment | None
    before: Json
    form: ScriptForm
    arguments: ArgumentRows
    on_conflict: OnConflict | None


@form_page
def new(request: Request, project: str, code: str) -> HttpResponse:
    """Create an experiment with a script in a version; `?entry=` names it."""
    home = access.get_project(request.user, project, Action.RUN_CODE)
    version = access.get_code(request.user, code, home)
    entry = request.GET.get("entry") or next(iter(_list_scripts(version)), "")
    spec = {"model": {"kind": "script", "digest": version.digest, "entry": entry}}
    # Pasted code has no name of a file of its own.
    name = version.name if entry == PASTED else entry.rpartition("/")[2].removesuffix(".py")
    name = names.free_name(name, experiments.newest_names(home))
    return _show_script_form(request, version, None, {"name": name, "tags": "", "notes": "", "spec": spec})


def edit(
    request: Request,
    experiment: Experiment,
    document: Json,
    *,
    on_conflict: OnConflict,
    is_unsaved: bool = False,
    opened: OpenedSettings | None = None,
) -> HttpResponse:
    """Revise an experiment with a script.

    Args:
        request: the request.
        experiment: the experiment.
        document: its saved version, or unsaved form entries with their `version`.
        on_conflict: compares both versions if another one was saved meanwhile.
        is_unsaved: whether `document` has entries that were not saved. The form shows them, not those in
            the request.
        opened: the job or revision that has the settings in `document`, if the address names one.
    """
    version = code_queries.version_of_draft(experiment.project, document["spec"]["model"].get("digest"))
    return _show_script_form(
        request,
        version,
        experiment,
        document,
        on_conflict=on_conflict,
        is_unsaved=is_unsaved,
        opened=opened,
    )


@dataclass(frozen=True)
class ScriptPage(Context):
    """The form that runs a script, or searches over its arguments."""

    form: ScriptForm
    arguments: ArgumentRows
    version: CodeVersion
    project: Project
    experiment: Experiment | None
    is_unsaved: bool
    how_others: str
    scripts: list[str]
    known: dict[str, list[str]]
    may_run: bool
    crumbs: Crumbs
    opened: OpenedSettings | None


def _show_script_form(
    request: Request,
    version: CodeVersion,
    experiment: Experiment | None,
    document: Json,
    *,
    on_conflict: OnConflict | None = None,
    is_unsaved: bool = False,
    opened: OpenedSettings | None = None,
) -> HttpResponse:
    project, spec = version.project, document["spec"]
    data = None if is_unsaved else request.POST or None
    rows = datasets.datasets_with_versions(request.user, project).order_by("slug")
    devices = offered_devices()
    form = ScriptForm(
        code_queries.versions_to_choose(version),
        rows,
        data,
        initial=_initial_form_values(experiment, document),
        offers_tpu=devices.has_tpu,
    )
    arguments = ArgumentFormSet(data, initial=_initial_rows(version, spec), prefix="arguments")
    # One row to begin with, if the code declares no argument.
    arguments.extra = 0 if arguments.initial else 1
    form.arguments = arguments
    sent = _Edit(request, project, experiment, spec, form, arguments, on_conflict)
    try:
        response = form.apply(lambda values: _save(sent, values))
    except Forbidden as error:
        # The role was changed meanwhile. An error page would lose the entries.
        form.add_error(None, error.message)
        form.refusal, response = error, None
    if response is not None:
        return response
    trail = [("Experiments", url("experiments", project.slug))]
    if experiment is not None:
        trail.append((experiment.name, url("experiment", project.slug, experiment.pk)))
    context = ScriptPage(
        form=form,
        arguments=arguments,
        version=version,
        project=project,
        experiment=experiment,
        is_unsaved=is_unsaved or (opened is not None and not opened.is_shown_anyway),
        how_others=describe_others(_find_script(version, _entry_of(spec))),
        scripts=_list_scripts(version),
        known={
            "pools": live_pools(),
            "labels": list(devices.labels),
            "gpus": list(devices.wanted),
            "models": model_names(project),
        },
        may_run=access.can(request.user, project, Action.RUN_CODE),
        crumbs=crumbs(*trail, "Edit" if experiment else "New"),
        opened=opened,
    )
    status = form.status if form.errors or arguments.total_error_count() else 200
    return render_page(request, "experiments/script.html", context, status=status)


def _initial_form_values(experiment: Experiment | None, document: Json) -> Json:
    values = {**dict(initial_values(document["spec"])), **{name: document[name] for name in METADATA}}
    if experiment is None:
        return values
    return {**values, "seen": document.get("version", str(experiment.version))}


def _initial_rows(version: CodeVersion, spec: Json) -> list[Json]:
    # A draft may have anything in place of them.
    model, search = spec_part(spec, "model"), spec_part(spec, "search")
    space = search.get("space")
    return rows_of(
        _find_script(version, _entry_of(spec)),
        spec_part(model, "args"),
        space if isinstance(space, list) else (),
    )


def _entry_of(spec: Json) -> str:
    return str(spec_part(spec, "model").get("entry", ""))


def _find_script(version: CodeVersion, entry: str) -> CodeEntry | None:
    scripts = (code_entry for code_entry in version.findings.entries if code_entry.kind == "script")
    return next((script for script in scripts if script.path == path_of(entry)), None)


def _list_scripts(version: CodeVersion) -> list[str]:
    """Return a version's scripts, and then its other Python files."""
    scripts = [entry.path for entry in version.findings.entries if entry.kind == "script"]
    others = [file.path for file in code_queries.files_of(version) if file.path.endswith(".py")]
    return list(dict.fromkeys([*scripts, *others]))


def _save(edit: _Edit, values: Json) -> HttpResponse | None:
    """Submit the experiment, or save it as a draft; None if an argument is not valid."""
    if not edit.arguments.is_valid():
        return None
    is_submitted = edit.request.POST.get("do") == "submit"
    if is_submitted and not edit.arguments.have_values():
        return None
    space = edit.arguments.space()
    if space and not edit.form.has_objective(values):
        return None
    spec = spec_from(edit.before, values, edit.arguments.arguments(), space)
    edit.form.searched = [row["name"] for row in spec_part(spec, "search").get("space", ())]
    save = _submit_spec if is_submitted else _save_draft
    try:
        return save(edit, values, spec)
    except StaleState:
        if edit.experiment is None or edit.on_conflict is None:
            raise
        entries = {name: values[name] for name in METADATA}
        entries |= {"spec": json.dumps(spec, indent=2), "version": values["seen"]}
        return edit.on_conflict(edit.request, edit.experiment, entries, spec)


def _read_metadata(values: Json) -> Json:
    return {"name": values["name"], "tags": values["tags"].split(","), "notes": values["notes"]}


def _seen_version(values: Json) -> int | None:
    return int(values["seen"]) if values["seen"].isdecimal() else None


def _submit_spec(edit: _Edit, values: Json, spec: Json) -> HttpResponse:
    job = actions.submit_spec(
        edit.project,
        edit.experiment,
        spec=spec,
        seen=_seen_version(values),
        by=edit.request.user,
        **_read_metadata(values),
    )
    notify(edit.request, f"Job {job.pk} is queued.")
    return redirect("job", job.pk)


def _save_draft(edit: _Edit, values: Json, spec: Json) -> HttpResponse:
    experiment, by = edit.experiment, edit.request.user
    if experiment is None:
        experiment = actions.create(edit.project, draft=spec, by=by, **_read_metadata(values))
    else:
        actions.change(experiment, draft=spec, seen=_seen_version(values), by=by, **_read_metadata(values))
    notify(edit.request, "The draft is saved.")
    return redirect("experiment_edit", edit.project.slug, experiment.pk)


@page
def helper(request: Request) -> HttpResponse:
    """Send the module with which scripts report, for runs elsewhere."""
    del request
    named = {"Content-Disposition": f'attachment; filename="{HELPER.name}"'}
    return HttpResponse(HELPER.read_bytes(), content_type="text/x-python", headers=named)


urls = [
    path("p/<slug:project>/code/<slug:code>/run", new, name="script_run"),
    path("help/trainyard_report.py", helper, name="script_helper"),
]
