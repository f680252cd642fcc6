"""Builds the Keras model for grown trees from layers that come with Keras, so that it loads in safe mode.

All trees' nodes are the rows in a table, which an `Embedding` looks up. Each step compares
one feature with a threshold and leads to a child; siblings are neighbours in the table, and a leaf leads to
itself.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np

from jobs.spec.sections.data import Task
from workers.engine.arrays import Array
from workers.engine.errors import BadSpec
from workers.engine.models.trees.arrays import Tree
from workers.engine.models.trees.categories import TargetMeans

MAX_NODES = 1 << 24
"""The table holds numbers of nodes as float32, which is exact up to this number."""
FEATURE, THRESHOLD, LEFT, MISSING_LEFT = range(4)
"""Columns of the table."""
LINKS = {"binary": "sigmoid", "multilabel": "sigmoid", "multiclass": "softmax", "regression": "linear"}
"""From the sums of boosting to predictions. The means of forests are predictions already."""
TABLE = {"dtype": "float32", "trainable": False, "embeddings_initializer": "zeros"}
"""Thresholds and numbers of nodes would not be exact in 16 bits."""


def check_size(nodes: int) -> None:
    """Check that a model can have so many nodes.

    Raises:
        BadSpec: it has too many.
    """
    if nodes > MAX_NODES:
        raise BadSpec(
            f"the trees have {nodes:,} nodes; a model can have {MAX_NODES:,}. Set fewer epochs, fewer "
            "leaves, or more rows in a leaf"
        )


def build_trees(
    rounds: Sequence[Sequence[Tree]],
    input_shape: Sequence[int],
    task: Task,
    *,
    boosting: bool,
    name: str,
    means: TargetMeans | None = None,
) -> Any:
    """Return the functional model `m_<name>`: from raw inputs to final predictions.

    Args:
        rounds: each round's trees, with as many outputs in total in every round.
        input_shape: one row's shape.
        task: the prediction task.
        boosting: whether the rounds are summed and linked to predictions; otherwise they are averaged.
        name: the model's name, without `m_`.
        means: replace indices before the trees.

    Raises:
        BadSpec: the trees have too many nodes.
    """
    trees = [tree for round_ in rounds for tree in round_]
    check_size(sum(len(tree.feature) for tree in trees))
    roots, table, values = _table(trees)
    if not boosting:
        values = values / len(rounds)
    outputs = sum(tree.value.shape[1] for tree in rounds[0])

    inputs = keras.Input(input_shape, name="input", dtype="float32")
    x = inputs
    if len(input_shape) > 1:
        x = keras.layers.Flatten(name="flatten", dtype="float32")(x)
    if means is not None and means.blocks:
        x = keras.layers.Concatenate(name="columns", dtype="float32")(list(_with_means(x, means)))
    start = keras.layers.Embedding(1, len(trees), name="roots", **TABLE)
    first = start(keras.ops.cast(keras.ops.zeros_like(x[:, 0]), "int32"))
    node = keras.ops.cast(first, "int32")
    step = _step(x.shape[1], len(trees), len(table))
    for _ in range(max(tree.depth for tree in trees)):
        node = step([x, node])
    leaves = keras.layers.Embedding(len(table), values.shape[1], name="leaves", **TABLE)
    each_round = keras.layers.Reshape((len(rounds), outputs), name="rounds", dtype="float32")(leaves(node))
    total = keras.ops.sum(each_round, axis=1)
    link = LINKS[task] if boosting else "linear"
    predictions = keras.layers.Activation(link, name="output", dtype="float32")(total)
    model = keras.Model(inputs, predictions, name=f"m_{name}")
    start.set_weights([roots])
    step.get_layer("nodes").set_weights([table])
    leaves.set_weights([values])
    return model


def _with_means(x: Any, means: TargetMeans) -> Iterator[Any]:
    """Yield the parts of the rows, with means in place of indices."""
    start = 0
    for number, (block, table) in enumerate(zip(means.blocks, means.tables, strict=True), start=1):
        if block.start > start:
            yield x[:, start : block.start]
        layer = keras.layers.Embedding(*table.shape, name=f"means_{number}", **TABLE)
        yield layer(keras.ops.cast(x[:, block.start], "int32"))
        layer.set_weights([table])
        start = block.start + 1
    if start < x.shape[1]:
        yield x[:, start:]


def _step(features: int, trees: int, nodes: int) -> Any:
    """Return the model for one step: from the rows and their nodes in each tree to the next nodes."""
    x = keras.Input((features,), name="x", dtype="float32")
    node = keras.Input((trees,), name="node", dtype="int32")
    here = keras.layers.Embedding(nodes, 4, name="nodes", **TABLE)(node)
    value = keras.ops.take_along_axis(x, keras.ops.cast(here[:, :, FEATURE], "int32"), axis=1)
    missing = keras.ops.logical_and(keras.ops.isnan(value), here[:, :, MISSING_LEFT] > 0.5)
    goes_left = keras.ops.logical_or(value <= here[:, :, THRESHOLD], missing)
    left = keras.ops.cast(here[:, :, LEFT], "int32")
    # The right child follows the left one.
    following = left + keras.ops.cast(keras.ops.logical_not(goes_left), "int32")
    return keras.Model([x, node], following, name="step")


def _table(trees: Sequence[Tree]) -> tuple[Array, Array, Array]:
    """Return the roots, (1, trees); the table, (nodes, 4); and the values, (nodes, tree outputs)."""
    roots, tables, values, start = [], [], [], 0
    for tree in trees:
        order, position = _beside_siblings(tree)
        table = np.empty((len(order), 4), np.float32)
        table[:, FEATURE] = tree.feature[order]
        table[:, THRESHOLD] = tree.threshold[order]
        table[:, LEFT] = start + position[tree.left[order]]
        table[:, MISSING_LEFT] = tree.missing_left[order]
        roots.append(start)
        tables.append(table)
        values.append(tree.value[order])
        start += len(order)
    return np.array([roots], np.float32), np.concatenate(tables), np.concatenate(values).astype(np.float64)


def _beside_siblings(tree: Tree) -> tuple[Array, Array]:
    """Return a tree's nodes, level by level, with siblings as neighbours; and each node's place."""
    levels = [np.zeros(1, np.int32)]
    while len(inner := levels[-1][tree.left[levels[-1]] != levels[-1]]):
        levels.append(np.stack([tree.left[inner], tree.right[inner]], axis=1).ravel())
    order = np.concatenate(levels)
    position = np.empty(len(tree.feature), np.int64)
    position[order] = np.arange(len(order))
    return order, position
