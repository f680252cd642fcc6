"""The choices for each table column in the experiment form."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.queries.data import datasets
from webapp.forms.experiments.experiment import preprocessing
from webapp.forms.experiments.experiment.preprocessing import ColumnChoice
from webapp.pages.shortcuts import Request, page, render_page
from webapp.template_context import Context
from webapp.whole_numbers import read_whole

SHOWN = 10
"""Columns that are shown at once; the others are found by their names."""


@dataclass(frozen=True)
class ColumnChoices(Context):
    """The choices for the columns whose names match, as far as they are shown."""

    is_ready: bool
    has_choices: bool
    choices: list[ColumnChoice]
    more: int
    text: str


@page
def columns(request: Request, project: str) -> HttpResponse:
    """Show how the columns in `?dataset=&version=` become numbers, if their names contain `q`."""
    home = access.get_project(request.user, project, Action.WRITE)
    entries = request.GET
    number = entries.get("version", "")
    version = datasets.find_version(home, entries.get("dataset", ""), read_whole(number))
    profile = version.profile if version is not None else None
    has_choices = profile is not None and profile.has_pipeline and profile.images is None
    choices = (
        preprocessing.column_choices(
            profile, entries.getlist("feature"), entries.get("target", ""), entries.get("q", "")
        )
        if profile is not None and has_choices
        else []
    )
    context = ColumnChoices(
        is_ready=profile is not None,
        has_choices=has_choices,
        choices=choices[:SHOWN],
        more=max(len(choices) - SHOWN, 0),
        text=entries.get("q", ""),
    )
    return render_page(request, "experiments/form/preprocessing_columns.html", context)


urls = [path("p/<slug:project>/experiments/columns", columns, name="experiment_columns")]
