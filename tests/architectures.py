"""Makes model summaries with a graph, without Keras."""

from typing import Any

from jobs.messages.reports.model_summary import GraphNode, LayerSummary, ModelSummary


def node(name: str, *inputs: int, kind: str = "Dense", parent: int | None = None, **more: Any) -> GraphNode:
    """Return a node; it is a layer with 72 parameters by default."""
    fields: dict[str, Any] = {
        "path": name, "is_layer": True, "parameters": 72, "trainable": 72, "bytes": 288, "output_bytes": 32,
        "output_shapes": ((None, 8),), "dtypes": ("float32",),
    }  # fmt: skip
    return GraphNode(name=name, kind=kind, parent=parent, inputs=inputs, **(fields | more))


def source(name: str = "input") -> GraphNode:
    """Return an input layer."""
    return node(name, kind="InputLayer", parameters=0, trainable=0, bytes=0, dtypes=())


def chain(count: int) -> list[GraphNode]:
    """Return an input and equal layers in succession."""
    return [source(), *(node(f"dense_{i}", i - 1) for i in range(1, count))]


def residual(blocks: int) -> list[GraphNode]:
    """Return an input and blocks of three nodes, each with a connection that skips two."""
    nodes = [source()]
    for block in range(blocks):
        begin = len(nodes) - 1
        nodes.append(node(f"conv_{block}", begin, kind="Conv2D"))
        nodes.append(node(f"norm_{block}", begin + 1, kind="BatchNormalization", parameters=16, bytes=64))
        add = {"is_layer": False, "parameters": 0, "bytes": 0}
        nodes.append(node(f"add_{block}", begin + 2, begin, kind="Add", **add))
    return nodes


def nested() -> list[GraphNode]:
    """Return a model with a model inside it, and one inside that."""
    return [
        source(),
        node("encoder", 0, kind="Functional", is_model=True),
        node("head", 1),
        node("first", kind="InputLayer", parent=1, path="encoder/first"),
        node("block", 3, kind="Sequential", parent=1, path="encoder/block", is_model=True),
        node("deep", parent=4, path="encoder/block/deep"),
    ]


def summary(nodes: list[GraphNode] | None, **more: Any) -> ModelSummary:
    """Return a summary with this graph; None is that of an earlier release."""
    listed = [layer for layer in nodes or chain(3) if layer.parent is None and layer.is_layer]
    rows = tuple(
        LayerSummary(name=layer.name, kind=layer.kind, output_shape=(None, 8), parameters=layer.parameters)
        for layer in listed
    )
    fields: dict[str, Any] = {
        "name": "model", "parameters": 144, "trainable": 144, "bytes": 576, "layers": rows, "text": "Model",
    }  # fmt: skip
    return ModelSummary(graph=None if nodes is None else tuple(nodes), **(fields | more))


def deep() -> list[GraphNode]:
    """Return 200 layers of different sizes: branches, repeated blocks, a long connection, a model inside."""
    nodes = residual(12)
    for width in range(30):
        begin = len(nodes) - 1
        nodes += [node(f"left_{width}", begin, kind="Conv2D", parameters=100 + width, bytes=400 + 4 * width)]
        nodes += [node(f"right_{width}", begin, kind="MaxPooling2D", parameters=0, bytes=0, dtypes=())]
        nodes += [
            node(f"both_{width}", begin + 1, begin + 2, kind="Concatenate", parameters=0, bytes=0, dtypes=())
        ]
    nodes.append(node("unet_skip", len(nodes) - 1, 5, kind="Add", is_layer=False, parameters=0, bytes=0))
    nodes.append(node("encoder", len(nodes) - 1, kind="Functional", is_model=True))
    nodes += [node(f"tail_{i}_with_a_long_name", len(nodes) - 1 + i, parameters=i) for i in range(70)]
    inner = len(nodes)
    parent = inner - 71
    nodes.append(node("first", kind="InputLayer", parent=parent, path="encoder/first", parameters=0))
    nodes += [
        node(f"in_{i}", inner + i - 1, parent=parent, path=f"encoder/in_{i}", parameters=i)
        for i in range(1, 6)
    ]
    return nodes
