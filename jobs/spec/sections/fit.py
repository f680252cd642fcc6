"""Declares the spec section `fit`: epochs, optimizer, learning rate, early stopping."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from jobs.spec.base import Argument, Frozen
from jobs.spec.problems import message_of
from jobs.spec.sections.augmentation import Augmentation
from jobs.spec.sections.optimizers import ARGUMENTS, Optimizer
from jobs.spec.sections.schedules import Schedule, WarmupCosine

ClassWeights = Literal["none", "balanced"] | dict[str, Annotated[float, Field(ge=0)]]
KERAS_BATCH_SIZE = 32
"""With which Keras' `fit` trains if none is given."""
CLIPS = ("clipnorm", "clipvalue", "global_clipnorm")


class EarlyStopping(Frozen):
    """Stop when `monitor` has not improved by `min_delta` for `patience` epochs."""

    monitor: str | None = Field(
        default=None,
        description="absent: the measure that chooses the best epoch, such as the search's objective",
    )
    patience: int = Field(default=5, ge=0)
    min_delta: float = Field(default=0.0, ge=0)
    restore_best: bool = True


class Ema(Frozen):
    """An exponential moving average of the weights: `momentum` × old + (1 - `momentum`) × new, each step.

    The averages are validated after each epoch, choose the best epoch and become the final model. Training
    continues with the original weights, unless `overwrite_frequency` replaces them by the averages after
    every so many steps.
    """

    momentum: float = Field(default=0.99, ge=0, lt=1)
    overwrite_frequency: int | None = Field(default=None, ge=1)


class FitSpec(Frozen):
    """All settings of `fit` except data and model. One epoch is one pass over the training rows."""

    epochs: int = Field(default=100, ge=1, le=100_000)
    batch_size: int = Field(
        default=128,
        ge=1,
        le=1_048_576,
        description=f"absent for own code: {KERAS_BATCH_SIZE}, as in Keras and KerasTuner",
    )
    optimizer: Optimizer = "adam"
    optimizer_args: dict[str, Argument] = Field(default_factory=dict)
    learning_rate: float = Field(default=0.001, gt=0)
    schedule: Schedule | None = Field(default=None, description="a constant rate if absent")
    loss: str | None = Field(default=None, description="from the task if absent")
    metrics: tuple[str, ...] | None = Field(default=None, description="from the task if absent")
    early_stopping: EarlyStopping | None = None
    clipnorm: float | None = Field(default=None, gt=0, description="largest norm of each gradient")
    clipvalue: float | None = Field(default=None, gt=0, description="largest entry of each gradient")
    global_clipnorm: float | None = Field(default=None, gt=0, description="of all gradients together")
    ema: Ema | None = None
    class_weights: ClassWeights | None = None
    augmentation: Augmentation | None = None
    shuffle: bool = True
    steps_per_execution: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="training steps in one compiled call; on one device, 1 chooses the number by timing",
    )
    # NumPy, which Keras seeds as well, accepts 32 bits.
    seed: int = Field(default=0, ge=0, lt=2**32)

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        clips = [name for name in CLIPS if getattr(self, name) is not None]
        # Keras refuses more than one, but only when the optimizer is built.
        if len(clips) > 1:
            raise ValueError(f"{clips[-1]}: choose one of {' and '.join(clips)}")
        if isinstance(self.schedule, WarmupCosine):
            over = self.schedule.epochs or self.epochs
            if self.schedule.warmup_epochs >= over:
                raise ValueError(
                    f"schedule.warmup_epochs: {self.schedule.warmup_epochs:g} epochs of warm-up leave "
                    f"nothing of {over:g} epochs to decay over"
                )
        return self

    @model_validator(mode="after")
    def _check_optimizer_arguments(self) -> Self:
        try:
            self.optimizer_arguments()
        except ValidationError as error:
            item = error.errors()[0]
            where = ".".join(str(part) for part in item["loc"])
            names = ", ".join(sorted(ARGUMENTS[self.optimizer].model_fields))
            message = f"{message_of(item)} (got {item.get('input')!r})"
            if item["type"] == "extra_forbidden":
                others = [name for name, kind in ARGUMENTS.items() if where in kind.model_fields]
                have = f"; {', '.join(others)} {'have' if len(others) > 1 else 'has'}" if others else ""
                message = f"{self.optimizer} has no {where!r}{have}"
            raise ValueError(f"optimizer_args.{where}: {message}; {self.optimizer} takes {names}") from error
        return self

    def optimizer_arguments(self) -> dict[str, Any]:
        """Return the given optimizer arguments, converted to their types."""
        arguments = ARGUMENTS[self.optimizer].model_validate(self.optimizer_args)
        return arguments.model_dump(exclude_unset=True, exclude_none=True)
