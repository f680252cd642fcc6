"""Lists jobs, shows one, and pauses, resumes, finishes, stops, kills, retries and clones it."""

import itertools
from collections import Counter
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions.runs import control, submit
from jobs.answers.runs.jobs import StepOut
from jobs.answers.runs.results import ResultsOut
from jobs.errors import NotFound
from jobs.kinds import public_names
from jobs.kinds.inputs import submittable_kinds
from jobs.models import Job
from jobs.queries import paging
from jobs.queries.code import sandboxes
from jobs.queries.runs import jobs as shown
from jobs.queries.runs import lost_work, phases, queue, restarts
from jobs.queries.search import ensembles, outcomes, scoring, trials, waiting
from jobs.states import FINAL, Desired, JobState, TrialState
from webapp.forms.search.search_changes import ReviseForm
from webapp.pages.runs import job_overview
from webapp.pages.runs import job_tabs as tabs
from webapp.pages.shortcuts import (
    Request,
    action,
    crumbs,
    is_partial,
    notify,
    page,
    redirect,
    render,
    url,
    valid_choice,
    writable_projects,
)

COMMANDS = {
    "pause": (control.pause, "pauses at its next checkpoint"),
    "resume": (control.resume, "resumes"),
    "finish": (control.finish, "finishes with the trials it has"),
    "stop": (control.stop, "stops after a checkpoint"),
    "kill": (control.kill, "is killed"),
    "retry": (control.retry, "is retried"),
}


@page
def jobs(request: Request) -> HttpResponse:
    """List the jobs that the user may see."""
    rows = shown.jobs_for_lists(access.visible_jobs(request.user))
    state = valid_choice(request.GET.get("state"), [str(s) for s in JobState], "")
    kind = valid_choice(request.GET.get("kind"), public_names(), "")
    # Unless filtered by kind, children are shown on their root's page alone, profiles on their data set's.
    rows = rows.called(kind) if kind else rows.roots().listed()
    if state:
        rows = rows.filter(state=state)
    if project := request.GET.get("project"):
        rows = rows.filter(project__slug=project)
    listed = paging.page_of(rows, cursor=request.GET.get("cursor"))
    context = {
        "page": listed,
        "rows": [
            (each, detail, outcomes.objective_of(each).metric if each.facts.has_trials else "")
            for each, detail in zip(listed.items, shown.jobs_out(listed.items), strict=True)
        ],
        "states": [str(s) for s in JobState],
        "kinds": public_names(),
        "submittable": submittable_kinds() if writable_projects(request.user).exists() else (),
        "state": state,
        "kind": kind,
        "filtered": bool(state or kind or project),
    }
    return render(request, "runs/list.html", context, partial="rows")


@page
def job(request: Request, job_id: int) -> HttpResponse:
    """Show one job; `?part=head` and `?part=body` are the parts that are reloaded live."""
    row = access.get_job(request.user, job_id)
    tab = valid_choice(request.GET.get("tab"), tabs.names(row), "overview")
    return job_page(request, row, tab)


def job_page(request: Request, row: Job, tab: str, *, status: int = 200, **instead: Any) -> HttpResponse:
    """Show a job with one of its tabs; `instead` overrides context values, such as an invalid form."""
    part = valid_choice(request.GET.get("part"), ("head", "body"), "")
    context = _context(request, row) | {"tab": tab}
    # The head is requested again every few seconds, and needs nothing of the tab below it.
    if part != "head" or not is_partial(request):
        context |= tabs.context(request, row, tab)
    context |= instead
    return render(request, "runs/job.html", context, partial=part, status=status)


def _context(request: Request, row: Job) -> dict[str, Any]:
    trail: list[tuple[str, str] | str] = [("Jobs", reverse("jobs"))]
    if row.parent is not None:
        trail.append((row.parent.title or f"Job {row.parent_id}", reverse("job", args=[row.parent_id])))
    here = reverse("job", args=[row.pk])
    detail = shown.job_out(row)
    unregistered = _unregistered(row, detail.results)
    lost = restarts.restarts_of_job(row)
    may_write = access.can(request.user, row.project, Action.WRITE)
    may_run = sandboxes.may_run(request.user, row)
    # The file of a script is registered without its code.
    runs_script = job_overview.runs_script(row)
    may_register = may_run or (may_write and runs_script)
    return {
        "job": row,
        "shown": detail,
        "track": _track(detail.steps),
        # Of the row that was read before all else: the page then receives every later event, and misses none.
        "cursor": (row.root or row).event_seq,
        "tabs": [
            (tab, tab.capitalize(), url("job", row.pk, tab="" if tab == "overview" else tab))
            for tab in tabs.names(row)
        ],
        "here": here,
        "crumbs": crumbs(*trail, row.title or f"Job {row.pk}"),
        "may_write": may_write,
        "may_run": may_run,
        "may_register": may_register,
        "sandbox": sandboxes.sandbox_of_job(row),
        "commands": _commands(row) - (set() if may_run else RUNNING_AGAIN),
        "may_kill_runner": settings.TRAINYARD_DEMO
        and row.state in (JobState.STARTING, JobState.RUNNING)
        and access.can(request.user, row.project, Action.MANAGE),
        "unregistered": unregistered if may_register else "",
        **(job_overview.registration_context(row) if unregistered and may_register else {}),
        "is_final": row.state in FINAL,
        "restarts": lost,
        "is_search": row.facts.has_trials,
        "runs_script": runs_script,
        "unit": "step" if runs_script else "epoch",
        "lost_work": lost_work.work_lost_by_pause(row) if may_write else None,
        "has_checkpoints": row.facts.has_trials or row.facts.trains,
        "has_begun": row.started is not None,
        "place": queue.queue_position(row),
        "later_steps": list(dict.fromkeys(step.kind for step in detail.steps if step.state is None)),
        "notes": len(lost) + _notes(row, detail.results, waits=bool(detail.why_waiting)),
        **(_search_context(row, may_run=may_run) if row.facts.has_trials else {}),
    }


