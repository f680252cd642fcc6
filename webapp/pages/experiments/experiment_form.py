"""Shows the form that creates and revises experiments. It calls the same actions as the API."""

import json
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.experiments import experiments as actions
from jobs.errors import BadInput, StaleState, TrainyardError
from jobs.models import Experiment, ModelVersion, Project
from jobs.queries.data import code_data
from jobs.queries.experiments import experiments as queries
from jobs.spec.formats.importing import READERS
from jobs.spec.plan import names
from jobs.spec.problems import Problem
from jobs.spec.sections.version_model import VERSION
from jobs.spec.templates import TEMPLATES
from webapp.forms.experiments.experiment import advice, conflict, rows, start
from webapp.forms.experiments.experiment.sections import SECTIONS
from webapp.forms.experiments.script.script import is_script
from webapp.http_errors import Malformed
from webapp.json_text import read_json
from webapp.pages.experiments import scripts
from webapp.pages.experiments.experiments import in_project
from webapp.pages.shortcuts import (
    Request,
    crumbs,
    form_page,
    notify,
    problems_of,
    redirect,
    render,
    url,
)

Json = dict[str, Any]
OVERWRITES = "overwrites"
"""The field of the page that compares two versions: the version that saving there replaces."""
_VERBS = {
    "experiment.archive": "archived the experiment",
    "experiment.unarchive": "unarchived the experiment",
}
_SAVED = "The draft is saved."
_SAVED_OVER = "The draft is saved. It replaced the version that was saved meanwhile."


@form_page
def new(request: Request, project: str) -> HttpResponse:
    """Create an experiment; the address may set the initial values.

    They are `?dataset=&version=&template=`, `&code=&entry=`, or `?base=model/number` for a version that is
    trained further.
    """
    home = access.get_project(request.user, project, Action.WRITE)
    if request.method == "POST":
        return _save_or_submit(request, home, None)
    base = _base_version(request)
    known = base.lineage if base is not None else _loaded_by_code(home, request.GET.get("code", ""))
    slug, number, profile = start.initial_data(
        request.user,
        home,
        request.GET.get("dataset", str(known.get("dataset", ""))),
        request.GET.get("version", str(known.get("dataset_version", ""))),
    )
    if digest := request.GET.get("code"):
        spec = start.spec_of_code(slug, number, profile, digest, request.GET.get("entry", ""))
    else:
        spec = start.starting_spec(slug, number, profile, request.GET.get("template", ""), base)
    name = names.free_name(names.name_experiment(spec), queries.newest_names(home))
    return _show(request, home, None, {"name": name, "spec": _text(spec)})


def _loaded_by_code(project: Project, digest: str) -> Json:
    """Return the data set that a version of code has loaded, for the initial values; empty for none."""
    found = code_data.newest_versions(project).get(digest) if digest else None
    return {"dataset": found.dataset.slug, "dataset_version": found.number} if found is not None else {}


def _base_version(request: Request) -> ModelVersion | None:
    """Return the version that the address asks to train further; None if it names none that can be."""
    name, _, number = request.GET.get("base", "").rpartition("/")
    if not (number.isdecimal() and len(number) < 10):
        return None
    rows = access.visible_versions(request.user).filter(state=ModelVersion.State.CANDIDATE)
    return rows.filter(model__name=name, number=int(number)).select_related("model").first()


