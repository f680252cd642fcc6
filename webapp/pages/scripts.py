"""Shows the form that runs a script of a version of code, or searches over its arguments."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions import experiments as actions
from jobs.contracts.code import CodeEntry
from jobs.models import CodeVersion, Experiment, Project
from jobs.queries import code as code_queries
from jobs.queries import datasets
from webapp.forms.script.arguments import ArgumentFormSet, ArgumentRows, rows_of
from webapp.forms.script.script import ScriptForm, initial_values, part, spec_from
from webapp.pages.shortcuts import Request, crumbs, form_page, notify, page, redirect, render, url

HELPER = Path(settings.BASE_DIR) / "workers" / "script_helper" / "trainyard_report.py"
Json = dict[str, Any]


@form_page
def new(request: Request, project: str, code: str) -> HttpResponse:
    """Create an experiment with a script of a version; `?entry=` names it."""
    home = access.get_project(request.user, project, Action.RUN_CODE)
    version = access.get_code(request.user, code, home)
    entry = request.GET.get("entry") or next(iter(_scripts(version)), "")
    spec = {"model": {"kind": "script", "digest": version.digest, "entry": entry}}
    return _edit(request, version, None, spec, name=entry.rpartition("/")[2].removesuffix(".py"))


def edit(request: Request, experiment: Experiment, spec: Json) -> HttpResponse:
    """Revise an experiment with a script: its draft if there is one, else its newest revision."""
    version = code_queries.of_draft(experiment.project, spec["model"].get("digest"))
    return _edit(request, version, experiment, spec, name=experiment.name)


def _edit(
    request: Request, version: CodeVersion, experiment: Experiment | None, spec: Json, *, name: str
) -> HttpResponse:
    project = version.project
    seen = "" if experiment is None else str(experiment.version)
    rows = datasets.listed(request.user, project).order_by("slug")
    initial = {**dict(initial_values(spec)), "name": name, "seen": seen}
    form = ScriptForm(code_queries.offered(version), rows, request.POST or None, initial=initial)
    arguments = ArgumentFormSet(
        request.POST or None, initial=_initial_rows(version, spec), prefix="arguments"
    )
    made = form.apply(lambda values: _save(request, project, experiment, spec, form, arguments, values))
    if made is not None:
        return made
    trail = [("Experiments", url("experiments", project.slug))]
    if experiment is not None:
        trail.append((experiment.name, url("experiment", project.slug, experiment.pk)))
    context = {
        "form": form,
        "arguments": arguments,
        "version": version,
        "project": project,
        "experiment": experiment,
        "scripts": _scripts(version),
        "may_run": access.can(request.user, project, Action.RUN_CODE),
        "crumbs": crumbs(*trail, "Edit" if experiment else "New"),
    }
    status = form.status if form.errors or arguments.total_error_count() else 200
    return render(request, "experiments/script.html", context, status=status)


def _initial_rows(version: CodeVersion, spec: Json) -> list[Json]:
    # A draft may have anything in place of them.
    model, search = part(spec, "model"), part(spec, "search")
    space = search.get("space")
    return rows_of(
        _found(version, str(model.get("entry", ""))),
        part(model, "args"),
        space if isinstance(space, list) else (),
    )


def _found(version: CodeVersion, entry: str) -> CodeEntry | None:
    module = entry.removeprefix("-m ").replace(".", "/") + ".py"
    paths = (entry, module)
    scripts = (each for each in version.found.entries if each.kind == "script")
    return next((each for each in scripts if each.path in paths), None)


def _scripts(version: CodeVersion) -> list[str]:
    """Return the scripts of a version, and then its other Python files."""
    found = [entry.path for entry in version.found.entries if entry.kind == "script"]
    others = [file.path for file in code_queries.files_of(version) if file.path.endswith(".py")]
    return list(dict.fromkeys([*found, *others]))


def _save(
    request: Request,
    project: Project,
    experiment: Experiment | None,
    before: Json,
    form: ScriptForm,
    arguments: ArgumentRows,
    values: Json,
) -> HttpResponse | None:
    """Submit the experiment, or save it as a draft; None if an argument is not valid."""
    if not arguments.is_valid():
        return None
    space = arguments.space()
    if space and not form.has_objective(values):
        return None
    spec = spec_from(before, values, arguments.arguments(), space)
    seen = int(values["seen"]) if values["seen"].isdecimal() else None
    kept = _kept(experiment)
    if request.POST.get("do") == "submit":
        job = actions.submit_spec(
            project, experiment, name=values["name"], spec=spec, seen=seen, by=request.user, **kept
        )
        notify(request, f"Job {job.pk} is queued.")
        return redirect("job", job.pk)
    return _save_draft(request, project, experiment, values["name"], spec, seen)


def _kept(experiment: Experiment | None) -> Json:
    """Return tags and notes, which the page of the experiment changes."""
    if experiment is None:
        return {"tags": [], "notes": ""}
    return {"tags": experiment.tags, "notes": experiment.notes}


def _save_draft(
    request: Request, project: Project, experiment: Experiment | None, name: str, spec: Json, seen: int | None
) -> HttpResponse:
    if experiment is None:
        experiment = actions.create(project, name=name, draft=spec, by=request.user)
    else:
        actions.change(experiment, name=name, draft=spec, seen=seen, by=request.user)
    notify(request, "The draft is saved.")
    return redirect("experiment_edit", project.slug, experiment.pk)


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
