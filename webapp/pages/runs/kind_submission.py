"""Shows the form that submits a job of one kind. The input schema of the kind defines its fields."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path, reverse

from jobs.actions.runs.kind_submission import submit_kind
from jobs.errors import BadInput, NotFound
from jobs.kinds.base import Facts
from jobs.kinds.inputs import submittable_kinds
from webapp.forms.runs.kind_submission import KindForm
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    crumbs,
    form_page,
    notify,
    redirect,
    render_page,
    writable_projects,
)
from webapp.template_context import Context


@dataclass(frozen=True)
class NewJobPage(Context):
    """The form that submits a job of one kind."""

    form: KindForm
    facts: Facts
    crumbs: Crumbs


@form_page
def new(request: Request, kind: str) -> HttpResponse:
    """Submit a job of one kind."""
    facts = next((facts for facts in submittable_kinds() if facts.name == kind), None)
    if facts is None:
        raise NotFound(f"There is no form for jobs of kind {kind}.")
    form = KindForm(request.POST or None, facts=facts, projects=writable_projects(request.user))
    if form.is_valid():
        try:
            job = submit_kind(form.cleaned_data["project"], kind, form.payload(), by=request.user)
        except BadInput as error:
            form.add_problems(tuple(error.problems), error.message)
        else:
            notify(request, f"Job {job.pk} is queued.")
            return redirect("job", job.pk)
    context = NewJobPage(form=form, facts=facts, crumbs=crumbs(("Jobs", reverse("jobs")), facts.title))
    return render_page(request, "runs/kind_submission.html", context, status=422 if form.errors else 200)


# Without such kinds there is no form to show.
urls = [path("jobs/new/<slug:kind>", new, name="job_new")] if submittable_kinds() else []
