"""Registers a model that a job produced as a model version."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions.registry import registration
from jobs.errors import BadInput, Conflict, NotFound
from jobs.models import Job, JobArtifact, Project
from jobs.queries.registry import registry
from jobs.queries.runs import jobs as shown
from webapp.forms.registry.registry import RegisterForm
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    crumbs,
    form_page,
    notify,
    redirect,
    render_page,
    url,
)
from webapp.template_context import Context


@dataclass(frozen=True)
class RegisterPage(Context):
    """The form that registers a job's model."""

    form: RegisterForm
    job: Job
    artifact: JobArtifact
    crumbs: Crumbs


@form_page
def register(request: Request, job_id: int, digest: str) -> HttpResponse:
    """Register a job's artifact as a version, in an existing model or a new one."""
    job = access.get_job(request.user, job_id, Action.WRITE)
    artifact = shown.newest_artifacts([job, *job.children.all()]).filter(role="model", artifact=digest).last()
    if artifact is None or job.project is None:
        raise NotFound(f"Job {job.pk} has no such model artifact.")
    names = registry.model_names(job.project)
    proposed = registry.model_name_for(job)
    is_known = proposed in names
    initial = {"model": proposed if is_known else "", "name": "" if is_known else registry.free_name(job)}
    form = RegisterForm(request.POST or None, models=names, initial=initial)
    if form.is_valid() and (made := _register_version(request, job.project, digest, form)) is not None:
        version = made.version
        notify(request, registration_message(made))
        return redirect("version", version.model.name, version.number)
    back = (job.title or f"Job {job.pk}", url("job", job.pk, tab="artifacts"))
    trail = crumbs(("Jobs", reverse("jobs")), back, "Register")
    context = RegisterPage(form=form, job=job, artifact=artifact, crumbs=trail)
    return render_page(request, "registry/register.html", context, status=422 if form.errors else 200)


def registration_message(made: registration.Registration) -> str:
    """Return the message after a registration."""
    version = made.version
    if made.is_new:
        return f"Version {version.number} of {version.model.name} is being validated."
    return f"This is {version} already, bit by bit: no further version was added."


def _register_version(
    request: Request, project: Project, digest: str, form: RegisterForm
) -> registration.Registration | None:
    """Return the version, or add the error to the form and return None."""
    entries, by = form.cleaned_data, request.user
    try:
        if entries["model"]:
            return registration.add_version(access.get_model(by, entries["model"]), digest, by=by)
        return registration.add_to_new_model(project, entries["name"], digest, by=by)
    except (BadInput, Conflict) as error:
        form.add_error("model" if entries["model"] else "name", error.message)
        return None


urls = [path("jobs/<int:job_id>/artifacts/<slug:digest>/register", register, name="job_register")]
