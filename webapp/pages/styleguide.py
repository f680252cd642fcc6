"""Shows every design-system component on one page; the browser tests take screenshots."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django import forms
from django.conf import settings
from django.http import HttpResponse
from django.urls import path, reverse

from jobs import clock
from jobs.errors import NotFound
from jobs.states import JobState, TrialState
from webapp.pages.shortcuts import Crumbs, Request, Tabs, crumbs, page, render_page
from webapp.template_context import Context
from webapp.templatetags.states import LOOKS

PROGRESS = {"done": 14, "total": 24, "unit": "executions", "eta_seconds": 95}


class ExampleForm(forms.Form):
    """A form with one field for each type, one invalid."""

    name = forms.CharField(label="Name", help_text="Shown in lists.")
    epochs = forms.IntegerField(label="Epochs", min_value=1)
    optimizer = forms.ChoiceField(label="Optimizer", choices=[("adam", "adam"), ("sgd", "sgd")])
    shuffle = forms.BooleanField(label="Shuffle each epoch", required=False)


@dataclass(frozen=True)
class StyleguidePage(Context):
    """Examples for all components."""

    job_states: list[str]
    other_states: list[str]
    soon: datetime
    earlier: datetime
    progress: dict[str, object]
    digest: str
    algorithms: list[str]
    form: ExampleForm
    tabs: Tabs
    slots: list[str]
    crumbs: Crumbs


@page
def styleguide(request: Request) -> HttpResponse:
    """Show the components to administrators, and to all users in debug mode."""
    if not (settings.DEBUG or request.user.is_superuser):
        raise NotFound("There is no such page.")
    now = clock.estimate()
    jobs = [str(state) for state in (*JobState, TrialState.PRUNED)]
    here = reverse("styleguide")
    context = StyleguidePage(
        job_states=jobs,
        other_states=[state for state in LOOKS if state not in jobs],
        soon=now + timedelta(hours=3),
        earlier=now - timedelta(minutes=25),
        progress=PROGRESS,
        algorithms=["random", "tpe"],
        digest="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        form=ExampleForm({"name": "digits", "epochs": "0", "optimizer": "adam"}),
        tabs=[("one", "Overview", here), ("two", "Trials", here), ("three", "Charts", here)],
        slots=["busy", "busy", "free", "draining", "lost"],
        crumbs=crumbs(("Home", reverse("home")), ("Components", here), "All components"),
    )
    return render_page(request, "styleguide.html", context)


urls = [path("styleguide", styleguide, name="styleguide")]
