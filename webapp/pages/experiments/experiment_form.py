"""Shows the form that creates and revises experiments. It calls the same actions as the API."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.experiments import experiments as actions
from jobs.errors import BadInput, StaleState, TrainyardError
from jobs.models import AuditEvent, Experiment, ModelVersion, Project, Revision
from jobs.queries.code import code as code_queries
from jobs.queries.data import code_data, datasets
from jobs.queries.experiments import experiments as queries
from jobs.queries.experiments.experiments import Difference
from jobs.spec.plan import names
from jobs.spec.problems import Problem
from webapp.forms.experiments.experiment import conflict, start
from webapp.forms.experiments.script.spec import is_script
from webapp.http_errors import Malformed
from webapp.json_text import read_json
from webapp.pages.experiments import scripts
from webapp.pages.experiments.experiment_form_page import show_form, spec_text
from webapp.pages.experiments.experiment_lookup import experiment_in_project
from webapp.pages.experiments.opened_settings import OpenedSettings, opened_settings
from webapp.pages.experiments.target_doubts import doubts_on
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    crumbs,
    form_page,
    notify,
    problems_of,
    redirect,
    render_page,
    url,
)
from webapp.template_context import Context
from webapp.whole_numbers import read_whole

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
    digest = request.GET.get("code", "")
    data = base.lineage if base is not None else _loaded_by_code(home, digest)
    last_used = "" if data or "dataset" in request.GET else code_queries.last_dataset(home, digest)
    data = data or {"dataset": last_used}
    wanted = request.GET.get("dataset", str(data.get("dataset", "")))
    slug, number, profile = start.initial_data(
        request.user,
        home,
        wanted,
        request.GET.get("version", str(data.get("dataset_version", ""))),
        # Code fits data of one shape: a build for data that were not chosen may fail.
        proposes="nothing" if digest else "any",
    )
    if digest:
        entry = request.GET.get("entry", "")
        search = code_queries.described_search(home, digest, entry)
        spec = start.spec_of_code(slug, number, profile, digest, entry, search)
    else:
        spec = start.starting_spec(slug, number, profile, request.GET.get("template", ""), base)
    name = names.free_name(names.name_experiment(spec), queries.newest_names(home))
    version = datasets.find_version(home, slug, number) if profile is not None else None
    entries = {"name": name, "spec": spec_text(spec)}
    return show_form(
        request,
        home,
        None,
        entries,
        is_data_chosen=bool(wanted) and slug == wanted,
        last_used=last_used,
        doubts=doubts_on(version),
    )


def _loaded_by_code(project: Project, digest: str) -> Json:
    """Return the data set that a code version has loaded, for the initial values; empty for none."""
    version = code_data.newest_versions(project).get(digest) if digest else None
    return {"dataset": version.dataset.slug, "dataset_version": version.number} if version is not None else {}


def _base_version(request: Request) -> ModelVersion | None:
    """Return the version that the address asks to train further; None if it names none that can be."""
    name, _, number = request.GET.get("base", "").rpartition("/")
    if (version := read_whole(number)) is None:
        return None
    rows = access.visible_versions(request.user).filter(state=ModelVersion.State.CANDIDATE)
    return rows.filter(model__name=name, number=version).select_related("model").first()


@form_page
def edit(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Revise an experiment: its draft if there is one, else its newest revision.

    `?job=` opens the settings of one of its jobs, and `?revision=` those of a revision.
    """
    experiment = experiment_in_project(request, project, id, Action.WRITE)
    if request.POST.get("do") == "reload":
        return redirect("experiment_edit", project, id)
    saved = conflict.saved_version(experiment)
    opened = opened_settings(request, experiment)
    if opened is not None:
        saved = {**saved, "spec": opened.revision.spec_json}
    if is_script(saved["spec"]) and OVERWRITES not in request.POST:
        return scripts.edit(request, experiment, saved, on_conflict=_show_conflict, opened=opened)
    if request.method == "POST":
        return _save_or_submit(request, experiment.project, experiment, opened)
    entries = {**saved, "spec": spec_text(saved["spec"]), "version": str(experiment.version)}
    is_unsaved = opened is not None and not opened.is_shown_anyway
    return show_form(request, experiment.project, experiment, entries, is_unsaved=is_unsaved, opened=opened)


def _save_or_submit(
    request: Request, project: Project, experiment: Experiment | None, opened: OpenedSettings | None = None
) -> HttpResponse:
    entries = {name: request.POST.get(name, "") for name in ("name", "tags", "notes", "version", "spec")}
    try:
        spec = _parse_spec(entries["spec"])
        if experiment is not None and OVERWRITES in request.POST:
            return _resolve_conflict(request, experiment, entries, spec, opened)
        return _save_as_asked(request, project, experiment, entries, spec)
    except TrainyardError as error:
        # The form is shown with the user's input, which an error page would lose.
        return show_form(
            request,
            project,
            experiment,
            entries,
            problems=problems_of(error),
            status=error.status,
            opened=opened,
        )


