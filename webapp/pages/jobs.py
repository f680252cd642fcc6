"""Jobs: the list, one job with its tabs, one trial."""

from typing import Any

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions import control, submit, trials
from jobs.errors import BadInput, NotFound
from jobs.models import Job
from jobs.queries import evaluations, outcomes, paging
from jobs.queries import jobs as shown
from jobs.spec.search_space import Parameter, Value
from jobs.states import FINAL, JobKind, JobState
from webapp.pages.shortcuts import Request, action, chosen, crumbs, go, page, render, say, url

TABS = ("overview", "trials", "charts", "evaluation", "logs", "system", "artifacts", "attempts", "spec")
ORDERS = {
    "pause": (control.pause, "pauses at its next checkpoint"),
    "resume": (control.resume, "goes on"),
    "stop": (control.stop, "stops after a checkpoint"),
    "kill": (control.kill, "ends now"),
    "retry": (control.retry, "runs again what failed"),
}


@page
def jobs(request: Request) -> HttpResponse:
    """List the jobs in sight; children stand on their root's page."""
    rows = shown.for_lists(access.visible_jobs(request.user))
    state = chosen(request.GET.get("state"), [str(s) for s in JobState], "")
    kind = chosen(request.GET.get("kind"), [str(k) for k in JobKind], "")
    # Unless asked for, children stand on their root's page alone, and profiles on their data set's.
    rows = rows.filter(kind=kind) if kind else rows.filter(parent=None).exclude(kind=JobKind.PROFILE)
    if state:
        rows = rows.filter(state=state)
    if project := request.GET.get("project"):
        rows = rows.filter(project__slug=project)
    listed = paging.page_of(rows, cursor=request.GET.get("cursor"))
    context = {
        "page": listed,
        "rows": [(job, shown.detail(job)) for job in listed.items],
        "states": [str(s) for s in JobState],
        "kinds": [str(k) for k in JobKind],
        "state": state,
        "kind": kind,
        "filtered": bool(state or kind or project),
    }
    return render(request, "jobs/list.html", context, partial="rows")


@page
def job(request: Request, job_id: int) -> HttpResponse:
    """Show one job; `?part=head` and `?part=body` are its live pieces."""
    row = access.get_job(request.user, job_id)
    tab = chosen(request.GET.get("tab"), _tabs(row), "overview")
    context = _context(request, row) | {"tab": tab} | _TAB_CONTEXT.get(tab, _nothing)(request, row)
    part = chosen(request.GET.get("part"), ("head", "body"), "")
    return render(request, "jobs/job.html", context, partial=part)


def _tabs(row: Job) -> list[str]:
    hidden = set()
    if row.kind != JobKind.SEARCH:
        hidden.add("trials")
    if row.revision is None:
        hidden.add("spec")
    if not evaluations.of_job(row):
        hidden.add("evaluation")
    return [tab for tab in TABS if tab not in hidden]


def _context(request: Request, row: Job) -> dict[str, Any]:
    trail: list[tuple[str, str] | str] = [("Jobs", reverse("jobs"))]
    if row.parent is not None:
        trail.append((row.parent.title or f"Job {row.parent_id}", reverse("job", args=[row.parent_id])))
    here = reverse("job", args=[row.pk])
    detail = shown.detail(row)
    return {
        "job": row,
        "shown": detail,
        "track": _track(detail["steps"]),
        "cursor": (row.root or row).event_seq,
        "tabs": [
            (tab, tab.capitalize(), url("job", row.pk, tab="" if tab == "overview" else tab))
            for tab in _tabs(row)
        ],
        "here": here,
        "crumbs": crumbs(*trail, row.title or f"Job {row.pk}"),
        "may": access.can(request.user, row.project, Action.WRITE),
        "orders": _orders(row),
        "counts": shown.trial_counts(row) if row.kind == JobKind.SEARCH else {},
        "is_search": row.kind == JobKind.SEARCH,
        "is_final": row.state in FINAL,
        "best": outcomes.best_trials(row, limit=1).first() if row.kind == JobKind.SEARCH else None,
        "objective": outcomes.objective_of(row) if row.kind == JobKind.SEARCH else None,
    }


