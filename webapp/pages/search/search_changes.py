"""Changes a running search, and previews a change's effect."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.search import search_changes
from jobs.errors import BadInput, Conflict
from jobs.models import Job
from webapp.forms.search.search_changes import ReviseForm
from webapp.pages.runs.job_commands import may_revise
from webapp.pages.runs.jobs import job_page
from webapp.pages.shortcuts import Request, action, form_page, notify, redirect, render_page
from webapp.template_context import Context
from webapp.templatetags.problem_labels import message_of


@form_page
def revise_job(request: Request, job_id: int) -> HttpResponse:
    """Change a search; an invalid form is shown again in its dialog."""
    row = access.get_job(request.user, job_id, Action.WRITE)
    if request.method != "POST":
        return redirect("job", row.pk)
    form, status = ReviseForm(row, request.POST), 422
    if form.is_valid():
        seen, comment = form.cleaned_data["revision"], form.cleaned_data["comment"]
        try:
            revision = search_changes.revise_search(
                row, form.changes, by=request.user, seen=seen, comment=comment
            )
        except (BadInput, Conflict) as error:
            row.refresh_from_db()
            if not may_revise(row):  # it has ended, and its page has no form any more
                notify(request, message_of(error), level="error")
                return redirect("job", row.pk)
            form.add_problems(error)
            status = error.status
        else:
            notify(request, f"Job {row.pk} continues with revision {revision.number}.")
            return redirect("job", row.pk)
    else:
        _preview_change(row, form)
    return job_page(request, row, "overview", status=status, revise_form=form)


@dataclass(frozen=True)
class ChangePlan(Context):
    """The effect that a change has on a search."""

    form: ReviseForm
    change: search_changes.Change | None


@action
def preview(request: Request, job_id: int) -> HttpResponse:
    """Preview the change in the form, without saving it."""
    row = access.get_job(request.user, job_id, Action.WRITE)
    form = ReviseForm(row, request.POST)
    form.is_valid()
    change = _preview_change(row, form)
    return render_page(request, "search/search_change_plan.html", ChangePlan(form=form, change=change))


def _preview_change(row: Job, form: ReviseForm) -> search_changes.Change | None:
    """Preview the valid entries, and add the problems with others to the form."""
    if form.changes:
        try:
            return search_changes.preview_change(row, form.changes)
        except BadInput as error:
            form.add_problems(error)
    return None


urls = [
    path("jobs/<int:job_id>/revise", revise_job, name="job_revise"),
    path("jobs/<int:job_id>/revise/preview", preview, name="job_revise_preview"),
]