def _save_as_asked(
    request: Request, project: Project, experiment: Experiment | None, entries: Json, spec: Any
) -> HttpResponse:
    save = _submit_spec if request.POST.get("do") == "submit" else _save_draft
    try:
        return save(request, project, experiment, entries, spec)
    except StaleState:
        if experiment is None:
            raise
        return _show_conflict(request, experiment, entries, spec)


@dataclass(frozen=True)
class ConflictPage(Context):
    """The form beside the version that was saved meanwhile."""

    experiment: Experiment
    project: Project
    changes: list[Difference]
    entries: Json
    saved_spec: str
    newest: Revision | None
    last: AuditEvent | None
    verb: str
    submits: bool
    crumbs: Crumbs


def _show_conflict(request: Request, experiment: Experiment, entries: Json, spec: Any) -> HttpResponse:
    """Compare the form with the version that was saved meanwhile, and ask which one to keep."""
    experiment.refresh_from_db()
    mine = conflict.form_document(
        name=entries["name"], tags=entries["tags"], notes=entries["notes"], spec=spec
    )
    mine, saved = conflict.comparable_document(experiment, mine), conflict.saved_version(experiment)
    if mine == saved:  # nothing would be lost
        entries["version"] = str(experiment.version)
        return _save_as_asked(request, experiment.project, experiment, entries, spec)
    project = experiment.project
    experiment_link = (experiment.name, url("experiment", project.slug, experiment.pk))
    context = ConflictPage(
        experiment=experiment,
        project=project,
        changes=conflict.list_changes(saved, mine),
        entries=entries,
        saved_spec=spec_text(saved["spec"]),
        newest=experiment.revisions.order_by("-number").first() if experiment.draft is None else None,
        last=(last := queries.last_change(experiment)),
        verb=_VERBS.get(last.action if last is not None else "", "saved another version"),
        submits=request.POST.get("do") == "submit",
        crumbs=crumbs(("Experiments", url("experiments", project.slug)), experiment_link, "Compare"),
    )
    return render_page(request, "experiments/conflict.html", context, status=HTTPStatus.CONFLICT)


def _resolve_conflict(
    request: Request, experiment: Experiment, entries: Json, spec: Any, opened: OpenedSettings | None
) -> HttpResponse:
    """Save over the version that was compared, or show the refused entries in the form again."""
    if request.POST.get("do") == "edit":
        # They keep the version that the form was opened with, so that saving compares again.
        if is_script(spec):
            mine = {**entries, "spec": spec}
            return scripts.edit(
                request, experiment, mine, on_conflict=_show_conflict, is_unsaved=True, opened=opened
            )
        return show_form(request, experiment.project, experiment, entries, is_unsaved=True, opened=opened)
    entries["version"] = request.POST[OVERWRITES]
    return _save_as_asked(request, experiment.project, experiment, entries, spec)


def _parse_spec(text: str) -> Any:
    try:
        return read_json(text.encode())
    except Malformed as error:
        raise BadInput(error.message, [Problem("/spec", error.message)]) from error
    except BadInput as error:
        problems = [Problem(f"/spec{problem.pointer}", problem.message) for problem in error.problems]
        raise BadInput(error.message, problems) from error


def _read_metadata(entries: Json) -> Json:
    return {"name": entries["name"], "notes": entries["notes"], "tags": entries["tags"].split(",")}


def _seen_version(entries: Json) -> int | None:
    return read_whole(entries["version"])


def _submit_spec(
    request: Request, project: Project, experiment: Experiment | None, entries: Json, spec: Any
) -> HttpResponse:
    job = actions.submit_spec(
        project,
        experiment,
        spec=spec,
        seen=_seen_version(entries),
        by=request.user,
        **_read_metadata(entries),
    )
    notify(request, f"Job {job.pk} is queued.")
    return redirect("job", job.pk)


def _save_draft(
    request: Request, project: Project, experiment: Experiment | None, entries: Json, spec: Any
) -> HttpResponse:
    if experiment is None:
        experiment = actions.create(project, draft=spec, by=request.user, **_read_metadata(entries))
    else:
        actions.change(
            experiment, draft=spec, seen=_seen_version(entries), by=request.user, **_read_metadata(entries)
        )
    if request.POST.get("do") == "design":
        return redirect(url("mesh", experiment=experiment.pk))
    notify(request, _SAVED_OVER if OVERWRITES in request.POST else _SAVED)
    return redirect("experiment_edit", project.slug, experiment.pk)


urls = [
    path("p/<slug:project>/experiments/new", new, name="experiment_new"),
    path("p/<slug:project>/experiments/<int:id>/edit", edit, name="experiment_edit"),
]