def _track(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps to show: those of a kind that are still to come stand together."""
    track: list[dict[str, Any]] = []
    for step in steps:
        last = track[-1] if track else {}
        if step["state"] is None and (last.get("kind"), last.get("state")) == (step["kind"], None):
            last["times"] += 1
        else:
            track.append({**step, "times": 1})
    return track


def _orders(row: Job) -> set[str]:
    """Name what can be asked of a job in its state."""
    state, pausing = JobState(row.state), row.desired == "paused"
    if state in FINAL:
        failed = state != JobState.COMPLETED or row.trials.filter(state__in=("failed", "stopped")).exists()
        return {"clone", "retry"} if failed else {"clone"}
    orders = {"stop", "kill", "clone"}
    if pausing:
        orders.add("resume")
    elif state in (JobState.STARTING, JobState.RUNNING):
        orders.add("pause")
    return orders - ({"stop"} if state == JobState.STOPPING else set())


def _nothing(request: Request, row: Job) -> dict[str, Any]:
    del request, row
    return {}


def _trials_tab(request: Request, row: Job) -> dict[str, Any]:
    order = chosen(request.GET.get("sort"), ("number", "-number", "score", "-score", "state"), "number")
    rows = list(shown.trials(row))
    if order.endswith("score"):
        scored = [t for t in rows if t.score is not None]
        scored.sort(key=lambda t: t.score or 0.0, reverse=order.startswith("-"))
        rows = scored + [t for t in rows if t.score is None]
    else:
        rows.sort(
            key=lambda t: (t.state, t.number) if order == "state" else (t.number,),
            reverse=order.startswith("-"),
        )
    best = shown.best_number(row)
    return {
        "trials": [shown.trial(t, best=best) for t in rows],
        "names": _value_names(row),
        "sort": order,
        "space": _space(row),
        "is_open": row.state not in FINAL,
    }


def _value_names(row: Job) -> list[str]:
    return [parameter.name for parameter in _space(row)]


def _space(row: Job) -> tuple[Parameter, ...]:
    return outcomes.search_of(row).space if row.kind == JobKind.SEARCH else ()


def _overview_tab(request: Request, row: Job) -> dict[str, Any]:
    extra = _trials_tab(request, row) if row.kind == JobKind.SEARCH else {}
    own = [] if row.kind == JobKind.SEARCH else [row]  # a search's own metrics repeat its chosen candidate's
    members = [*own, *row.children.filter(kind__in=("train", "ensemble", "quantize"))]
    return extra | {"candidates": [entry for member in members if (entry := evaluations.summary(member))]}


def _charts_tab(request: Request, row: Job) -> dict[str, Any]:
    del request
    names = [name for name in shown.metric_names(row) if not name.startswith("system/")]
    return {"metric_pairs": pair_metrics(names), "objective_name": outcomes.objective_of(row).metric}


def pair_metrics(names: list[str]) -> list[list[str]]:
    """Put each metric beside its validation twin: one chart a pair."""
    plain = [name for name in names if not name.startswith("val_")]
    pairs = [[name, f"val_{name}"] if f"val_{name}" in names else [name] for name in plain]
    lonely = [[name] for name in names if name.startswith("val_") and name.removeprefix("val_") not in plain]
    return sorted(pairs + lonely, key=lambda pair: (len(pair) == 1, pair[0] != "loss", pair[0]))


def _system_tab(request: Request, row: Job) -> dict[str, Any]:
    del request
    return {"system_names": [name for name in shown.metric_names(row) if name.startswith("system/")]}


def _evaluation_tab(request: Request, row: Job) -> dict[str, Any]:
    found = evaluations.of_job(row)
    which = request.GET.get("of")
    current = next((e for e in found if str(e.job.pk) == which), found[0] if found else None)
    if current is None:
        raise NotFound("This job has evaluated nothing yet.")
    return {"evaluations": found, "current": current, "report": evaluations.load(current)}


def _attempts_tab(request: Request, row: Job) -> dict[str, Any]:
    del request
    return {"attempts": list(row.attempts.select_related("worker", "trial").order_by("-number")[:100])}


def _spec_tab(request: Request, row: Job) -> dict[str, Any]:
    del request
    return {"spec": row.revision.spec_json if row.revision is not None else None}


_TAB_CONTEXT = {
    "overview": _overview_tab,
    "trials": _trials_tab,
    "charts": _charts_tab,
    "system": _system_tab,
    "evaluation": _evaluation_tab,
    "attempts": _attempts_tab,
    "spec": _spec_tab,
}


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


@action
def queue_trial(request: Request, job_id: int) -> HttpResponse:
    """Queue one configuration of a search by hand."""
    row = access.get_job(request.user, job_id, Action.WRITE)
    values: dict[str, Value] = {}
    for parameter in _space(row):
        text = request.POST.get(f"value-{parameter.name}", "")
        if parameter.is_active(values) and text != "":
            values[parameter.name] = read_value(parameter, text)
    trial_row = trials.queue_by_hand(row, values, by=request.user)
    say(request, f"Trial {trial_row.number} is queued.")
    return go(url("job", row.pk, tab="trials"))


def read_value(parameter: Parameter, text: str) -> Value:
    """Return what was typed for a hyperparameter in its own type.

    Raises:
        BadInput: it is no number where one is needed.
    """
    try:
        if parameter.kind == "int":
            return int(text)
        if parameter.kind == "float":
            return float(text)
    except ValueError:
        raise BadInput(f"{parameter.name}: {text!r} is not a number") from None
    return next((value for value in parameter.grid() if str(value) == text), text)


@page
def trial(request: Request, job_id: int, number: int) -> HttpResponse:
    """Show a trial: values against the best, curves per execution, log."""
    row = access.get_trial(request.user, job_id, number)
    best = outcomes.best_trials(row.job, limit=1).first()
    names = [name for name in shown.metric_names(row.job, row) if not name.startswith("system/")]
    context = {
        "trial": row,
        "shown": shown.trial(row, best=best.number if best else None),
        "best": best,
        "job": row.job,
        "cursor": (row.job.root or row.job).event_seq,
        "rows": [
            (name, row.values.get(name), best.values.get(name) if best else None)
            for name in _value_names(row.job)
        ],
        "metric_pairs": pair_metrics(names),
        "objective": outcomes.objective_of(row.job),
        "may": access.can(request.user, row.job.project, Action.WRITE),
        "may_retry": row.state in ("failed", "stopped") and row.job.state not in FINAL,
        "crumbs": crumbs(
            ("Jobs", reverse("jobs")),
            (row.job.title or f"Job {row.job_id}", reverse("job", args=[row.job_id])),
            f"Trial {row.number}",
        ),
    }
    return render(request, "jobs/trial.html", context, partial=chosen(request.GET.get("part"), ("head",), ""))


@action
def retry_trial(request: Request, job_id: int, number: int) -> HttpResponse:
    """Run a failed or stopped trial again."""
    row = trials.retry(access.get_trial(request.user, job_id, number, Action.WRITE), by=request.user)
    say(request, f"Trial {row.number} is queued again.")
    return go("trial", row.job_id, row.number)


urls = [
    path("jobs", jobs, name="jobs"),
    path("jobs/<int:job_id>", job, name="job"),
    path("jobs/<int:job_id>/clone", clone, name="job_clone"),
    path("jobs/<int:job_id>/trials", queue_trial, name="job_queue_trial"),
    path("jobs/<int:job_id>/trials/<int:number>", trial, name="trial"),
    path("jobs/<int:job_id>/trials/<int:number>/retry", retry_trial, name="trial_retry"),
    path("jobs/<int:job_id>/<slug:what>", order, name="job_order"),
]
