"""Defines the summary of a model: its size and its layers."""

from pydantic import Field

from jobs.contracts.model_reports.base import ModelReport


class VariableSummary(ModelReport):
    """One variable of a layer."""

    path: str
    shape: tuple[int, ...]
    dtype: str


class LayerSummary(ModelReport):
    """One layer of a model."""

    name: str
    kind: str
    output_shape: tuple[int | None, ...] | None = Field(description="Null if the layer was never called.")
    parameters: int
    variables: tuple[VariableSummary, ...] = ()

    @property
    def dtypes(self) -> list[str]:
        """Return the types in which its variables are stored, each once."""
        return list(dict.fromkeys(variable.dtype for variable in self.variables))


class ModelSummary(ModelReport):
    """The parameters and layers of a model, and the summary that Keras prints."""

    name: str
    parameters: int
    trainable: int
    bytes: int = Field(description="Of all variables in memory.")
    layers: tuple[LayerSummary, ...]
    text: str
