"""Checks the settings of a spec that cannot work with any data.

They are no validators of the spec's classes, since specs that were stored before a check existed must still
be read.
"""

from collections.abc import Iterator

from jobs.contracts import patterns
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.mesh import MeshSpec
from jobs.contracts.precision import UNSUPPORTED_POLICIES, PrecisionSpec
from jobs.contracts.problems import Problem
from jobs.contracts.variables import pattern_problems


def problems(spec: ExperimentSpec) -> Iterator[Problem]:
    """Yield the settings that would make a run fail, or that would have no effect on it."""
    yield from _check_overrides(spec.precision)
    if spec.mesh is not None:
        yield from pattern_problems(spec.mesh)
        yield from _check_gpu_memory(spec.mesh)


def _check_overrides(precision: PrecisionSpec) -> Iterator[Problem]:
    for i, override in enumerate(precision.overrides):
        place = f"/precision/overrides/{i}"
        if reason := UNSUPPORTED_POLICIES.get(override.policy):
            yield Problem(f"{place}/policy", f"policy {override.policy}: {reason}")
        if reason := patterns.refusal(override.match):
            yield Problem(f"{place}/match", reason)


def _check_gpu_memory(mesh: MeshSpec) -> Iterator[Problem]:
    kind = mesh.kind
    if kind in ("cpu", "tpu"):
        sentence = f"sets the memory of GPUs, but the mesh has {kind} devices; leave it out"
        if mesh.preallocate:
            yield Problem("/mesh/preallocate", sentence)
        if mesh.memory_fraction is not None:
            yield Problem("/mesh/memory_fraction", sentence)
