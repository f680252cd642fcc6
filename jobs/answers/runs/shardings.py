"""Declares the answer about how a job's model is divided over its mesh."""

from pydantic import Field

from jobs.answers.base import Answer


class DeviceBytesOut(Answer):
    """The memory of a device during the training, without activations."""

    name: str
    bytes: int = Field(description="Weights and optimizer variables, summed over the live arrays.")


class LiveVariableOut(Answer):
    """One weight: where the design puts it, and where its live array is."""

    path: str
    shape: list[int]
    dtype: str
    rule: int | None = Field(description="Index of the layout rule that applies; null: none, so it is whole.")
    designed: list[str | None] = Field(description="The mesh axis of each dimension by the rules.")
    live: list[str | None] = Field(description="The same, read from the live array.")
    as_designed: bool
    shard_shape: list[int]
    shard_bytes: int
    devices: int = Field(description="How many devices hold a part.")


class ShardingsOut(Answer):
    """The shardings of a training's live arrays beside the designed ones, and its measured speed."""

    job: int = Field(description="The job that trained it: this job or one of its children.")
    trial: int | None = Field(description="The trial whose model was read; null outside a search.")
    attempt: int
    shape: list[int]
    axis_names: list[str]
    batch_axis: str | None
    batch_size: int
    devices: list[DeviceBytesOut]
    variables: list[LiveVariableOut]
    left_out: int = Field(description="Weights of a very large model that are not listed.")
    differences: int = Field(description="How many of the listed weights are not as designed.")
    unmatched: list[str] = Field(description="Patterns of layout rules that match no weight.")
    steps_per_second: float | None = Field(
        description="Median over the epochs, without compilation; null until one has been measured."
    )
    rows_per_second: float | None
