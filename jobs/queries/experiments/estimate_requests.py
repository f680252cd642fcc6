"""Reads the requests for estimates for meshes, and refuses those that no worker could answer."""

from typing import Any

from jobs.errors import BadInput
from jobs.models import Project, User, Worker
from jobs.queries.data import datasets
from jobs.queries.experiments import plan
from jobs.queries.experiments.mesh_estimates import EstimateRequest, request_of
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.labels import has_labels
from jobs.spec.problems import Problem

MAX_DEVICES = 64
"""The most CPU devices that are simulated."""
SECTIONS = ("/spec/data", "/spec/model", "/spec/fit", "/spec/precision", "/spec/mesh/layout", "/spec/version")
"""The parts of a spec on which an estimate depends. Its devices are simulated, whatever the mesh asks for."""


def read_request(
    project: Project, body: Any, *, by: User, compiles: bool = True, device_bytes: int | None = None
) -> EstimateRequest:
    """Return the estimate for a JSON body as a spec.

    Args:
        project: in which the job runs.
        body: the spec as parsed JSON. Of a search, the largest model is estimated, as far as it is known.
        by: the acting user.
        compiles: whether the training step is compiled.
        device_bytes: the memory of one device, to find the largest batch by the compiled step; None for that
            of the smallest device that the mesh may have, if live workers report it.

    Raises:
        BadInput: the spec has problems that concern the estimate, or its model has no training step.
    """
    if device_bytes is not None and not compiles:
        message = (
            "finds the largest batch, for which the step is compiled: leave it out, or set compile to true"
        )
        raise BadInput(message, [Problem("/device_gib", message)])
    checked = plan.validate_spec(project, body, by=by, with_plan=False)
    found = [problem for problem in checked.problems if problem.pointer.startswith(SECTIONS)]
    if checked.spec is None or found:
        # A spec that cannot be read may have problems in any section.
        invalid = found or checked.problems
        raise BadInput(invalid[0].message, invalid)
    spec = checked.spec
    _require_step(spec)
    data = spec.required_data
    row = datasets.find_version(project, data.dataset, data.dataset_version)
    profile = row.profile if row is not None else None
    if row is None or profile is None:
        message = f"{data.dataset} has no version that is ready"
        raise BadInput(message, [Problem("/spec/data/dataset", message)])
    size = device_bytes or _memory_of_devices(spec)
    return request_of(project, spec, row, profile, compiles=compiles, device_bytes=size)


def _memory_of_devices(spec: ExperimentSpec) -> int | None:
    """Return the memory of the smallest device that a mesh may have; None if no worker reports one.

    Devices of a CPU share the memory of their machine.
    """
    mesh = spec.mesh
    if mesh is None or mesh.kind == "cpu":
        return None
    sizes = [
        int(device["memory_bytes"])
        for worker in Worker.objects.live(spec.resources.pool)
        if has_labels(worker.labels, spec.resources.labels or {})
        for device in worker.devices
        if device.get("memory_bytes")
        and (device["name"] in mesh.names or not mesh.names)
        and device["name"].startswith(f"{mesh.kind}:")
    ]
    return min(sizes, default=None)


def _require_step(spec: ExperimentSpec) -> None:
    info = spec.model.info
    if info.trains_itself or not info.by_gradient:
        message = f"{info.label} has no training step of Keras, so there is nothing to estimate"
        raise BadInput(message, [Problem("/spec/model", message)])
    if spec.mesh is not None and spec.mesh.size() > MAX_DEVICES:
        message = (
            f"shape {list(spec.mesh.shape)} has {spec.mesh.size()} devices; an estimate simulates at most "
            f"{MAX_DEVICES}"
        )
        raise BadInput(message, [Problem("/spec/mesh/shape", message)])
