"""Defines a model's summary: its size, its layers, and how they are connected."""

from pydantic import Field

from jobs.messages.reports.base import ModelReport
from jobs.spec.signature import Shape


class VariableSummary(ModelReport):
    """One variable of a layer."""

    path: str
    shape: tuple[int, ...]
    dtype: str


class LayerSummary(ModelReport):
    """One layer of a model."""

    name: str
    kind: str
    output_shape: Shape | None = Field(description="Null if the layer was never called.")
    parameters: int
    variables: tuple[VariableSummary, ...] = ()

    @property
    def dtypes(self) -> list[str]:
        """Return the types in which its variables are stored, each once."""
        return list(dict.fromkeys(variable.dtype for variable in self.variables))


class GraphNode(ModelReport):
    """A layer, an operation between layers, or a model inside the model."""

    name: str
    path: str = Field(description="Its name after those of the models that contain it, separated by `/`.")
    kind: str = Field(description="Its class, such as `Conv2D` or `Add`.")
    is_layer: bool = Field(description="False for an operation such as `x + y`, which has no weights.")
    is_model: bool = Field(default=False, description="Whether other nodes have it as their `parent`.")
    parent: int | None = Field(default=None, description="Index of the model that contains it in `graph`.")
    inputs: tuple[int, ...] = Field(
        default=(), description="Indices of the nodes whose outputs it takes, in the same model."
    )
    output_shapes: tuple[Shape, ...] = ()
    parameters: int
    trainable: int
    frozen: bool = Field(
        default=False, description="Whether training left its weights as they were, and trained others."
    )
    bytes: int = Field(description="Of its variables in memory.")
    output_bytes: int | None = Field(description="Of its outputs for one row; null if a size varies.")
    dtypes: tuple[str, ...] = Field(default=(), description="Types of its variables, each once.")
    calls: int = Field(default=1, description="How often the model calls it: more than once if it is shared.")
    needs_gpu_in_float16: bool = Field(
        default=False,
        description="Whether CPUs cannot compute it in float16; false in summaries of earlier releases.",
    )


class ModelSummary(ModelReport):
    """The parameters and layers of a model, and the summary that Keras prints."""

    name: str
    parameters: int
    trainable: int
    bytes: int = Field(description="Of all variables in memory.")
    layers: tuple[LayerSummary, ...]
    text: str
    graph: tuple[GraphNode, ...] | None = Field(
        default=None,
        description="Layers and operations of the model and of the models inside it, each after its inputs. "
        "Null in summaries of earlier releases.",
    )
    graph_omitted: int = Field(default=0, description="Number of nodes that a very large model has beyond.")
