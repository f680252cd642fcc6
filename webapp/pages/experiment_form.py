"""Shows the form that creates and revises experiments. It calls the same actions as the API."""

import json
from typing import Any

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions import experiments as actions
from jobs.contracts.formats.importing import READERS
from jobs.contracts.problems import Problem
from jobs.contracts.templates import TEMPLATES
from jobs.errors import BadInput, TrainyardError
from jobs.models import Experiment, Project
from webapp.forms.experiment import advice, rows, start
from webapp.forms.experiment.sections import SECTIONS
from webapp.http_errors import Malformed
from webapp.json_text import read_json
from webapp.pages.experiments import in_project
from webapp.pages.shortcuts import Request, crumbs, form_page, notify, problems_of, redirect, render, url

Json = dict[str, Any]


@form_page
def new(request: Request, project: str) -> HttpResponse:
    """Create an experiment; `?dataset=&version=&template=` set the initial values."""
    home = access.get_project(request.user, project, Action.WRITE)
    if request.method == "POST":
        return _save_or_submit(request, home, None)
    slug, number, profile = start.initial_data(
        request.user, home, request.GET.get("dataset", ""), request.GET.get("version", "")
    )
    spec = start.starting_spec(slug, number, profile, request.GET.get("template", ""))
    return _show(request, home, None, {"name": f"{slug} search", "spec": _text(spec)})


@form_page
def edit(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Revise an experiment: its draft if there is one, else its newest revision."""
    experiment = in_project(request, project, id, Action.WRITE)
    if request.method == "POST":
        return _save_or_submit(request, experiment.project, experiment)
    newest = experiment.revisions.order_by("-number").first()
    spec = experiment.draft if experiment.draft is not None else newest.spec_json if newest else {}
    given = {
        "name": experiment.name,
        "tags": ", ".join(experiment.tags),
        "notes": experiment.notes,
        "version": experiment.version,
        "spec": _text(spec),
    }
    return _show(request, experiment.project, experiment, given)


def _save_or_submit(request: Request, project: Project, experiment: Experiment | None) -> HttpResponse:
    given = {name: request.POST.get(name, "") for name in ("name", "tags", "notes", "version", "spec")}
    try:
        spec = _parse_spec(given["spec"])
        if request.POST.get("do") == "submit":
            return _submit(request, project, experiment, given, spec)
        return _save(request, project, experiment, given, spec)
    except TrainyardError as error:
        # The form is shown with the user's input, which an error page would lose.
        return _show(request, project, experiment, given, problems=problems_of(error), status=error.status)


def _parse_spec(text: str) -> Any:
    try:
        return read_json(text.encode())
    except Malformed as error:
        raise BadInput(error.message, [Problem("/spec", error.message)]) from error
    except BadInput as error:
        problems = [Problem(f"/spec{each.pointer}", each.message) for each in error.problems]
        raise BadInput(error.message, problems) from error


def _metadata(given: Json) -> Json:
    return {"name": given["name"], "notes": given["notes"], "tags": given["tags"].split(",")}


def _seen_version(given: Json) -> int | None:
    return int(given["version"]) if given["version"].isdigit() else None


def _submit(
    request: Request, project: Project, experiment: Experiment | None, given: Json, spec: Any
) -> HttpResponse:
    job = actions.submit_spec(
        project, experiment, spec=spec, seen=_seen_version(given), by=request.user, **_metadata(given)
    )
    notify(request, f"Job {job.pk} is queued.")
    return redirect("job", job.pk)


def _save(
    request: Request, project: Project, experiment: Experiment | None, given: Json, spec: Any
) -> HttpResponse:
    if experiment is None:
        experiment = actions.create(project, draft=spec, by=request.user, **_metadata(given))
    else:
        actions.change(experiment, draft=spec, seen=_seen_version(given), by=request.user, **_metadata(given))
    notify(request, "The draft is saved.")
    return redirect("experiment_edit", project.slug, experiment.pk)


def _show(
    request: Request,
    project: Project,
    experiment: Experiment | None,
    given: Json,
    *,
    problems: tuple[Problem, ...] = (),
    status: int = 200,
) -> HttpResponse:
    trail = [("Experiments", url("experiments", project.slug))]
    if experiment is not None:
        trail.append((experiment.name, url("experiment", project.slug, experiment.pk)))
    context = {
        "project": project,
        "experiment": experiment,
        "given": given,
        "problems": problems,
        "sections": SECTIONS,
        "space_kinds": rows.SPACE,
        "layout_fields": rows.LAYOUT,
        "override_fields": rows.OVERRIDES,
        "objective_fields": rows.OBJECTIVES,
        "templates": TEMPLATES.values(),
        "formats": advice.FORMATS,
        "import_formats": READERS.items(),
        "known": {
            **start.context_for_browser(request.user, project),
            "experiment": experiment.pk if experiment is not None else None,
        },
        "crumbs": crumbs(*trail, "Edit" if experiment else "New"),
    }
    return render(request, "experiments/form.html", context, status=status)


def _text(spec: Any) -> str:
    return json.dumps(spec, indent=2)


urls = [
    path("p/<slug:project>/experiments/new", new, name="experiment_new"),
    path("p/<slug:project>/experiments/<int:id>/edit", edit, name="experiment_edit"),
]
