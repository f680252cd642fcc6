"""Builds the template variables for the head on a version's page, which all tabs share."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from jobs import access
from jobs.access import Action
from jobs.models import Endpoint, ModelVersion, RegisteredModel
from jobs.queries.registry import registry as queries
from jobs.queries.runs import model_reports
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    Tabs,
    crumbs,
    url,
)
from webapp.template_context import Context

TABS = {
    "overview": "Overview",
    "report": "Report",
    "evaluation": "Evaluation",
    "model": "Layers",
    "try": "Try it",
    "use": "Use it",
    "card": "Card",
    "files": "Files",
}


@dataclass(frozen=True)
class VersionHead(Context):
    """The head on a version's page, which every tab shares."""

    version: ModelVersion
    model: RegisteredModel
    endpoint: Endpoint
    stage: str | None
    single_person: bool
    may_write: bool
    fine_tune_url: str
    tabs: Tabs
    crumbs: Crumbs
    tab: str


def head_context(request: Request, row: ModelVersion, endpoint: Endpoint, tab: str) -> VersionHead:
    """Return the variables for a version's head."""
    name, number = row.model.name, row.number
    return VersionHead(
        version=row,
        model=row.model,
        endpoint=endpoint,
        stage=queries.stage_of(row, endpoint),
        single_person=queries.was_approved_by_single_person(row),
        may_write=access.can(request.user, row.model.project, Action.WRITE),
        fine_tune_url=_fine_tune_url(request, row),
        tabs=[
            (key, label, url("version", name, number, tab="" if key == "overview" else key))
            for key, label in TABS.items()
            # Only ensembles and quantizations have one.
            if key != "report" or model_reports.reports_of_version(row, ("report",))
        ],
        crumbs=crumbs(("Models", reverse("models")), (name, reverse("model", args=[name])), f"v{number}"),
        tab=tab,
    )


def _fine_tune_url(request: Request, row: ModelVersion) -> str:
    """Return the address for a new experiment that trains the version further; empty for none."""
    is_usable = row.state == ModelVersion.State.CANDIDATE and not row.needs_code
    if not is_usable or not access.can(request.user, row.model.project, Action.WRITE):
        return ""
    place = reverse("experiment_new", args=[row.model.project.slug])
    return f"{place}?{urlencode({'base': f'{row.model.name}/{row.number}'})}#model"
