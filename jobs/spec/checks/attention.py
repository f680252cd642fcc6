"""Checks whether the devices compute a model's attention in float16.

JAX's own function for attention refuses float16 on CPUs. Templates compute attention step by step, so only
own code and registered versions are concerned.
"""

from collections.abc import Collection, Iterator

from jobs.spec.checks import patterns
from jobs.spec.checks.dry_build import BuiltModel
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.number_formats import FORMATS
from jobs.spec.plan.base_version import BaseVersion
from jobs.spec.policies import POLICIES, policy_of_layer
from jobs.spec.problems import Problem, warning
from jobs.spec.sections.code_model import CodeModel
from jobs.spec.sections.resources import WorkerSize

POINTER = "/precision/policy"
MOST_NAMED = 10
"""Layers that a message lists."""


def problems(spec: ExperimentSpec, built: BuiltModel | None, base: BaseVersion | None) -> Iterator[Problem]:
    """Yield the policy if a mesh of CPU devices cannot compute the model's attention in it.

    Args:
        spec: the experiment.
        built: the model that its own code builds, if that is known.
        base: the version that it trains further, if it does.
    """
    if spec.mesh is not None and spec.mesh.kind == "cpu" and _is_certain(spec):
        for sentence in _sentences(spec, built, base):
            yield Problem(POINTER, f"{sentence}, and the mesh has CPU devices; {_remedy(spec)}")


def warnings(
    spec: ExperimentSpec, built: BuiltModel | None, base: BaseVersion | None, workers: Collection[WorkerSize]
) -> Iterator[Problem]:
    """Yield the policy if the trials of a search may fail, or if no worker has another device than CPUs.

    Args:
        spec, built, base: see `problems`.
        workers: the live workers of its pool.
    """
    mesh = spec.mesh
    if (mesh is not None and mesh.kind != "cpu") or spec.resources.gpu is not None:
        return
    devices = [device for worker in workers for device in worker.devices]
    for sentence in _sentences(spec, built, base):
        if mesh is not None and not _is_certain(spec):
            effect = "and the mesh has CPU devices, so trainings fail whose values do not change this"
        elif mesh is None and workers and all(device.startswith("cpu") for device in devices):
            effect = f"and no worker of pool {spec.resources.pool} has another device, so the job fails there"
        else:
            continue
        yield warning(POINTER, f"{sentence}, {effect}", f"Do one of these: {_remedy(spec)}")


def _is_certain(spec: ExperimentSpec) -> bool:
    """Return whether the model is the described one: code may build others with other values."""
    if not isinstance(spec.model, CodeModel):
        return True
    return spec.search is None and not spec.model.hyperparameters


def _sentences(spec: ExperimentSpec, built: BuiltModel | None, base: BaseVersion | None) -> Iterator[str]:
    if names := _layers(spec, built, base):
        listed = ", ".join(names[:MOST_NAMED])
        yield f"a CPU cannot compute the attention of {spec.model.info.name} in float16 ({listed})"


def _layers(spec: ExperimentSpec, built: BuiltModel | None, base: BaseVersion | None) -> tuple[str, ...]:
    """Return the layers that compute attention in float16 by JAX's function."""
    precision = spec.precision
    if built is not None:
        # Overrides are refused for own code, and layers with a type of their own are left out of the list.
        return built.attention if POLICIES[precision.policy].computes is FORMATS["float16"] else ()
    if base is None:
        return ()
    layers = [layer.path for layer in base.layers if layer.needs_gpu_in_float16]
    try:
        policies = [policy_of_layer(path.rpartition("/")[2], precision) for path in layers]
    # `settings` reports an override that is refused.
    except patterns.UnsupportedPattern:
        return ()
    pairs = zip(layers, policies, strict=True)
    return tuple(path for path, policy in pairs if POLICIES[policy].computes is FORMATS["float16"])


def _remedy(spec: ExperimentSpec) -> str:
    layers = (
        'dtype="float32" for these layers in the code'
        if isinstance(spec.model, CodeModel)
        else "an override with float32 for these layers"
    )
    return f"use mixed_bfloat16, {layers}, or GPUs"
