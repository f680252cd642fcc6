"""Reads the design of a request, and writes the address of one."""

import json
from typing import NamedTuple

from jobs.queries.experiments.mesh_design import Subject, pool_device
from jobs.spec.problems import Problem
from jobs.spec.sections.mesh import MeshSpec
from webapp.forms.experiments.mesh_design.commands import apply_command
from webapp.forms.experiments.mesh_design.entries import MeshEntries, parse_mesh, parse_mesh_text
from webapp.forms.experiments.mesh_design.view_entries import ViewEntries
from webapp.pages.experiments.mesh_design.saving import mesh_json
from webapp.pages.experiments.mesh_design.sources import Source
from webapp.pages.shortcuts import Request, url

MAX_ADDRESS = 7000
"""Characters of an address that proxies accept. A longer design is in the form alone."""


class State(NamedTuple):
    """The design of a request."""

    entries: MeshEntries
    mesh: MeshSpec | None
    problems: list[Problem]
    before: MeshSpec | None
    plan: str


def read_state(request: Request, source: Source, subject: Subject, view: ViewEntries) -> State:
    """Return the design in a request, after the command of its button."""
    values = request.POST if request.method == "POST" else request.GET
    text = values.get("before", "")
    before = parse_mesh_text(text, "/before") if text else saved_mesh(source)
    if request.method != "POST":
        text = request.GET.get("mesh", "")
        mesh = parse_mesh_text(text) if text else saved_mesh(source) or _starting_mesh(subject)
        problems = parse_mesh(mesh.model_dump(mode="json"))[1]
        return State(MeshEntries.from_mesh(mesh), mesh, problems, before, request.GET.get("plan", ""))
    weights = subject.facts.weights if subject.facts is not None else ()
    outcome = apply_command(
        request.POST.get("do", ""),
        MeshEntries.from_post(request.POST),
        weights,
        before=before,
        variable=view.variable,
    )
    posted, wrong = parse_mesh(outcome.entries.mesh_json())
    before = outcome.before if outcome.before is not None else before
    return State(outcome.entries, posted, wrong, before, outcome.plan)


def saved_mesh(source: Source) -> MeshSpec | None:
    """Return the mesh in the spec; None if it has none, or one that is invalid, which its form shows."""
    return None if source.saved_mesh is None else parse_mesh(source.saved_mesh)[0]


def _starting_mesh(subject: Subject) -> MeshSpec:
    """Return a mesh to begin with: the GPUs of the pool's largest worker, else two simulated devices."""
    pool = subject.spec.resources.pool if subject.spec is not None else "default"
    device = pool_device(pool, "gpu")
    if device is not None and device.devices > 1:
        return MeshSpec(devices="gpu", shape=(device.devices,), axis_names=("data",))
    return MeshSpec(shape=(2,), axis_names=("data",), simulate=2)


def design_link(source: Source, view: ViewEntries, mesh: MeshSpec, before: MeshSpec | None, plan: str) -> str:
    """Return the address of a design; without the mesh to compare if it would be too long, or none."""
    base = {**source.query, "mesh": compact_json(mesh)}
    compared = "" if before is None or before == saved_mesh(source) else compact_json(before)
    for query in ({**base, "before": compared, "plan": plan, **view.query()}, {**base, **view.query()}):
        address = url("mesh", **query)
        if len(address) <= MAX_ADDRESS:
            return address
    return ""


def compact_json(mesh: MeshSpec) -> str:
    """Return a mesh as JSON for an address."""
    return json.dumps(mesh_json(mesh), separators=(",", ":"), ensure_ascii=False)
