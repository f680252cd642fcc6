"""Reads a registered version's layers from its summary, to plan fine-tuning."""

from collections.abc import Iterator

from jobs.messages.reports.model_summary import GraphNode, ModelSummary
from jobs.spec.plan.base_version import STATISTICS, BaseLayer, BaseVersion


def layers_of(summary: ModelSummary) -> tuple[tuple[BaseLayer, ...], tuple[str, ...], int | None]:
    """Return a model's layers, its inner models, and its head's input size."""
    graph = summary.graph
    if graph is None or summary.graph_omitted:
        # A summary from an earlier release, or of a very large model, has only the model's own layers.
        flat = tuple(
            BaseLayer(
                path=layer.name, kind=layer.kind, output_shape=layer.output_shape,
                parameters=layer.parameters, trainable=layer.parameters, types=tuple(layer.dtypes),
            )
            for layer in summary.layers
        )  # fmt: skip
        return flat, (), None
    ordered = list(_iterate_layers(graph))
    layers = tuple(_base_layer(node) for node in ordered)
    last = BaseVersion("", None, layers=layers).head
    return layers, tuple(node.path for node in graph if node.is_model), _head_features(graph, ordered, last)


def _iterate_layers(graph: tuple[GraphNode, ...]) -> Iterator[GraphNode]:
    """Yield a graph's layers, with an inner model's layers in its place."""
    children: dict[int | None, list[int]] = {}
    for index, node in enumerate(graph):
        children.setdefault(node.parent, []).append(index)
    # A list of nodes to visit: deeply nested models would exceed the limit of recursion.
    todo = list(reversed(children.get(None, [])))
    while todo:
        index = todo.pop()
        node = graph[index]
        if node.is_model:
            todo.extend(reversed(children.get(index, [])))
        elif node.is_layer and node.kind != "InputLayer":
            yield node


def _base_layer(node: GraphNode) -> BaseLayer:
    return BaseLayer(
        path=node.path,
        kind=node.kind,
        output_shape=node.output_shapes[0] if node.output_shapes else None,
        parameters=node.parameters,
        trainable=node.trainable or _estimate_trainable(node),
        types=node.dtypes,
        needs_gpu_in_float16=node.needs_gpu_in_float16,
    )


def _estimate_trainable(node: GraphNode) -> int:
    """Estimate the trainable parameters in a layer that an earlier fine-tuning has frozen."""
    if node.kind in STATISTICS:
        return 0
    # Scale, offset, and two statistics of the same size.
    return node.parameters // 2 if node.kind == "BatchNormalization" else node.parameters


def _head_features(graph: tuple[GraphNode, ...], ordered: list[GraphNode], last: int | None) -> int | None:
    if last is None or len(ordered[last].inputs) != 1:
        return None
    source = graph[ordered[last].inputs[0]]
    return source.output_shapes[0][-1] if source.output_shapes else None
