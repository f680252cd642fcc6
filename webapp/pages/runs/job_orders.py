"""Asks before commands to one job or several, shows the loss of each job, and gives the commands."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions.runs import control
from jobs.errors import BadInput, NotFound, TrainyardError
from jobs.models import Job, User
from jobs.queries.code import sandboxes
from jobs.queries.runs import lost_work
from jobs.queries.search import outcomes, trials
from jobs.spec.problems import Problem
from jobs.states import Desired
from webapp.pages.runs.job_commands import accepted_commands
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    crumbs,
    form_page,
    notify,
    redirect,
    referrer,
    render_page,
)
from webapp.template_context import Context

MAX_JOBS = 200
"""The most jobs of one request."""

MAX_KEY_DIGITS = 18


class Order(NamedTuple):
    """A command that several jobs can get at once.

    Attributes:
        label: its button.
        icon: its icon in the sprite.
        give: gives it to a job.
        effect: the effect on a job, after its number.
        effect_on_many: the same for several jobs.
        is_dangerous: whether it ends work that cannot be resumed.
    """

    label: str
    icon: str
    give: Callable[..., Job]
    effect: str
    effect_on_many: str
    is_dangerous: bool = False


ORDERS = {
    "pause": Order(
        "Pause",
        "player-pause",
        control.pause,
        "pauses at its next checkpoint",
        "pause at their next checkpoint",
    ),
    "resume": Order("Resume", "player-play", control.resume, "resumes", "resume"),
    "finish": Order(
        "Finish",
        "flag",
        control.finish,
        "finishes with the trials it has",
        "finish with the trials they have",
    ),
    "retry": Order("Retry", "repeat", control.retry, "is retried", "are retried"),
    "stop": Order("Stop", "player-stop", control.stop, "stops after a checkpoint", "stop after a checkpoint"),
    "kill": Order("Kill", "x", control.kill, "is killed", "are killed", is_dangerous=True),
}
"""In the order of the bar below a list."""


def jobs_that_accept(user: User, what: str, rows: Iterable[Job]) -> list[Job]:
    """Return the jobs to which `user` may give a command in their present state."""
    return [row for row in rows if _accepts(user, what, row)]


def _accepts(user: User, what: str, row: Job) -> bool:
    if not access.can(user, row.project, Action.WRITE):
        return False
    if what == "finish":
        return (
            row.facts.has_trials
            and row.desired in (Desired.RUNNING, Desired.PAUSED)
            and trials.accepts_trials(row)
            and outcomes.best_trials(row, limit=1).exists()
        )
    return what in accepted_commands(row, may_run=sandboxes.may_run(user, row))


def describe_effect(what: str, row: Job) -> str:
    """Return a sentence about the effect of a command on a job, and its loss."""
    has_checkpoints = row.facts.has_trials or row.facts.trains
    lost = lost_work.work_lost_by_pause(row)
    resumes = has_checkpoints and lost is None
    if what == "pause":
        if resumes:
            return "Writes a checkpoint and frees its slots; Resume continues from there."
        return f"Frees its slots; Resume begins again.{_describe_lost(lost)}"
    if what == "stop":
        ending = "Writes a checkpoint and ends; it can resume from there." if resumes else "Ends."
        begun_again = "" if resumes else f" If it resumes, it begins again.{_describe_lost(lost)}"
        return f"{ending}{begun_again} Later steps do not run."
    if what == "kill":
        since = "since the last checkpoint " if resumes else "so far "
        return f"Ends at once, without a checkpoint. Its work {since}is lost."
    if what == "finish":
        return (
            "Ends the search with the trials it has; later steps run. A finished search cannot be extended."
        )
    if what == "retry":
        return "Runs again only what failed or was stopped."
    return "Continues from its newest checkpoint." if resumes else "Begins again."


def _describe_lost(lost: lost_work.LostWork | None) -> str:
    if lost is None or not lost.done:
        return ""
    return f" Lost: {lost.done} {lost.unit}{'' if lost.done == 1 else 's'} so far."


@dataclass(frozen=True)
class OrdersPage(Context):
    """The question before a command.

    Attributes:
        what: the command.
        chosen: the command's words.
        rows: the jobs that get it, each with its effect.
        refused: the jobs that cannot have it now, or for which the user lacks the right.
        back: the page to which the answer leads.
        crumbs: the breadcrumb.
    """

    what: str
    chosen: Order
    rows: list[tuple[Job, str]]
    refused: list[Job]
    back: str
    crumbs: Crumbs


@form_page
def orders(request: Request) -> HttpResponse:
    """Ask before `what` is done to each `job` of the query, or do it."""
    entries = request.POST if request.method == "POST" else request.GET
    what = entries.get("what", "")
    if what not in ORDERS:
        message = f"{what!r} is no command to jobs; there are: {', '.join(ORDERS)}."
        raise BadInput(message, [Problem("/what", message)])
    back = referrer(request) or reverse("jobs")
    rows = _read_jobs(request.user, entries.getlist("job"))
    if not rows:
        notify(request, f"Select the jobs to {what} first.", level="warning")
        return redirect(back)
    if request.method == "POST":
        _give_order(request, what, rows)
        return redirect(back)
    accepted = jobs_that_accept(request.user, what, rows)
    context = OrdersPage(
        what=what,
        chosen=ORDERS[what],
        rows=[(row, describe_effect(what, row)) for row in accepted],
        refused=[row for row in rows if row not in accepted],
        back=back,
        crumbs=crumbs(("Jobs", reverse("jobs")), ORDERS[what].label),
    )
    return render_page(request, "runs/orders.html", context)


def _read_jobs(user: User, values: list[str]) -> list[Job]:
    """Return the jobs with these numbers.

    Raises:
        BadInput: there are too many, or one is no number.
        NotFound: the user may not see one.
    """
    if len(values) > MAX_JOBS:
        message = f"At most {MAX_JOBS} jobs can be chosen at once; these are {len(values)}."
        raise BadInput(message, [Problem("/job", message)])
    if wrong := [value for value in values if not (value.isascii() and value.isdigit())]:
        raise BadInput(f"{wrong[0]!r} is not the number of a job.", [Problem("/job", "is not a number")])
    keys = {int(value) for value in values if len(value) <= MAX_KEY_DIGITS}
    related = ("project", "revision", "experiment", "parent")
    rows = list(access.visible_jobs(user).filter(pk__in=keys).select_related(*related).order_by("-pk"))
    if len(rows) < len(set(values)):
        raise NotFound("One of these jobs does not exist, or you may not see it.")
    return rows


def _give_order(request: Request, what: str, rows: list[Job]) -> None:
    """Give the command to each job. The refusal of one does not stop the others."""
    order, changed = ORDERS[what], []
    for row in rows:
        try:
            order.give(access.get_job(request.user, row.pk, Action.WRITE), by=request.user)
        except TrainyardError as error:
            notify(request, f"Job {row.pk}: {error.message}", level="error")
        else:
            changed.append(row.pk)
    if len(changed) == 1:
        notify(request, f"Job {changed[0]} {order.effect}.")
    elif changed:
        notify(request, f"{len(changed)} jobs {order.effect_on_many}.")


urls = [path("jobs/orders", orders, name="job_orders")]
