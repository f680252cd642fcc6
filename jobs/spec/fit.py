"""How one model is fitted."""

from typing import Any, Literal

from pydantic import Field

from jobs.spec.base import Frozen

Optimizer = Literal["adam", "adamw", "nadam", "rmsprop", "sgd", "adagrad", "lion"]


class EarlyStopping(Frozen):
    """Stop when `monitor` has not improved by `min_delta` for `patience` epochs."""

    monitor: str = "val_loss"
    patience: int = Field(default=5, ge=0)
    min_delta: float = Field(default=0.0, ge=0)
    restore_best: bool = True


class FitSpec(Frozen):
    """Everything `fit` needs beside data and model. One epoch is one pass over the training part."""

    epochs: int = Field(default=100, ge=1, le=100_000)
    batch_size: int = Field(default=128, ge=1, le=1_048_576)
    optimizer: Optimizer = "adam"
    optimizer_args: dict[str, Any] = Field(default_factory=dict)
    learning_rate: float = Field(default=0.001, gt=0)
    loss: str | None = Field(default=None, description="from the task if absent")
    metrics: tuple[str, ...] | None = Field(default=None, description="from the task if absent")
    early_stopping: EarlyStopping | None = None
    clipnorm: float | None = Field(default=None, gt=0)
    class_weights: Literal["balanced"] | dict[str, float] | None = None
    shuffle: bool = True
    steps_per_execution: int = Field(default=1, ge=1, le=10_000)
    seed: int = Field(default=0, ge=0, lt=2**32)
