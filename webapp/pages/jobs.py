"""Jobs: the list, one job, and what is asked of it."""

from typing import Any

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions import control, submit
from jobs.contracts.answers.jobs import StepOut
from jobs.contracts.answers.results import ResultsOut
from jobs.errors import NotFound
from jobs.kinds import public_names
from jobs.kinds.inputs import submittable_kinds
from jobs.models import Job
from jobs.queries import jobs as shown
from jobs.queries import outcomes, paging, waiting
from jobs.states import FINAL, Desired, JobState
from webapp.forms.search_changes import ReviseForm
from webapp.pages import job_tabs as tabs
from webapp.pages.shortcuts import Request, action, chosen, crumbs, go, page, render, say, url

ORDERS = {
    "pause": (control.pause, "pauses at its next checkpoint"),
    "resume": (control.resume, "goes on"),
    "stop": (control.stop, "stops after a checkpoint"),
    "kill": (control.kill, "ends now"),
    "retry": (control.retry, "runs again what failed or was stopped"),
}


@page
def jobs(request: Request) -> HttpResponse:
    """List the jobs in sight; children stand on their root's page."""
    rows = shown.for_lists(access.visible_jobs(request.user))
    state = chosen(request.GET.get("state"), [str(s) for s in JobState], "")
    kind = chosen(request.GET.get("kind"), public_names(), "")
    # Unless asked for, children stand on their root's page alone, and profiles on their data set's.
    rows = rows.called(kind) if kind else rows.roots().listed()
    if state:
        rows = rows.filter(state=state)
    if project := request.GET.get("project"):
        rows = rows.filter(project__slug=project)
    listed = paging.page_of(rows, cursor=request.GET.get("cursor"))
    context = {
        "page": listed,
        "rows": list(zip(listed.items, shown.details(listed.items), strict=True)),
        "states": [str(s) for s in JobState],
        "kinds": public_names(),
        "submittable": submittable_kinds(),
        "state": state,
        "kind": kind,
        "filtered": bool(state or kind or project),
    }
    return render(request, "jobs/list.html", context, partial="rows")


@page
def job(request: Request, job_id: int) -> HttpResponse:
    """Show one job; `?part=head` and `?part=body` are its live pieces."""
    row = access.get_job(request.user, job_id)
    tab = chosen(request.GET.get("tab"), tabs.of(row), "overview")
    return job_page(request, row, tab)


def job_page(request: Request, row: Job, tab: str, *, status: int = 200, **instead: Any) -> HttpResponse:
    """Show a job with one of its tabs; `instead` is for a form of the tab that was refused."""
    context = _context(request, row) | {"tab": tab} | tabs.context(request, row, tab) | instead
    part = chosen(request.GET.get("part"), ("head", "body"), "")
    return render(request, "jobs/job.html", context, partial=part, status=status)


def _context(request: Request, row: Job) -> dict[str, Any]:
    trail: list[tuple[str, str] | str] = [("Jobs", reverse("jobs"))]
    if row.parent is not None:
        trail.append((row.parent.title or f"Job {row.parent_id}", reverse("job", args=[row.parent_id])))
    here = reverse("job", args=[row.pk])
    detail = shown.detail(row)
    return {
        "job": row,
        "shown": detail,
        "track": _track(detail.steps),
        "cursor": (row.root or row).event_seq,
        "tabs": [
            (tab, tab.capitalize(), url("job", row.pk, tab="" if tab == "overview" else tab))
            for tab in tabs.of(row)
        ],
        "here": here,
        "crumbs": crumbs(*trail, row.title or f"Job {row.pk}"),
        "may": access.can(request.user, row.project, Action.WRITE),
        "orders": _orders(row),
        "unregistered": _unregistered(row, detail.results),
        "is_final": row.state in FINAL,
        "is_search": row.facts.has_trials,
        **(_of_search(row) if row.facts.has_trials else {}),
    }


def _unregistered(row: Job, results: ResultsOut) -> str:
    """Return the digest of the model that a single run made and nobody has registered; else nothing."""
    if row.facts.has_trials or row.state != JobState.COMPLETED or results["versions"]:
        return ""
    own = [made for made in results["artifacts"] if made["job"] == row.pk and made["role"] == "model"]
    return own[-1]["digest"] if own and row.project_id is not None else ""


def _of_search(row: Job) -> dict[str, Any]:
    reasons = waiting.reasons(row)
    search, standing = outcomes.search_of(row), outcomes.standing(row)
    best = outcomes.best_trials(row, limit=1).first()
    scores = standing.scores.get(best.pk, ()) if best is not None else ()
    return {
        "counts": [(state, count) for state, count in shown.trial_counts(row).items() if count],
        "why_trials_wait": [
            (reason, [number for number, why in reasons.items() if why == reason])
            for reason in dict.fromkeys(reasons.values())
        ],
        "best": best,
        "best_scores": list(zip(standing.objectives, scores, strict=True)) if scores else [],
        "front": len(standing.front),
        "objective": outcomes.objective_of(row),
        "warm_start": search.warm_start if search.info.learns_from_earlier else None,
        "revise_form": ReviseForm(row) if may_revise(row) else None,
        "trial_looks": tabs.trial_looks(),
        "preloaded": tabs.preloaded(),
    }


def may_revise(row: Job) -> bool:
    """Say whether a search can be changed now."""
    if row.revision_id is None:
        return False  # its scripts' chief was told what it is, not an experiment
    return row.desired in (Desired.RUNNING, Desired.PAUSED) and shown.takes_trials(row)


def _track(steps: list[StepOut]) -> list[dict[str, Any]]:
    """Return the steps to show: those of a kind that are still to come stand together."""
    track: list[dict[str, Any]] = []
    for step in steps:
        last = track[-1] if track else {}
        if step.state is None and (last.get("kind"), last.get("state")) == (step.kind, None):
            last["times"] += 1
        else:
            track.append({**vars(step), "times": 1})
    return track


def _orders(row: Job) -> set[str]:
    """Name what can be asked of a job in its state."""
    state, pausing = JobState(row.state), row.desired == "paused"
    if state in FINAL:
        failed = state != JobState.COMPLETED or row.trials.filter(state__in=("failed", "stopped")).exists()
        return {"clone", "retry"} if failed else {"clone"}
    orders = {"stop", "kill", "clone"}
    if pausing:
        orders |= {"resume"} if row.parent is None or row.parent.desired == "running" else set()
    elif state in (JobState.STARTING, JobState.RUNNING):
        orders.add("pause")
    return orders - ({"stop"} if state == JobState.STOPPING else set())


@action
def order(request: Request, job_id: int, what: str) -> HttpResponse:
    """Pause, resume, stop, kill or retry a job."""
    if what not in ORDERS:
        raise NotFound(f"A job cannot {what}.")
    row = access.get_job(request.user, job_id, Action.WRITE)
    do, told = ORDERS[what]
    do(row, by=request.user)
    say(request, f"Job {row.pk} {told}.")
    return go("job", row.pk)


@action
def clone(request: Request, job_id: int) -> HttpResponse:
    """Queue the same revision again."""
    again = submit.clone(access.get_job(request.user, job_id, Action.WRITE), by=request.user)
    say(request, f"Job {again.pk} is queued.")
    return go("job", again.pk)


urls = [
    path("jobs", jobs, name="jobs"),
    path("jobs/<int:job_id>", job, name="job"),
    path("jobs/<int:job_id>/clone", clone, name="job_clone"),
    path("jobs/<int:job_id>/<slug:what>", order, name="job_order"),
]
