"""Finds settings that a person should reconsider before submitting a spec."""

import math
from collections.abc import Iterator

from jobs.spec.checks import fit as fit_checks
from jobs.spec.checks.data import TRAINING_ONLY
from jobs.spec.data.encoding import (
    roles_differ,
)
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.policies import POLICIES, needs_double
from jobs.spec.problems import Problem, warning
from jobs.spec.sections import measures
from jobs.spec.sections.after import Retrain
from jobs.spec.sections.mesh import MeshSpec

USUAL_FACTOR: float = Retrain.model_fields["epochs_factor"].default


def warnings(spec: ExperimentSpec, profile: Profile | None) -> list[Problem]:
    """Return settings that are valid but probably not intended."""
    if spec.model.info.trains_itself:
        return [*_search_warnings(spec)]
    return [
        *_unknown_memory_warnings(spec, profile),
        *_search_warnings(spec),
        *fit_checks.warnings(spec, profile),
        *_after_warnings(spec),
        *_device_warnings(spec),
    ]


def _unknown_memory_warnings(spec: ExperimentSpec, profile: Profile | None) -> Iterator[Problem]:
    checked = "the memory and the layout" if spec.mesh else "the memory"
    # Trees take the memory of the training rows, like the data set itself.
    if spec.model.info.layers is None and spec.model.info.by_gradient:
        yield warning(
            f"/model/{spec.model.named_by}",
            f"{checked} of {spec.model.info.name} cannot be computed before its first training, so the job "
            "may fail when it starts",
            "Run one training before a search, and read its memory in the tab System",
        )
    if profile is not None and roles_differ(spec, profile):
        yield warning(
            "/data",
            f"target, features or task are not those of the data set, so {checked} cannot be checked and "
            "the job may fail when it starts",
            "Run one training before a search, or upload a version of the data set with these roles",
        )


def _search_warnings(spec: ExperimentSpec) -> Iterator[Problem]:
    search = spec.search
    if search is None:
        return
    for pointer, objective in spec.placed_objectives():
        best = measures.direction(objective.metric)
        is_known = not spec.model.info.own_names or measures.is_known(objective.metric)
        if is_known and best != objective.direction:
            yield warning(
                f"{pointer}/direction",
                f"{'higher' if best == 'max' else 'lower'} values of {objective.metric} are better, so this "
                "search looks for the worst",
                f"Set the direction to {best}",
            )
    if search.trainings() == 1:
        yield warning(
            "/search/executions_per_trial",
            "with one execution per trial a lucky seed can make a trial the best",
            "Use 2 or more executions per trial to see the effect of the seed as a spread",
        )
    if (
        "epochs" in map(spec.model.info.fit_field, (row.name for row in search.space))
        and spec.fit.early_stopping is None
    ):
        yield warning(
            "/search/space",
            "without early stopping trials with more epochs train longer, and can be the best for this alone",
            "Add early stopping, or remove epochs from the search space",
        )


def _after_warnings(spec: ExperimentSpec) -> Iterator[Problem]:
    retrain = spec.after.retrain
    if retrain is None:
        return
    if retrain.include_validation and retrain.epochs_factor > 1:
        # int(best × factor) exceeds best once best × (factor − 1) is 1. Without the subtraction, rounding
        # would make it 6 epochs instead of 5 under a factor of 1.2.
        least = math.ceil(1 / (retrain.epochs_factor - 1) - 1e-9)
        # The usual factor is explained at its field: the default must not warn about itself.
        if retrain.epochs_factor < USUAL_FACTOR or least > retrain.epochs_cap:
            yield warning(
                "/after/retrain/epochs_factor",
                f"int(best epoch × {retrain.epochs_factor:g}) adds no epoch if the best epoch is below "
                f"{least}, so the final training is then no longer on its additional rows",
                "Use a factor of 2 to add epochs after every best epoch, or keep it if the best one is late",
            )
    if (
        spec.search is not None
        and not spec.model.info.own_names
        and not any(p.name not in TRAINING_ONLY for p in spec.search.space)
        and spec.after.ensemble
    ):
        yield warning(
            "/after/ensemble",
            "the members will be the same model with other seeds, so the ensemble will probably gain little",
            "Search a hyperparameter of the model or the optimizer, such as units or learning_rate",
        )


