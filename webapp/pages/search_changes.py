"""Changing a search while it runs: the dialog of its page, and what the change would come to."""

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions import search_changes
from jobs.errors import BadInput
from jobs.models import Job
from webapp.forms.search_changes import ReviseForm
from webapp.pages.jobs import job_page
from webapp.pages.shortcuts import Request, action, form_page, go, render, say


@form_page
def revise_job(request: Request, job_id: int) -> HttpResponse:
    """Change a search; a refused form is shown again in its dialog."""
    row = access.get_job(request.user, job_id, Action.WRITE)
    if request.method != "POST":
        return go("job", row.pk)
    form = ReviseForm(row, request.POST)
    if form.is_valid():
        seen, comment = form.cleaned_data["revision"], form.cleaned_data["comment"]
        try:
            made = search_changes.revise(row, form.sent, by=request.user, seen=seen, comment=comment)
        except BadInput as error:
            form.refused(error)
        else:
            say(request, f"Job {row.pk} goes on with revision {made.number}.")
            return go("job", row.pk)
    else:
        _weigh(row, form)
    return job_page(request, row, "overview", status=422, revise_form=form)


@action
def preview(request: Request, job_id: int) -> HttpResponse:
    """Say what the change in the form would come to; changes nothing."""
    row = access.get_job(request.user, job_id, Action.WRITE)
    form = ReviseForm(row, request.POST)
    form.is_valid()
    change = _weigh(row, form)
    return render(request, "jobs/search_change_plan.html", {"form": form, "change": change})


def _weigh(row: Job, form: ReviseForm) -> search_changes.Change | None:
    """Return what the readable part of a form would come to; the form says what of it does not hold."""
    if form.sent:
        try:
            return search_changes.preview(row, form.sent)
        except BadInput as error:
            form.refused(error)
    return None


urls = [
    path("jobs/<int:job_id>/revise", revise_job, name="job_revise"),
    path("jobs/<int:job_id>/revise/preview", preview, name="job_revise_preview"),
]
