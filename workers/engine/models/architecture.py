"""Describes a model's graph: its layers and operations, their sizes, and their connections."""

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import keras
import numpy as np

from jobs.messages.reports.model_summary import GraphNode
from workers.engine.models import keras_private
from workers.engine.models.graph import graph_of
from workers.engine.models.precision import needs_gpu_in_float16

MAX_NODES = 20_000
"""Maximum number of nodes that are described, so that a page can read the summary."""


class Architecture(NamedTuple):
    """A model's described nodes, and how many exceed the maximum."""

    nodes: tuple[GraphNode, ...]
    omitted: int


class _Inside(NamedTuple):
    """A model whose nodes are to be described: its own node's index and path."""

    model: Any
    parent: int | None
    path: str


def architecture_of(model: Any) -> Architecture:
    """Return a model's nodes, and then those in the models inside it, level by level."""
    nodes: list[GraphNode] = []
    omitted = 0
    # A model without anything to train, such as trees, has no part that was frozen.
    may_be_frozen = bool(model.trainable_variables)
    # A list of models to describe instead of recursion, which deeply nested models would exhaust.
    todo = [_Inside(model, None, "")]
    for inside in todo:
        operations = _operations(inside.model)
        room = max(MAX_NODES - len(nodes), 0)
        omitted += max(len(operations) - room, 0)
        begin = len(nodes)
        calls = _calls(inside.model)
        index = {id(operation): begin + at for at, operation in enumerate(operations[:room])}
        for operation in operations[:room]:
            node = _node(operation, calls.get(id(operation), []), index, inside)
            if may_be_frozen and node.is_layer and node.parameters and not operation.trainable:
                node = node.model_copy(update={"frozen": True})
            if node.is_model:
                todo.append(_Inside(operation, len(nodes), f"{node.path}/"))
            nodes.append(node)
    return Architecture(tuple(nodes), omitted)


def bytes_of(variables: Iterable[Any]) -> int:
    """Return how many bytes variables have in memory."""
    return sum(math.prod(v.shape) * np.dtype(str(v.dtype)).itemsize for v in variables)


def _operations(model: Any) -> list[Any]:
    """Return a model's layers and operations, each after its inputs."""
    # A Sequential that was never called has layers without a graph.
    return list(getattr(graph_of(model), "operations", model.layers))


def _calls(model: Any) -> dict[int, list[Any]]:
    """Return the calls for each operation inside a model, by the operation's id."""
    nodes_of_layer: dict[int, list[Any]] = {}
    for nodes in keras_private.calls_by_depth(graph_of(model)):
        for node in nodes:
            nodes_of_layer.setdefault(id(node.operation), []).append(node)
    return nodes_of_layer


def _node(operation: Any, calls: list[Any], index: dict[int, int], inside: _Inside) -> GraphNode:
    outputs = [tensor for call in calls for tensor in call.output_tensors]
    weights = getattr(operation, "weights", ())
    variables = getattr(operation, "variables", ())
    return GraphNode(
        name=operation.name,
        path=inside.path + operation.name,
        kind=type(operation).__name__,
        is_layer=isinstance(operation, keras.Layer),
        is_model=isinstance(operation, keras.Model) and bool(_operations(operation)),
        parent=inside.parent,
        inputs=tuple(dict.fromkeys(_inputs(calls, index))),
        output_shapes=tuple(tuple(tensor.shape) for tensor in (calls[0].output_tensors if calls else ())),
        parameters=_count(weights),
        trainable=_count(getattr(operation, "trainable_variables", ())),
        bytes=bytes_of(variables),
        output_bytes=_bytes_per_row(outputs),
        dtypes=tuple(dict.fromkeys(str(v.dtype) for v in variables)),
        calls=max(len(calls), 1),
        needs_gpu_in_float16=needs_gpu_in_float16(operation),
    )


def _inputs(calls: list[Any], index: dict[int, int]) -> Iterator[int]:
    for call in calls:
        for tensor in call.input_tensors:
            # The input of a nested model belongs to the model around it.
            source = index.get(id(keras_private.operation_of(tensor)))
            if source is not None:
                yield source


def _count(variables: Iterable[Any]) -> int:
    return sum(math.prod(v.shape) for v in variables)


def _bytes_per_row(tensors: list[Any]) -> int | None:
    """Return how many bytes tensors have for one row; None if a size varies or the values have none."""
    total = 0
    for tensor in tensors:
        sizes, dtype = tensor.shape[1:], str(tensor.dtype)
        if None in sizes or dtype == "string":
            return None
        total += math.prod(sizes) * np.dtype(dtype).itemsize
    return total if tensors else None