@form_page
def edit(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Revise an experiment: its draft if there is one, else its newest revision."""
    experiment = in_project(request, project, id, Action.WRITE)
    if request.POST.get("do") == "reload":
        return redirect("experiment_edit", project, id)
    saved = conflict.saved_version(experiment)
    if is_script(saved["spec"]) and OVERWRITES not in request.POST:
        return scripts.edit(request, experiment, saved, on_conflict=_show_conflict)
    if request.method == "POST":
        return _save_or_submit(request, experiment.project, experiment)
    given = {**saved, "spec": _text(saved["spec"]), "version": str(experiment.version)}
    return _show(request, experiment.project, experiment, given)


def _save_or_submit(request: Request, project: Project, experiment: Experiment | None) -> HttpResponse:
    given = {name: request.POST.get(name, "") for name in ("name", "tags", "notes", "version", "spec")}
    try:
        spec = _parse_spec(given["spec"])
        if experiment is not None and OVERWRITES in request.POST:
            return _decide(request, experiment, given, spec)
        return _save_as_asked(request, project, experiment, given, spec)
    except TrainyardError as error:
        # The form is shown with the user's input, which an error page would lose.
        return _show(request, project, experiment, given, problems=problems_of(error), status=error.status)


def _save_as_asked(
    request: Request, project: Project, experiment: Experiment | None, given: Json, spec: Any
) -> HttpResponse:
    save = _submit if request.POST.get("do") == "submit" else _save
    try:
        return save(request, project, experiment, given, spec)
    except StaleState:
        if experiment is None:
            raise
        return _show_conflict(request, experiment, given, spec)


def _show_conflict(request: Request, experiment: Experiment, given: Json, spec: Any) -> HttpResponse:
    """Compare the form with the version that was saved meanwhile, and ask which of them to keep."""
    experiment.refresh_from_db()
    mine = conflict.document(name=given["name"], tags=given["tags"], notes=given["notes"], spec=spec)
    mine, saved = conflict.comparable(experiment, mine), conflict.saved_version(experiment)
    if mine == saved:  # nothing would be lost
        given["version"] = str(experiment.version)
        return _save_as_asked(request, experiment.project, experiment, given, spec)
    project = experiment.project
    own = (experiment.name, url("experiment", project.slug, experiment.pk))
    context = {
        "experiment": experiment,
        "project": project,
        "changes": conflict.changes(saved, mine),
        "given": given,
        "saved_spec": _text(saved["spec"]),
        "newest": experiment.revisions.order_by("-number").first() if experiment.draft is None else None,
        "last": (last := queries.last_change(experiment)),
        "verb": _VERBS.get(last.action if last is not None else "", "saved another version"),
        "submits": request.POST.get("do") == "submit",
        "crumbs": crumbs(("Experiments", url("experiments", project.slug)), own, "Compare"),
    }
    return render(request, "experiments/conflict.html", context, status=HTTPStatus.CONFLICT)


def _decide(request: Request, experiment: Experiment, given: Json, spec: Any) -> HttpResponse:
    """Save over the version that was compared, or show the refused entries in the form again."""
    if request.POST.get("do") == "edit":
        # They keep the version that the form was opened with, so that saving compares again.
        if is_script(spec):
            mine = {**given, "spec": spec}
            return scripts.edit(request, experiment, mine, on_conflict=_show_conflict, is_unsaved=True)
        return _show(request, experiment.project, experiment, given, is_unsaved=True)
    given["version"] = request.POST[OVERWRITES]
    return _save_as_asked(request, experiment.project, experiment, given, spec)


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
    seen = given["version"]
    # A digit of another script, such as ², is no decimal, and Python refuses numbers of thousands of digits.
    return int(seen) if seen.isdecimal() and len(seen) < 10 else None


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
    notify(request, _SAVED_OVER if OVERWRITES in request.POST else _SAVED)
    return redirect("experiment_edit", project.slug, experiment.pk)


def _show(
    request: Request,
    project: Project,
    experiment: Experiment | None,
    given: Json,
    *,
    problems: tuple[Problem, ...] = (),
    is_unsaved: bool = False,
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
        "is_unsaved": is_unsaved or bool(problems),
        "sections": SECTIONS,
        "space_kinds": rows.SPACE,
        "layout_fields": rows.LAYOUT,
        "override_fields": rows.OVERRIDES,
        "objective_fields": rows.OBJECTIVES,
        "templates": [*TEMPLATES.values(), VERSION],
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
