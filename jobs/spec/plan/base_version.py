"""Describes a registered version whose weights a training starts from, without opening its file."""

from collections.abc import Iterator
from typing import NamedTuple

from jobs.messages.reports.model_summary import GraphNode, ModelSummary, Shape
from jobs.spec.base import Frozen
from jobs.spec.sections.data import Task
from jobs.spec.sections.version_model import ALL, NOTHING, FineTuneArgs
from jobs.spec.signature import Signature

STATISTICS = ("Normalization",)
"""Layers whose variables are statistics: never the head."""


class BaseLayer(Frozen):
    """A layer of a version that contains no other model."""

    path: str
    kind: str
    output_shape: Shape | None
    parameters: int
    trainable: int
    types: tuple[str, ...] = ()


class BaseVersion(NamedTuple):
    """The properties of a version that are known before its file is opened.

    Attributes:
        name: its model's name and number, such as `digits/3`.
        signature: inputs and outputs; None until the version is validated.
        class_labels: in the order of its outputs; empty if they are unknown.
        task: its kind of prediction; None if it is unknown, as for an upload.
        layers: in order, those of models inside in the place of the model; empty without a summary.
        models: the models inside, which are named for all of their layers.
        features: the size of the input of its head; None if it is unknown.
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
        """Return the index of the layer that is the head: the last one with weights."""
        weighted = (
            i for i, each in enumerate(self.layers) if each.parameters and each.kind not in STATISTICS
        )
        return max(weighted, default=None)

    def layers_before_head(self, args: FineTuneArgs) -> tuple[BaseLayer, ...]:
        """Return the layers that can be frozen."""
        return self.layers if args.head == "on_top" else self.layers[: self.head]

    def frozen(self, args: FineTuneArgs) -> int | None:
        """Return how many of these are frozen; None if the layer does not exist."""
        before = self.layers_before_head(args)
        if args.freeze_to in (NOTHING, ALL):
            return 0 if args.freeze_to == NOTHING else len(before)
        inside = f"{args.freeze_to}/"
        found = [
            i for i, each in enumerate(before) if each.path == args.freeze_to or each.path.startswith(inside)
        ]
        return found[-1] + 1 if found else None


def layers_of(summary: ModelSummary) -> tuple[tuple[BaseLayer, ...], tuple[str, ...], int | None]:
    """Return the layers of a model, the models inside it, and the size of its head's input."""
    graph = summary.graph
    if graph is None or summary.graph_omitted:
        # Of an earlier release, or of a very large model: only the layers of the model itself.
        flat = tuple(
            BaseLayer(
                path=each.name, kind=each.kind, output_shape=each.output_shape, parameters=each.parameters,
                trainable=each.parameters, types=tuple(each.dtypes),
            )
            for each in summary.layers
        )  # fmt: skip
        return flat, (), None
    ordered = list(_in_order(graph))
    layers = tuple(_layer(node) for node in ordered)
    last = BaseVersion("", None, layers=layers).head
    return layers, tuple(node.path for node in graph if node.is_model), _features(graph, ordered, last)


def _in_order(graph: tuple[GraphNode, ...]) -> Iterator[GraphNode]:
    """Yield the layers of a graph, those of a model inside in its place."""
    children: dict[int | None, list[int]] = {}
    for index, node in enumerate(graph):
        children.setdefault(node.parent, []).append(index)
    # A list of nodes to visit instead of recursion, which deeply nested models would exhaust.
    todo = list(reversed(children.get(None, [])))
    while todo:
        index = todo.pop()
        node = graph[index]
        if node.is_model:
            todo.extend(reversed(children.get(index, [])))
        elif node.is_layer and node.kind != "InputLayer":
            yield node


def _layer(node: GraphNode) -> BaseLayer:
    return BaseLayer(
        path=node.path,
        kind=node.kind,
        output_shape=node.output_shapes[0] if node.output_shapes else None,
        parameters=node.parameters,
        trainable=node.trainable or _trainable_again(node),
        types=node.dtypes,
    )


def _trainable_again(node: GraphNode) -> int:
    """Estimate the trainable parameters of a layer that an earlier fine-tuning has frozen."""
    if node.kind in STATISTICS:
        return 0
    # Scale, offset, and two statistics of the same size.
    return node.parameters // 2 if node.kind == "BatchNormalization" else node.parameters


def _features(graph: tuple[GraphNode, ...], ordered: list[GraphNode], last: int | None) -> int | None:
    if last is None or len(ordered[last].inputs) != 1:
        return None
    source = graph[ordered[last].inputs[0]]
    return source.output_shapes[0][-1] if source.output_shapes else None
