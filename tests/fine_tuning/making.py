"""Makes registered versions with a signature and a stored layer summary, without training any."""

from typing import Any

from jobs.messages.reports.model_summary import GraphNode, ModelSummary
from jobs.models import ModelVersion, Project, User
from tests import factories
from tests.reports import store_report


def node(path: str, kind: str = "Dense", parameters: int = 0, width: int = 64, **more: Any) -> GraphNode:
    """Return a graph node after the one before it."""
    fields = {"trainable": parameters, "bytes": 4 * parameters, "output_bytes": 4 * width, "is_layer": True}
    shapes = ((None, width),)
    name = path.rpartition("/")[2]
    body = {"name": name, "path": path, "kind": kind, "parameters": parameters, "output_shapes": shapes}
    return GraphNode.model_validate({**body, **fields, **more})


def chain(*nodes: GraphNode) -> tuple[GraphNode, ...]:
    """Return the nodes in a chain: each reads the one before it."""
    return tuple(
        graph_node.model_copy(update={"inputs": (i - 1,) if i else ()}) for i, graph_node in enumerate(nodes)
    )


DIGITS = chain(
    node("input", "InputLayer"),
    node("normalize", "Normalization"),
    node("dense_1", parameters=64 * 32 + 32, width=32),
    node("norm_1", "BatchNormalization", parameters=4 * 32, width=32, trainable=2 * 32),
    node("dense_2", parameters=32 * 16 + 16, width=16),
    node("output", parameters=16 * 10 + 10, width=10),
)


def summary(graph: tuple[GraphNode, ...] = DIGITS) -> ModelSummary:
    return ModelSummary(
        name="m1", parameters=1, trainable=1, bytes=4, layers=(), text="", graph=graph
    )  # fmt: skip


def make_version(
    *, project: Project, by: User, name: str = "digits", graph: tuple[GraphNode, ...] = DIGITS, **fields: Any
) -> ModelVersion:
    """Make a candidate that takes the bundled digits, with a layer summary."""
    model = factories.make_model(name, project=project, by=by)
    version = model.versions.get()
    job = factories.make_job(
        project=project, by=by, kind="register", state="completed", payload={"version": version.pk}
    )
    store_report(job, summary(graph), role="summary", name="summary.json")
    fields = {"signature": SIGNATURE, **fields}
    ModelVersion.objects.filter(pk=version.pk).update(**fields)
    version.refresh_from_db()
    return version


SIGNATURE = {
    "inputs": [{"name": "input", "dtype": "float32", "shape": [8, 8, 1]}],
    "outputs": [{"name": "output", "dtype": "float32", "shape": [10]}],
}


def tuned(number: int = 1, *, model: str = "digits", **parts: Any) -> dict[str, Any]:
    """Return a spec that trains a version further, with the model's `args`."""
    section = {"kind": "version", "model": model, "number": number, "args": parts.pop("args", {})}
    return {"version": 1, "data": {"dataset": "digits"}, "model": section, "fit": {"epochs": 2}, **parts}
