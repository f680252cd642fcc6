"""The page of the mesh designer with a design: its entries, drawings, texts and fields."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jobs import access
from jobs.access import Action
from jobs.answers.code.code import DryBuildOut
from jobs.answers.runs.shardings import ShardingsOut
from jobs.models import Job, Project
from jobs.queries.data.datasets import ready_datasets
from jobs.queries.experiments.mesh_design import Subject
from jobs.queries.runs.shardings import shardings_of
from jobs.spec.plan.mesh.layout_plans import PLANS, LayoutPlan
from jobs.spec.problems import Problem
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.templates import TEMPLATES
from jobs.states import FINAL
from webapp.forms.experiments.mesh_design.entries import KINDS, MeshEntries, RuleEntry
from webapp.forms.experiments.mesh_design.view_entries import Settings, ViewEntries, read_settings
from webapp.pages.experiments.mesh_design.builds import build_state
from webapp.pages.experiments.mesh_design.figures import DesignFigures, RuleUse, draw_design
from webapp.pages.experiments.mesh_design.saving import mesh_json, spec_with_design
from webapp.pages.experiments.mesh_design.sources import ARGUMENT, Source
from webapp.pages.experiments.mesh_design.state import State, compact_json, saved_mesh
from webapp.pages.shortcuts import Crumbs, Request, crumbs, is_partial
from webapp.template_context import Context


class RuleRow(NamedTuple):
    """A rule as it was entered, and its effect; None while an entry is wrong."""

    entry: RuleEntry
    use: RuleUse | None


class ArgumentField(NamedTuple):
    """A field for a template's argument that changes its variables."""

    name: str
    label: str
    value: Any


@dataclass(frozen=True)
class MeshPage(Context):
    """The designer with a design.

    Attributes:
        problems: of the entries.
        design: the drawings; None while an entry is wrong, or the variables are unknown.
        before_text: the mesh with which the design is compared, as JSON; empty for one device.
        before_label: its name for people.
        mesh_text: the design as JSON, to be copied; empty while an entry is wrong.
        project: the project of the spec.
        spec_text: the whole spec with the design as JSON, for estimates; empty likewise.
        link: the address of this view; empty if it is too long for one.
        version: the experiment's version that the user has seen.
        datasets: those that may be chosen; empty where the experiment has chosen one.
        build: the state of the dry build of own code; None for other models.
        is_building: whether it waits or runs.
        job: the job whose mesh it is, if any.
        shardings: what that job has measured; None also where a change alone is drawn.
    """

    source: Source
    subject: Subject
    entries: MeshEntries
    rules: Sequence[RuleRow]
    view: ViewEntries
    problems: tuple[Problem, ...]
    design: DesignFigures | None
    before_text: str
    before_label: str
    plan: str
    mesh_text: str
    project: Project
    spec_text: str
    link: str
    version: str
    plans: Sequence[LayoutPlan]
    kinds: Sequence[str]
    arguments: Sequence[ArgumentField]
    batch_size: int | None
    datasets: Sequence[str]
    build: DryBuildOut | None
    is_building: bool
    may_build: bool
    job: Job | None
    shardings: ShardingsOut | None
    crumbs: Crumbs


def mesh_page(
    request: Request, source: Source, subject: Subject, view: ViewEntries, state: State, link: str
) -> MeshPage:
    """Return the page with a design; `link` is the address of this view."""
    spec, facts, mesh = subject.spec, subject.facts, state.mesh
    # Simulated devices are a trial of the design; the figures are those of GPUs.
    kind = "gpu" if mesh is None or mesh.simulate is not None else mesh.kind
    settings = read_settings(view, batch=spec.fit.batch_size if spec is not None else 1, kind=kind)
    design = None
    if mesh is not None and spec is not None and facts is not None and facts.weights:
        design = draw_design(
            subject,
            facts,
            spec,
            mesh,
            state.before,
            view=view,
            settings=settings,
            experiment=source.experiment,
        )
    version = request.POST.get("version", "")
    if not version and source.experiment is not None:
        version = str(source.experiment.version)
    build = build_state(source, spec) if spec is not None else None
    return MeshPage(
        source=source,
        subject=subject,
        entries=state.entries,
        rules=_rule_rows(state.entries, design),
        view=view,
        problems=(*state.problems, *settings.problems),
        design=design,
        before_text=compact_json(state.before) if state.before is not None else "",
        before_label=_before_label(source, state.before),
        plan=state.plan,
        mesh_text=json.dumps(mesh_json(mesh), indent=2) if mesh is not None else "",
        project=source.project,
        spec_text=_spec_text(source, subject, mesh, settings),
        link=link,
        version=version,
        plans=list(PLANS.values()),
        kinds=KINDS,
        arguments=_argument_fields(source),
        batch_size=spec.fit.batch_size if spec is not None else None,
        datasets=ready_datasets(request.user, source.project) if "dataset" in source.query else [],
        build=build,
        is_building=build is not None and build.job is not None and build.state not in FINAL,
        may_build=access.can(request.user, source.project, Action.RUN_CODE),
        job=source.job,
        shardings=shardings_of(source.job) if source.job is not None and not is_partial(request) else None,
        crumbs=crumbs((source.label, source.back), "Mesh designer"),
    )


def _spec_text(source: Source, subject: Subject, mesh: MeshSpec | None, settings: Settings) -> str:
    if mesh is None or subject.spec is None or not isinstance(source.body, dict):
        return ""
    batch = settings.batch if settings.batch != subject.spec.fit.batch_size else None
    return json.dumps(spec_with_design(source.body, mesh, batch)[0])


def _rule_rows(entries: MeshEntries, design: DesignFigures | None) -> list[RuleRow]:
    uses = design.uses if design is not None else [None] * len(entries.rules)
    return [RuleRow(entry, use) for entry, use in zip(entries.rules, uses, strict=True)]


def _before_label(source: Source, before: MeshSpec | None) -> str:
    if before is None:
        return "one device"
    return "the saved mesh" if before == saved_mesh(source) else "the design before the last plan"


def _argument_fields(source: Source) -> list[ArgumentField]:
    """Return the fields for the whole-number arguments of a template that change its variables."""
    info = TEMPLATES.get(source.query.get("template", ""))
    if info is None:
        return []
    defaults = info.arguments().model_dump(mode="json")
    given = source.body["model"].get("args", {})
    return [
        ArgumentField(f"{ARGUMENT}{name}", about.title or name, given.get(name, defaults[name]))
        for name, about in info.arguments.model_fields.items()
        if name in info.shaping and about.annotation is int
    ]
