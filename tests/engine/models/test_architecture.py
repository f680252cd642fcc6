"""The graph in a model's summary: layers, operations, connections, sizes, and inner models."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import pytest

from jobs.messages.reports.model_summary import GraphNode
from tests.present import present
from workers.engine.models import architecture
from workers.engine.models.architecture import architecture_of
from workers.engine.tasks.artifacts import summary_of

layers = keras.layers


def by_path(model: Any) -> tuple[Sequence[GraphNode], dict[str, GraphNode]]:
    nodes = architecture_of(model).nodes
    return nodes, {node.path: node for node in nodes}


def names_of(nodes: Sequence[GraphNode], node: GraphNode) -> set[str]:
    return {nodes[at].name for at in node.inputs}


def test_branches_and_merges_are_the_inputs_of_nodes() -> None:
    x = keras.Input((4,), name="x")
    a = layers.Dense(8, name="a")(x)
    b = layers.Dense(8, name="b")(x)
    merged = layers.Add(name="merge")([a, b])
    y = layers.Dense(2, name="y")(merged + a)
    nodes, layers_by_path = by_path(keras.Model(x, y))
    assert names_of(nodes, layers_by_path["merge"]) == {"a", "b"}
    sums = [node for node in nodes if not node.is_layer]
    assert [(node.kind, names_of(nodes, node)) for node in sums] == [("Add", {"merge", "a"})]
    assert names_of(nodes, layers_by_path["y"]) == {sums[0].name}
    assert all(at < number for number, node in enumerate(nodes) for at in node.inputs)


def test_sizes_of_a_layer_are_of_its_weights_and_of_its_outputs_for_one_row() -> None:
    x = keras.Input((8, 8, 3))
    y = layers.Conv2D(4, 3, name="conv", dtype="mixed_float16")(x)
    y = layers.BatchNormalization(name="norm")(y)
    _, layers_by_path = by_path(keras.Model(x, y))
    conv, norm = layers_by_path["conv"], layers_by_path["norm"]
    assert (conv.parameters, conv.trainable, conv.bytes) == (112, 112, 448)
    assert (conv.output_shapes, conv.output_bytes) == (((None, 6, 6, 4),), 6 * 6 * 4 * 2)
    assert (norm.parameters, norm.trainable) == (16, 8)
    assert conv.dtypes == ("float32",)


def test_a_size_that_varies_leaves_the_memory_of_the_outputs_unknown() -> None:
    x = keras.Input((None, 3))
    _, layers_by_path = by_path(keras.Model(x, layers.Dense(2, name="d")(x)))
    assert layers_by_path["d"].output_shapes == ((None, None, 2),)
    assert layers_by_path["d"].output_bytes is None


def test_inner_models_have_their_layers_below_them() -> None:
    inner = keras.Sequential([keras.Input((4,)), layers.Dense(5, name="in")], name="inner")
    middle_in = keras.Input((4,))
    middle = keras.Model(middle_in, layers.Dense(2, name="end")(inner(middle_in)), name="middle")
    x = keras.Input((4,))
    nodes, layers_by_path = by_path(keras.Model(x, middle(x)))
    assert nodes[present(layers_by_path["middle/inner/in"].parent)].path == "middle/inner"
    assert (layers_by_path["middle"].is_model, layers_by_path["middle"].parameters) == (True, 25 + 12)
    assert nodes[present(layers_by_path["middle/end"].parent)].path == "middle"
    # The input of an inner model has no connection to the nodes around it.
    for node in nodes:
        assert all(nodes[at].parent == node.parent for at in node.inputs)


def test_a_shared_layer_is_one_node_that_is_called_twice() -> None:
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    shared = layers.Dense(4, name="shared")
    y = layers.Concatenate(name="both")([shared(a), shared(shared(b))])
    nodes, layers_by_path = by_path(keras.Model([a, b], y))
    assert layers_by_path["shared"].calls == 3
    assert names_of(nodes, layers_by_path["shared"]) == {"a", "b", "shared"}
    assert layers_by_path["shared"].output_bytes == 3 * 16


def test_a_sequential_is_a_chain() -> None:
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, name="a"), layers.Dense(2, name="b")])
    nodes, layers_by_path = by_path(model)
    assert names_of(nodes, layers_by_path["b"]) == {"a"}
    assert summary_of(model).graph == nodes


def test_a_very_large_model_is_described_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(architecture, "MAX_NODES", 5)
    inner = keras.Sequential([keras.Input((4,)), *(layers.Dense(4) for _ in range(6))])
    model = keras.Sequential([keras.Input((4,)), inner, layers.Dense(2)])
    nodes, omitted = architecture_of(model)
    assert (len(nodes), omitted) == (5, 5)
    assert all(at < 5 for node in nodes for at in node.inputs)


def test_the_summary_of_a_quantized_model_has_its_bytes() -> None:
    model = keras.Sequential([keras.Input((64,)), layers.Dense(64, name="d")])
    model(np.ones((1, 64)))
    before = summary_of(model)
    model.quantize("int8")
    after = summary_of(model)
    assert present(after.graph)[-1].bytes < present(before.graph)[-1].bytes / 3
    assert present(after.graph)[-1].dtypes == ("float32", "int8")
