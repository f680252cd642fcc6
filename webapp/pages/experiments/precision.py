"""Explains the precision policies: formats, memory, devices, and what each is good for."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.models import Project
from webapp.forms.experiments.experiment.advice import PolicyCard, policy_cards
from webapp.pages.shortcuts import Crumbs, Request, crumbs, page, render_page, url
from webapp.template_context import Context


@dataclass(frozen=True)
class PrecisionPage(Context):
    """The cards of all policies."""

    project: Project
    policies: list[PolicyCard]
    crumbs: Crumbs


@page
def explain(request: Request, project: str) -> HttpResponse:
    """Show the cards of all policies, with the gains that dry runs of the project have measured."""
    home = access.get_project(request.user, project)
    trail = crumbs(("Experiments", url("experiments", home.slug)), "Precision")
    context = PrecisionPage(project=home, policies=policy_cards(home), crumbs=trail)
    return render_page(request, "experiments/precision.html", context)


urls = [path("p/<slug:project>/precision", explain, name="precision")]
