"""Changes a running search, and previews the effect of a change."""

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.search import search_changes
from jobs.errors import BadInput, Conflict
from jobs.models import Job
from webapp.forms.search.search_changes import ReviseForm
from webapp.pages.runs.jobs import job_page, may_revise
from webapp.pages.shortcuts import Request, action, form_page, notify, redirect, render


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
            made = search_changes.revise_search(
                row, form.changes, by=request.user, seen=seen, comment=comment
            )
        except (BadInput, Conflict) as error:
            row.refresh_from_db()
            if not may_revise(row):  # it has ended, and its page has no form any more
                notify(request, error.message, level="error")
                return redirect("job", row.pk)
            form.add_problems(error)
            status = error.status
        else:
            notify(request, f"Job {row.pk} continues with revision {made.number}.")
            return redirect("job", row.pk)
    else:
        _preview(row, form)
    return job_page(request, row, "overview", status=status, revise_form=form)


@action
def preview(request: Request, job_id: int) -> HttpResponse:
    """Preview the change in the form, without saving it."""
    row = access.get_job(request.user, job_id, Action.WRITE)
    form = ReviseForm(row, request.POST)
    form.is_valid()
    change = _preview(row, form)
    return render(request, "search/search_change_plan.html", {"form": form, "change": change})


def _preview(row: Job, form: ReviseForm) -> search_changes.Change | None:
    """Preview the valid part of the form, and add the problems of the rest to the form."""
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
