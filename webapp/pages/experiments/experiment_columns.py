"""The part of the experiment form with the choices for each column of a table."""

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.queries.data import datasets
from webapp.forms.experiments.experiment import preprocessing
from webapp.pages.shortcuts import Request, page, render

SHOWN = 10
"""Columns that are shown at once; the others are found by their names."""


@page
def columns(request: Request, project: str) -> HttpResponse:
    """Show how the columns of `?dataset=&version=` become numbers, those whose names contain `q`."""
    home = access.get_project(request.user, project, Action.WRITE)
    given = request.GET
    number = given.get("version", "")
    version = datasets.find_version(
        home, given.get("dataset", ""), int(number) if number.isdecimal() and len(number) < 10 else None
    )
    profile = version.profile if version is not None else None
    has_choices = profile is not None and profile.has_pipeline and profile.images is None
    found = (
        preprocessing.choices(profile, given.getlist("feature"), given.get("target", ""), given.get("q", ""))
        if profile is not None and has_choices
        else []
    )
    context = {
        "is_ready": profile is not None,
        "has_choices": has_choices,
        "choices": found[:SHOWN],
        "more": max(len(found) - SHOWN, 0),
        "text": given.get("q", ""),
    }
    return render(request, "experiments/form/preprocessing_columns.html", context)


urls = [path("p/<slug:project>/experiments/columns", columns, name="experiment_columns")]
