"""Shows the work that a button would start, in a dialog over its page or on a page of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.http import HttpResponse

from jobs.kinds import KINDS
from jobs.models import Experiment, Job, Project, User
from jobs.queries.experiments import plan as plans
from jobs.spec.plan.plan import Plan
from jobs.spec.problems import Problem
from webapp.pages.shortcuts import Crumbs, Request, crumbs, referrer, render_page, url
from webapp.template_context import Context
from webapp.templatetags.value_filters import byte_size, counted

type Figures = list[tuple[str, str]]
"""Labels and values."""


@dataclass(frozen=True)
class Start(Context):
    """What would start, and the form that starts it.

    Attributes:
        heading: what starts, as a command.
        about: sentences about it.
        figures: its plan: labels and values.
        sameness: how its result compares with that of earlier work; empty if nothing is repeated.
        is_same: whether the result is known already.
        model: the registered model that would get a version; empty if there is no choice.
        is_registered: whether the box for its registration is ticked at first.
        problems: why it cannot start.
        fields: the values that the form sends.
        edit: the address of the form with these settings; empty if there is none.
        may_draft: whether the settings can be saved as a draft, which opens in the form.
        back: the address to which *Cancel* leads.
    """

    heading: str
    about: str
    figures: Sequence[tuple[str, str]]
    back: str
    verb: str = "Start"
    sameness: str = ""
    is_same: bool = False
    model: str = ""
    is_registered: bool = False
    problems: Sequence[Problem] = ()
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)
    edit: str = ""
    may_draft: bool = False
    crumbs: Crumbs = field(default_factory=list)


def show_start(request: Request, start: Start) -> HttpResponse:
    """Show the page; for a script on another page only the dialog's contents."""
    if not start.crumbs:
        start = replace(start, crumbs=crumbs(("Jobs", url("jobs")), start.heading))
    start = replace(start, back=referrer(request) or start.back)
    return render_page(request, "runs/start.html", start, partial="dialog")


def wants_draft(request: Request) -> bool:
    """Return whether the form asks for a draft instead of a start."""
    return request.POST.get("do") == "draft"


def wants_registration(request: Request, *, default: bool = False) -> bool:
    """Return whether the form asks to register the model; `default` if the request had no such choice."""
    return request.POST.get("register") == "on" if "asked" in request.POST else default


def plan_figures(plan: Plan | None) -> Figures:
    """Return an experiment's plan in the words of the form's foot; nothing without a plan."""
    if plan is None:
        return []
    limit = None if plan.max_minutes is None else f"{plan.max_minutes:g} min"
    is_search = bool(plan.summary) or plan.trials > 1
    number = f"trials for {limit}" if limit else f"{counted(plan.trials)} trials"
    each = plan.executions // max(plan.trials, 1)
    runs = f"{number} × {each} training{'' if each == 1 else 's'}" if is_search else "one training"
    devices = "1 device" if plan.devices == 1 else f"{plan.devices} {plan.device_kind} devices"
    figures = [("Runs", runs)]
    if not limit:
        figures.append(("Epochs", _epochs(plan)))
    # The dialog has a choice of its own for registrations.
    shown = [step for step in plan.steps[1:] if KINDS[step].belongs_to != "version"]
    if later := [_step_in_words(step, plan) for step in shown]:
        figures.append(("Then", " → ".join(later)))
    each_has = "" if plan.devices == 1 else " each"
    memory = "" if plan.memory_per_device is None else f", {byte_size(plan.memory_per_device)}{each_has}"
    return [
        *figures,
        ("Devices", f"{devices}{memory}"),
        ("Slots", f"{plan.slots} ({plan.free_slots} free)"),
        ("Expected time", f"{limit}, then the steps" if limit else expected_time(plan)),
    ]


def _epochs(plan: Plan) -> str:
    most = f"≤ {counted(plan.epochs)}"
    is_shorter = plan.epochs_likely is not None and plan.epochs_likely < plan.epochs
    return f"{most}, likely {counted(plan.epochs_likely)}" if is_shorter else most


def _step_in_words(kind: str, plan: Plan) -> str:
    if not KINDS[kind].trains:
        return KINDS[kind].noun
    return "one retraining" if plan.retrainings == 1 else f"{counted(plan.retrainings)} retrainings"


def expected_time(plan: Plan, times: int = 1) -> str:
    """Return the device time at most and the likely one, as the form's foot; of several equal plans."""
    return time_in_words(plan.device_hours, plan.device_hours_likely, times)


def time_in_words(hours: float | None, likely_hours: float | None, times: int = 1) -> str:
    """Return the device time at most and the likely one; both are multiplied by `times`."""
    if hours is None:
        return "no estimate yet: nothing alike was trained before"
    most = f"≤ {device_time(hours * times)}"
    likely = device_time((likely_hours or hours) * times)
    return most if most == f"≤ {likely}" else f"{most}, likely {likely}"


def device_time(hours: float) -> str:
    """Return hours of one device in words. Rounded up, since they may be a bound."""
    minutes = hours * 60
    if minutes >= 90:
        return f"{hours:.1f} device-h"
    tenths = -int(-minutes * 10 // 1)
    return f"{tenths / 10:.1f} device-min" if minutes < 1 else f"{-int(-minutes // 1)} device-min"


def plan_of_spec(
    project: Project, body: Any, *, by: User, experiment: Experiment | None
) -> tuple[Plan | None, Sequence[Problem]]:
    """Return the plan that the form would show for a spec, and the spec's problems."""
    validation = plans.validate_spec(project, body, by=by, experiment=experiment)
    return validation.plan, validation.problems


def edit_address(job: Job) -> str:
    """Return the address of the form with a job's settings; empty if it has no experiment."""
    if (
        job.project is None
        or job.experiment_id is None
        or job.revision_id is None
        or job.parent_id is not None
    ):
        return ""
    return url("experiment_edit", job.project.slug, job.experiment_id, job=job.pk)
