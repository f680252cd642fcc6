"""Kills a job's runner in a demo, so that people see how its trial resumes."""

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.errors import Conflict
from webapp.demo import runners
from webapp.pages.shortcuts import Request, action, notify, redirect
from webapp.templatetags.problem_labels import message_of


@action
def kill_runner(request: Request, job_id: int) -> HttpResponse:
    """Kill the process that trains a trial in this job; only in a demo."""
    row = access.get_job(request.user, job_id)
    try:
        killed = runners.kill_runner(row, by=request.user)
    except Conflict as error:
        notify(request, message_of(error), level="error")
        return redirect("job", row.pk)
    what = f"trial {killed.trial}" if killed.trial is not None else f"job {row.pk}"
    notify(
        request,
        f"Process {killed.pid} of {what} is killed. "
        "This page shows from which epoch it resumes, and with which weights.",
    )
    return redirect("job", row.pk)


urls = [path("jobs/<int:job_id>/kill-runner", kill_runner, name="demo_kill_runner")]
