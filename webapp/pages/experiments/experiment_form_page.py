"""Renders the form that creates and revises experiments."""

import json
from collections.abc import ItemsView
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse

from jobs.models import Experiment, Project
from jobs.queries.registry.registry import model_names
from jobs.queries.runs.offered_devices import OfferedDevices, offered_devices
from jobs.queries.runs.workers import live_pools
from jobs.spec.formats.importing import READERS, Reader
from jobs.spec.problems import Problem
from jobs.spec.sections.version_model import VERSION
from jobs.spec.templates import TEMPLATES
from jobs.spec.templates.info import TemplateInfo
from webapp.forms.experiments.experiment import advice, rows, start
from webapp.forms.experiments.experiment.advice import PolicyCard
from webapp.forms.experiments.experiment.description import Field, RowKind, Section
from webapp.forms.experiments.experiment.sections import SECTIONS
from webapp.pages.experiments.opened_settings import OpenedSettings
from webapp.pages.experiments.target_doubts import TargetDoubts
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    crumbs,
    render_page,
    url,
)
from webapp.template_context import Context

Json = dict[str, Any]


@dataclass(frozen=True)
class ExperimentFormPage(Context):
    """The form that creates or revises an experiment."""

    project: Project
    experiment: Experiment | None
    entries: Json
    problems: tuple[Problem, ...]
    is_unsaved: bool
    sections: tuple[Section, ...]
    space_kinds: tuple[RowKind, ...]
    layout_fields: tuple[Field, ...]
    override_fields: tuple[Field, ...]
    objective_fields: tuple[Field, ...]
    templates: list[TemplateInfo]
    policies: list[PolicyCard]
    devices: OfferedDevices
    known: dict[str, list[str]]
    import_formats: ItemsView[str, Reader]
    browser_context: Json
    crumbs: Crumbs
    doubts: TargetDoubts | None
    opened: OpenedSettings | None


def show_form(
    request: Request,
    project: Project,
    experiment: Experiment | None,
    entries: Json,
    *,
    problems: tuple[Problem, ...] = (),
    is_unsaved: bool = False,
    is_data_chosen: bool = True,
    last_used: str = "",
    status: int = 200,
    doubts: TargetDoubts | None = None,
    opened: OpenedSettings | None = None,
) -> HttpResponse:
    """Show the form with its entries, and the problems in a refused one.

    Code is built for a data set that a person has chosen, and not for a proposed one: see `is_data_chosen`;
    `last_used` is the data set that was chosen in the last experiment with the code.
    """
    trail = [("Experiments", url("experiments", project.slug))]
    if experiment is not None:
        trail.append((experiment.name, url("experiment", project.slug, experiment.pk)))
    devices = offered_devices()
    context = ExperimentFormPage(
        project=project,
        experiment=experiment,
        entries=entries,
        problems=problems,
        is_unsaved=is_unsaved or bool(problems),
        sections=SECTIONS,
        space_kinds=rows.SPACE,
        layout_fields=rows.LAYOUT,
        override_fields=rows.OVERRIDES,
        objective_fields=rows.OBJECTIVES,
        templates=[*TEMPLATES.values(), VERSION],
        policies=advice.policy_cards(project),
        devices=devices,
        known={
            "pools": live_pools(),
            "gpus": list(devices.wanted),
            "devices": list(devices.meshes),
            "labels": list(devices.labels),
            "models": model_names(project),
        },
        import_formats=READERS.items(),
        browser_context={
            **start.context_for_browser(request.user, project),
            "experiment": experiment.pk if experiment is not None else None,
            "isDataChosen": is_data_chosen,
            "lastUsed": last_used,
        },
        crumbs=crumbs(*trail, "Edit" if experiment else "New"),
        doubts=doubts,
        opened=opened,
    )
    return render_page(request, "experiments/form.html", context, status=status)


def spec_text(spec: Any) -> str:
    """Return a spec as the form shows it."""
    return json.dumps(spec, indent=2)