_SLOWER_ON_CPUS = {
    "mixed_float16": "makes training faster on GPUs and TPUs",
    "mixed_bfloat16": "makes training faster on GPUs and TPUs",
    "float8": "makes large layers faster on GPUs from 2022 on",
}


def _device_warnings(spec: ExperimentSpec) -> Iterator[Problem]:
    mesh, policy = spec.mesh, spec.precision.policy
    asks_for_gpu = mesh is None and spec.resources.gpu is not None
    if policy in _SLOWER_ON_CPUS and not asks_for_gpu and (mesh is None or mesh.devices == "cpu"):
        yield warning(
            "/precision/policy",
            f"{policy} {_SLOWER_ON_CPUS[policy]}, but slower on CPUs",
            "Choose float32 unless the pool has GPUs or TPUs",
        )
    if policy == "float8":
        yield warning(
            "/precision/policy",
            f"float8 is for {POLICIES[policy].layers}",
            "Leave it if most of the model's weights are in dense layers, else choose mixed_bfloat16",
        )
    if needs_double(spec.precision):
        yield warning(
            "/precision/policy",
            "float64 needs twice the memory, the columns are stored in float32, and the prediction server "
            "computes in float32",
            "Use it to check whether rounding matters, and choose float32 for the model that is served",
        )
    yield from _product_warnings(spec)
    if mesh is None:
        return
    if mesh.simulate is not None:
        yield warning(
            "/mesh/simulate",
            "simulated devices share the machine's cores, so the results are correct, but training is slower",
            "Use them to test a layout, and train on real devices or without a mesh",
        )
        if spec.resources.slots > 1:
            yield warning(
                "/resources/slots",
                f"a simulated mesh uses one slot, so {spec.resources.slots - 1} of the "
                f"{spec.resources.slots} would be reserved without use",
                "Set slots to 1",
            )
    yield from _axis_warnings(mesh)


def _axis_warnings(mesh: MeshSpec) -> Iterator[Problem]:
    """Yield a warning if an axis divides neither batches nor variables."""
    used = {mesh.batch_axis, *(axis for rule in mesh.layout for axis in rule.axes)}
    unused = [name for name in mesh.axis_names if name not in used and mesh.axis(name) > 1]
    if not unused:
        return
    devices = mesh.size()
    working = devices // math.prod(mesh.axis(name) for name in unused)
    if working == 1:
        yield warning(
            "/mesh/shape",
            f"there is no batch axis and no layout rule, so all {devices} devices compute the same",
            "Set the batch axis to divide the batch, or add a layout rule to divide the weights",
        )
        return
    names = " and ".join(map(repr, unused))
    yield warning(
        f"/mesh/shape/{mesh.axis_names.index(unused[0])}",
        f"no layout rule has the axis {names}, so {devices - working} of the {devices} devices repeat the "
        "work of the others",
        "Add a layout rule with this axis, such as those of Suggest rules, or leave the axis out",
    )


def _product_warnings(spec: ExperimentSpec) -> Iterator[Problem]:
    """Yield a warning if the precision of products is set, but none of them can be less precise."""
    precision, mesh = spec.precision, spec.mesh
    if precision.matmul == "default":
        return
    if mesh is not None and mesh.kind == "cpu":
        reason = "CPUs always compute products of float32 in full precision"
    elif precision.policy == "float64" and not precision.overrides:
        reason = "products of float64 always have full precision"
    else:
        return
    yield warning(
        "/precision/matmul",
        f"{precision.matmul} changes nothing: {reason}",
        "Leave it at default",
    )