def _unregistered(row: Job, results: ResultsOut) -> str:
    """Return the digest of an unregistered model that a completed training produced; else an empty text."""
    if row.facts.has_trials or row.state != JobState.COMPLETED or results["versions"]:
        return ""
    own = [made for made in results["artifacts"] if made["job"] == row.pk and made["role"] == "model"]
    return own[-1]["digest"] if own and row.project_id is not None else ""


def _notes(row: Job, results: ResultsOut, *, waits: bool) -> int:
    """Return how many warnings, errors and reasons for waiting the overview shows."""
    return len(results["warnings"]) + bool(row.error) + waits


def _search_context(row: Job, *, may_run: bool) -> dict[str, Any]:
    reasons = waiting.waiting_reasons(row)
    search, ranking = outcomes.search_of(row), outcomes.pareto_front(row)
    best = outcomes.best_trials(row, limit=1).first()
    counts = trials.trial_counts(row)
    scores = ranking.scores.get(best.pk, ()) if best is not None else ()
    return {
        "phases": phases.phases_of_search(row),
        "counts": [(state, count) for state, count in counts.items() if count],
        "trials_run": bool(counts.get(TrialState.RUNNING)),
        "has_begun": any(count for state, count in counts.items() if state != TrialState.QUEUED),
        "why_trials_wait": [
            (reason, [number for number, why in reasons.items() if why == reason])
            for reason in dict.fromkeys(reasons.values())
        ],
        "best": best,
        "scoring": scoring.scoring_of_search(row),
        "may_finish": best is not None
        and row.desired in (Desired.RUNNING, Desired.PAUSED)
        and trials.accepts_trials(row),
        "best_scores": list(zip(ranking.objectives, scores, strict=True)) if scores else [],
        "front": len(ranking.members),
        "objective": outcomes.objective_of(row),
        "warm_start": search.warm_start if search.info.learns_from_earlier else None,
        "revise_form": ReviseForm(row) if may_run and may_revise(row) else None,
        "trial_looks": tabs.trial_looks(),
        "preloaded": tabs.preloaded(),
        "takes_members": ensembles.takes_members(row),
    }


def may_revise(row: Job) -> bool:
    """Return whether the search can be changed now."""
    # An external search has no experiment.
    if row.revision_id is None:
        return False
    return row.desired in (Desired.RUNNING, Desired.PAUSED) and trials.accepts_trials(row)


class StepGroup(NamedTuple):
    """Consecutive steps of one kind, which are shown together so that all steps fit one line.

    Attributes:
        links: each job that exists, with its title and the text of its link: of the first, the whole title.
        states: how many steps are in each state; None for those without a job yet.
    """

    kind: str
    links: list[tuple[int, str, str]]
    states: list[tuple[str | None, int]]


def _track(steps: list[StepOut]) -> list[StepGroup]:
    track = []
    for kind, members in itertools.groupby(steps, key=lambda step: step.kind):
        group = list(members)
        titles = [(step.job, step.title or step.kind) for step in group if step.job is not None]
        words = zip(*(title.split() for _, title in titles), strict=False)
        common = len(list(itertools.takewhile(lambda same: len(set(same)) == 1, words)))
        links = [
            (job, title, title if at == 0 else " ".join(title.split()[common:]) or title)
            for at, (job, title) in enumerate(titles)
        ]
        track.append(StepGroup(kind, links, list(Counter(step.state for step in group).items())))
    return track


RUNNING_AGAIN = {"resume", "retry", "clone"}
"""Commands that take the right to run the code of a job."""


def _commands(row: Job) -> set[str]:
    """Return the commands that a job accepts in its state."""
    state, pausing = JobState(row.state), row.desired == "paused"
    if state in FINAL:
        # The stopped trials of a finished search are not run again.
        failed = state != JobState.COMPLETED or (
            not row.payload.finishing and row.trials.filter(state__in=("failed", "stopped")).exists()
        )
        return {"clone", "retry"} if failed else {"clone"}
    commands = {"stop", "kill", "clone"}
    if pausing:
        # A step of a paused job resumes with that job; `control.resume` refuses it alone.
        commands |= {"resume"} if row.parent is None or row.parent.desired == "running" else set()
    elif state in (JobState.STARTING, JobState.RUNNING):
        commands.add("pause")
    return commands - ({"stop"} if state == JobState.STOPPING else set())


@action
def order(request: Request, job_id: int, what: str) -> HttpResponse:
    """Pause, resume, finish, stop, kill or retry a job."""
    if what not in COMMANDS:
        raise NotFound(f"A job cannot {what}.")
    row = access.get_job(request.user, job_id, Action.WRITE)
    command, effect = COMMANDS[what]
    command(row, by=request.user)
    notify(request, f"Job {row.pk} {effect}.")
    return redirect("job", row.pk)


@action
def clone(request: Request, job_id: int) -> HttpResponse:
    """Submit the same revision as a new job."""
    again = submit.clone(access.get_job(request.user, job_id, Action.WRITE), by=request.user)
    notify(request, f"Job {again.pk} is queued.")
    return redirect("job", again.pk)


urls = [
    path("jobs", jobs, name="jobs"),
    path("jobs/<int:job_id>", job, name="job"),
    path("jobs/<int:job_id>/clone", clone, name="job_clone"),
    path("jobs/<int:job_id>/<slug:what>", order, name="job_order"),
]
