"""Describes a registered version whose weights a training starts from, without opening its file."""

from typing import NamedTuple

from jobs.spec.base import Frozen
from jobs.spec.sections.data import Task
from jobs.spec.sections.version_model import ALL, NOTHING, FineTuneArgs
from jobs.spec.signature import Shape, Signature

STATISTICS = ("Normalization",)
"""Layers whose variables are statistics: never the head."""


class BaseLayer(Frozen):
    """A version's layer that contains no other model."""

    path: str
    kind: str
    output_shape: Shape | None
    parameters: int
    trainable: int
    types: tuple[str, ...] = ()
    needs_gpu_in_float16: bool = False


class BaseVersion(NamedTuple):
    """The properties of a version that are known before its file is opened.

    Attributes:
        name: its model's name and its number, such as `digits/3`.
        signature: inputs and outputs; None until the version is validated.
        class_labels: in output order; empty if they are unknown.
        task: its kind of prediction; None if it is unknown, as for an upload.
        layers: in order, an inner model's layers in its place; empty without a summary.
        models: the inner models, which are named for all their layers.
        features: its head's input size; None if it is unknown.
    """

    name: str
    signature: Signature | None
    class_labels: tuple[str, ...] = ()
    task: Task | None = None
    layers: tuple[BaseLayer, ...] = ()
    models: tuple[str, ...] = ()
    features: int | None = None

    @property
    def head(self) -> int | None:
        """Return the head's index: the last layer with weights."""
        weighted = (
            i for i, layer in enumerate(self.layers) if layer.parameters and layer.kind not in STATISTICS
        )
        return max(weighted, default=None)

    def layers_before_head(self, args: FineTuneArgs) -> tuple[BaseLayer, ...]:
        """Return the layers that can be frozen."""
        return self.layers if args.head == "on_top" else self.layers[: self.head]

    def frozen(self, args: FineTuneArgs) -> int | None:
        """Count the frozen ones, or return None if the layer does not exist."""
        before = self.layers_before_head(args)
        if args.freeze_to in (NOTHING, ALL):
            return 0 if args.freeze_to == NOTHING else len(before)
        inside = f"{args.freeze_to}/"
        matching = [
            i
            for i, layer in enumerate(before)
            if layer.path == args.freeze_to or layer.path.startswith(inside)
        ]
        return matching[-1] + 1 if matching else None
