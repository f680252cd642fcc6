"""Shows the mesh designer, at `/mesh?…`. Its address carries the whole design."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.errors import BadInput
from jobs.models import Experiment, Project
from jobs.queries.experiments.mesh_design import Subject, read_subject
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.templates import TEMPLATES
from jobs.spec.templates.info import TemplateInfo
from webapp.forms.experiments.mesh_design.view_entries import ViewEntries, read_settings
from webapp.pages.experiments.mesh_design.builds import start_build
from webapp.pages.experiments.mesh_design.design_page import mesh_page
from webapp.pages.experiments.mesh_design.saving import save_design
from webapp.pages.experiments.mesh_design.sources import Source, find_source
from webapp.pages.experiments.mesh_design.state import State, design_link, read_state
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    crumbs,
    form_page,
    is_partial,
    notify,
    redirect,
    render_page,
    url,
)
from webapp.template_context import Context
from webapp.whole_numbers import read_whole

NEWEST = 12


@dataclass(frozen=True)
class MeshStartPage(Context):
    """The designer before a model is chosen."""

    project: Project | None
    experiments: Sequence[Experiment]
    templates: Sequence[TemplateInfo]
    crumbs: Crumbs


@form_page
def designer(request: Request) -> HttpResponse:
    """Show a design; a form with another one is answered by the page that shows it."""
    values = request.POST if request.method == "POST" else request.GET
    source = find_source(request.user, values)
    if source is None:
        return _show_start(request)
    subject = read_subject(source.project, source.body, by=request.user, experiment=source.experiment)
    view = ViewEntries.read(values)
    if request.method == "POST" and "pick" in request.POST:
        view = replace(view, variable=request.POST["pick"])
    state = read_state(request, source, subject, view)
    command = request.POST.get("do", "")
    if command == "use" and state.mesh is not None and not state.problems:
        return _use(request, source, subject, view, state.mesh)
    if command == "build" and subject.spec is not None:
        start_build(request.user, source, subject.spec)
        notify(request, "The model is being built.")
    return _respond(request, source, subject, view, state)


def _show_start(request: Request) -> HttpResponse:
    """List experiments and templates, in the project of the address or in the first one."""
    mine = access.projects_of(request.user).order_by("name")
    slug = request.GET.get("project", "")
    project = access.get_project(request.user, slug) if slug else mine.first()
    rows = access.visible_experiments(request.user).filter(project=project, archived=False)
    context = MeshStartPage(
        project=project,
        experiments=list(rows.order_by("-updated")[:NEWEST]) if project is not None else [],
        templates=[info for info in TEMPLATES.values() if info.layers is not None],
        crumbs=crumbs("Mesh designer"),
    )
    return render_page(request, "experiments/designer/start.html", context)


def _use(
    request: Request, source: Source, subject: Subject, view: ViewEntries, mesh: MeshSpec
) -> HttpResponse:
    """Write the design into the experiment, and open its form."""
    settings = read_settings(view, batch=0, kind=mesh.kind)
    if settings.problems:
        raise BadInput(settings.problems[0].message, settings.problems)
    size = subject.spec.fit.batch_size if subject.spec is not None else None
    saved = save_design(
        request.user,
        source,
        mesh,
        batch=settings.batch if settings.batch and settings.batch != size else None,
        seen=read_whole(request.POST.get("version", "")),
    )
    notify(request, " ".join(("The mesh is in the draft.", *saved.notes)))
    form = f"{url('experiment_edit', source.project.slug, saved.experiment.pk)}#mesh"
    # A fetched redirect would put the form's page into this one.
    return HttpResponse(headers={"HX-Redirect": form}) if is_partial(request) else redirect(form)


def _respond(
    request: Request, source: Source, subject: Subject, view: ViewEntries, state: State
) -> HttpResponse:
    link = "" if state.mesh is None else design_link(source, view, state.mesh, state.before, state.plan)
    is_posted = request.method == "POST"
    if is_posted and link and not is_partial(request) and not state.problems:
        return redirect(link)
    context = mesh_page(request, source, subject, view, state, link)
    status = BadInput.status if context.problems else 200
    template = "experiments/designer/page.html"
    response = render_page(request, template, context, partial="design", status=status)
    if is_posted and link and not context.problems:
        response["HX-Push-Url"] = link
    return response


urls = [path("mesh", designer, name="mesh")]
