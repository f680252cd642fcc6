"""Writes a design into an experiment: into its draft, or into a new experiment."""

from typing import Any, NamedTuple

from jobs.actions.experiments import experiments as actions
from jobs.errors import BadInput
from jobs.models import Experiment, User
from jobs.queries.experiments.experiments import newest_names
from jobs.spec.plan import names
from jobs.spec.problems import Problem
from jobs.spec.sections.mesh import MeshSpec
from webapp.forms.experiments.experiment import conflict
from webapp.forms.experiments.mesh_design.entries import FIELDS
from webapp.pages.experiments.mesh_design.sources import Source

Json = dict[str, Any]


class Saved(NamedTuple):
    """An experiment whose draft has the design, and sentences about what else was written."""

    experiment: Experiment
    notes: tuple[str, ...]


def save_design(user: User, source: Source, mesh: MeshSpec, *, batch: int | None, seen: int | None) -> Saved:
    """Write a mesh into the draft of the source's experiment, or of a new one.

    Args:
        user: the acting user.
        source: the spec for which the mesh was designed.
        mesh: the mesh.
        batch: the batch for which it was designed, if that is another one than in the spec.
        seen: the version of the experiment that the user has seen; None accepts any.

    Raises:
        Forbidden: the user may not write in the project.
        StaleState: the experiment was changed meanwhile. Nothing was written.
        BadInput: the experiment's draft is no object, so it has no place for a mesh.
    """
    experiment = source.experiment
    body = source.body if experiment is None else conflict.saved_version(experiment)["spec"]
    if not isinstance(body, dict):
        message = "the draft is no JSON object: correct it in the experiment's form first"
        raise BadInput(message, [Problem("/spec", message)])
    spec, notes = spec_with_design(body, mesh, batch)
    if experiment is None:
        name = names.free_name(names.name_experiment(spec), newest_names(source.project))
        experiment = actions.create(source.project, name=name, draft=spec, by=user)
    else:
        actions.change(experiment, draft=spec, seen=seen, by=user)
    return Saved(experiment, tuple(notes))


def spec_with_design(body: Json, mesh: MeshSpec, batch: int | None) -> tuple[Json, list[str]]:
    """Return a spec with the design, and sentences about other changes.

    Fields of the mesh that no design sets are kept.
    """
    before, notes = body.get("mesh"), []
    kept = {name: before[name] for name in before if name not in FIELDS} if isinstance(before, dict) else {}
    spec = {**body, "mesh": {**kept, **mesh_json(mesh)}}
    if batch is not None:
        spec["fit"] = {**_section(body, "fit"), "batch_size": batch}
        notes.append(f"The batch size is {batch:,} now, as in the design.")
    slots = mesh.size()
    if mesh.simulate is None and mesh.kind != "cpu" and _section(body, "resources").get("slots", 1) != slots:
        spec["resources"] = {**_section(body, "resources"), "slots": slots}
        notes.append(f"A trial takes {slots} slots now, one for each device.")
    return spec, notes


def _section(body: Json, name: str) -> Json:
    section = body.get(name)
    return section if isinstance(section, dict) else {}


def mesh_json(mesh: MeshSpec) -> Json:
    """Return the fields of a mesh that a design sets, as in a spec."""
    fields = mesh.model_dump(mode="json", exclude_none=True, include=set(FIELDS))
    # Without it the default axis would divide the batch. An axis of None is a dimension that stays whole.
    layout = [{"match": rule.match, "axes": list(rule.axes)} for rule in mesh.layout]
    return {**fields, "batch_axis": mesh.batch_axis, "layout": layout}
