"""The plans for a mesh that one click chooses. Each is a function of the mesh and the model's variables.

A plan keeps the number and the kind of the devices. It may change the axes, and replaces all layout rules.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from jobs.spec.plan.layout_rules import suggest_layout
from jobs.spec.plan.mesh.patterns_of_paths import MAX_PATTERN, rules_for_paths
from jobs.spec.plan.mesh.placement import Axes, Weight
from jobs.spec.sections.mesh import MeshSpec

DATA, MODEL = "data", "model"
NORMALIZED = ("gamma", "beta", "moving_mean", "moving_variance")
PROJECTIONS = ("query", "key", "value")


class LayoutPlan(NamedTuple):
    """A plan that a person can choose.

    Attributes:
        name: its name in addresses.
        label: its name for people.
        help: its effect in a sentence.
        source: where the method is described.
        make: returns the mesh with its layout.
    """

    name: str
    label: str
    help: str
    source: str
    make: Callable[[MeshSpec, Sequence[Weight]], MeshSpec]


def data_parallel(mesh: MeshSpec, weights: Sequence[Weight]) -> MeshSpec:  # noqa: ARG001
    """Return a mesh with one axis, which divides each batch. Every device has the whole model.

    After each step the gradients of all devices are added by an all-reduce, so all copies stay equal.

    Source: Goyal et al., Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour (2017), section 4.
    """
    return _on_one_axis(mesh)


def last_dimension(mesh: MeshSpec, weights: Sequence[Weight]) -> MeshSpec:
    """Return a mesh whose second axis divides the last dimension of each kernel and bias that is divisible.

    Source: the rule of thumb in Keras' guide to its distribution API, "Distribution with Keras"; see
    `suggest_layout`.
    """
    mesh, axis = with_model_axis(mesh)
    named = {re.escape(weight.path): weight for weight in weights if weight.shape}
    able = [weight.variable for pattern, weight in named.items() if len(pattern) <= MAX_PATTERN]
    # One rule for each variable becomes few patterns.
    wanted = {named[rule.match].path: rule.axes for rule in suggest_layout(mesh, able, axis)}
    return _with_layout(mesh, wanted, weights)


def alternating(mesh: MeshSpec, weights: Sequence[Weight]) -> MeshSpec:
    """Return a mesh whose second axis divides dense layers and attention as Megatron-LM does.

    Of two dense layers in succession, the first is divided by columns (its outputs) and the second by rows
    (its inputs), so nothing is exchanged between them: the results are added once behind the second. An
    attention's query, key and value are divided by heads, its output projection by rows. Embeddings of a
    vocabulary are divided by words. Convolutions, recurrent layers and normalizations of whole layers stay
    whole, as does all that is not divisible; a batch normalization between both layers is divided like their
    units. A dense layer without a partner is divided by columns.

    Source: Shoeybi et al., Megatron-LM: Training Multi-Billion Parameter Language Models Using Model
    Parallelism (2019), section 3.
    """
    mesh, axis = with_model_axis(mesh)
    divider = _Alternation(mesh.axis(axis), axis)
    return _with_layout(mesh, divider.axes_of(weights), weights)


def fully_sharded(mesh: MeshSpec, weights: Sequence[Weight]) -> MeshSpec:
    """Return a mesh with one axis that divides each batch, and each variable's largest divisible dimension.

    Weights, gradients and optimizer variables need 1/n of the memory on each of n devices. XLA gathers a
    layer's whole weights before it is computed, forward and backward, and adds the gradients by a
    reduce-scatter, or an all-reduce with a slice behind it. The gathered weights are temporary; XLA decides
    when they are freed, so the peak may be higher than with PyTorch's FSDP, which frees them after each
    layer. About 1.5 times the bytes of data parallel training are exchanged.

    Source: Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models (2020),
    stage 3.
    """
    mesh = _on_one_axis(mesh)
    size = mesh.size()
    wanted: dict[str, Axes] = {}
    for weight in weights:
        divisible = [i for i, length in enumerate(weight.shape) if length and length % size == 0]
        if divisible:
            # The first of the largest ones.
            at = max(divisible, key=lambda i: (weight.shape[i], -i))
            wanted[weight.path] = _at(at, len(weight.shape), DATA)
    return _with_layout(mesh, wanted, weights)


PLANS: dict[str, LayoutPlan] = {
    plan.name: plan
    for plan in (
        LayoutPlan(
            "data_parallel",
            "Data parallel",
            "Each device has the whole model and a part of each batch. For models that fit on one device.",
            "Goyal et al. 2017",
            data_parallel,
        ),
        LayoutPlan(
            "last_dimension",
            "Last dimension",
            "A second axis divides the outputs of each layer. A rule of thumb that suits most models.",
            "Keras' guide",
            last_dimension,
        ),
        LayoutPlan(
            "alternating",
            "Columns, then rows",
            "Dense layers and attention are divided in pairs, with one exchange for each pair.",
            "Megatron-LM 2019",
            alternating,
        ),
        LayoutPlan(
            "fully_sharded",
            "Fully sharded",
            "Each device has 1/n of everything, and gathers a layer when it needs it. Saves the most memory.",
            "ZeRO 2020, FSDP",
            fully_sharded,
        ),
    )
}


def with_model_axis(mesh: MeshSpec) -> tuple[MeshSpec, str]:
    """Return a mesh that has an axis beside that of the batch, and the axis' name.

    Devices on one axis are arranged in two, of which the second is the smaller one: its devices exchange
    more.
    """
    beside = next((name for name in mesh.axis_names if name != mesh.batch_axis), None)
    if beside is not None and mesh.batch_axis is not None:
        return mesh, beside
    devices = mesh.size()
    columns = max(n for n in range(1, math.isqrt(devices) + 1) if devices % n == 0)
    # Two or three devices, or another prime number: all of them divide the model.
    columns = columns if columns > 1 else devices
    return _with_axes(mesh, (devices // columns, columns), (DATA, MODEL)), MODEL


def resize(mesh: MeshSpec, devices: int) -> MeshSpec | None:
    """Return a mesh of another number of devices, whose batch axis has become longer or shorter.

    None: the other axes need more devices, or do not divide the number.
    """
    if mesh.batch_axis is None:
        return mesh if devices == mesh.size() else None
    others = mesh.size() // mesh.batch_shards()
    if devices % others:
        return None
    at = mesh.axis_names.index(mesh.batch_axis)
    shape = (*mesh.shape[:at], devices // others, *mesh.shape[at + 1 :])
    other = _changed(mesh, shape=shape, simulate=None if mesh.simulate is None else devices)
    # It has the same rules, so they need not be matched again.
    other.matched.update(mesh.matched)
    return other


def _on_one_axis(mesh: MeshSpec) -> MeshSpec:
    return _with_axes(mesh, (mesh.size(),), (DATA,))


def _with_axes(mesh: MeshSpec, shape: tuple[int, ...], names: tuple[str, ...]) -> MeshSpec:
    return _changed(mesh, shape=shape, axis_names=names, batch_axis=DATA, layout=())


def _with_layout(mesh: MeshSpec, wanted: dict[str, Axes], weights: Sequence[Weight]) -> MeshSpec:
    return _changed(mesh, layout=rules_for_paths(wanted, [weight.path for weight in weights]))


def _changed(mesh: MeshSpec, **fields: object) -> MeshSpec:
    # Validated again; a copy would also share the cache of matched rules.
    return MeshSpec.model_validate({**mesh.model_dump(), **fields})


def _at(position: int, dimensions: int, axis: str) -> Axes:
    return tuple(axis if i == position else None for i in range(dimensions))


class _Alternation:
    """Divides dense layers in pairs, and attentions by heads."""

    def __init__(self, size: int, axis: str) -> None:
        self.size, self.axis = size, axis
        self.wanted: dict[str, Axes] = {}

    def axes_of(self, weights: Sequence[Weight]) -> dict[str, Axes]:
        """Return the axes of the variables to divide, by path."""
        layers: dict[str, dict[str, Weight]] = {}
        for weight in weights:
            layers.setdefault(weight.layer, {})[weight.kind] = weight
        dense: list[tuple[str, dict[str, Weight]]] = []
        for name, parts in layers.items():
            if self._is_dense(parts):
                dense.append((name, parts))
            elif not self._is_batch_normalization(parts) or not dense:
                self._divide_chain(dense)
                dense = []
                self._divide_other(name, parts, layers)
            else:
                dense.append((name, parts))
        self._divide_chain(dense)
        return self.wanted

    def _divide_chain(self, chain: list[tuple[str, dict[str, Weight]]]) -> None:
        """Divide dense layers in succession, two by two; batch normalizations may be between them."""
        column: dict[str, Weight] | None = None
        between: list[dict[str, Weight]] = []
        for _, parts in chain:
            if not self._is_dense(parts):
                between.append(parts)
            elif column is not None and self._fits(column["kernel"], parts["kernel"]):
                self._divide_columns(column)
                for normalization in between:
                    self._divide(normalization.values(), 0)
                self._divide([parts["kernel"]], 0)
                column, between = None, []
            else:
                if column is not None:
                    self._divide_columns(column)
                column, between = parts, []
        if column is not None:
            self._divide_columns(column)

    def _fits(self, first: Weight, second: Weight) -> bool:
        return first.shape[-1] == second.shape[0] and first.shape[-1] % self.size == 0

    def _divide_columns(self, parts: dict[str, Weight]) -> None:
        if parts["kernel"].shape[-1] % self.size == 0:
            self._divide([parts["kernel"]], 1)
            self._divide([parts["bias"]] if "bias" in parts else [], 0)

    def _divide_other(
        self, name: str, parts: dict[str, Weight], layers: dict[str, dict[str, Weight]]
    ) -> None:
        parent, _, last = name.rpartition("/")
        kernel = parts.get("kernel")
        if last in PROJECTIONS and kernel is not None and len(kernel.shape) == 3:
            # Without its output projection the heads are not added up again, so both are divided or neither.
            output = layers.get(f"{parent}/attention_output", {}).get("kernel")
            if output is not None and output.shape[0] == kernel.shape[1] and kernel.shape[1] % self.size == 0:
                self._divide([kernel], 1)
                self._divide([parts["bias"]] if "bias" in parts else [], 0)
        elif last == "attention_output" and kernel is not None and len(kernel.shape) == 3:
            if kernel.shape[0] % self.size == 0:
                self._divide([kernel], 0)
        elif "embeddings" in parts and "position" not in name:
            self._divide([parts["embeddings"]], 0)

    def _divide(self, weights: Iterable[Weight], at: int) -> None:
        for weight in weights:
            if weight.shape[at] % self.size == 0:
                self.wanted[weight.path] = _at(at, len(weight.shape), self.axis)

    @staticmethod
    def _is_dense(parts: dict[str, Weight]) -> bool:
        kernel = parts.get("kernel")
        return kernel is not None and len(kernel.shape) == 2 and "recurrent_kernel" not in parts

    @staticmethod
    def _is_batch_normalization(parts: dict[str, Weight]) -> bool:
        return "moving_mean" in parts and set(parts) <= set(NORMALIZED)
