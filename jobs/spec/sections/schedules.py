"""Declares learning-rate schedules: factors that multiply `fit.learning_rate` over a training.

Lengths are given in epochs, so that a schedule does not depend on the batch size; the engine converts them to
steps. A schedule without a length spans `fit.epochs`, also if a training stops earlier or is retrained for
fewer epochs.
"""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, field_validator

from jobs.spec.base import Frozen

Fraction = Annotated[float, Field(ge=0, le=1)]
Epochs = Annotated[float, Field(gt=0, le=1_000_000)]
Factor = Annotated[float, Field(gt=0, lt=1)]


class Constant(Frozen):
    """The rate does not change."""

    kind: Literal["constant"]


class Cosine(Frozen):
    """Cosine decay to `alpha` × rate over `epochs`; Loshchilov and Hutter 2016."""

    kind: Literal["cosine"]
    epochs: Epochs | None = Field(default=None, description="fit.epochs if absent")
    alpha: Fraction = 0.0


class WarmupCosine(Frozen):
    """Linear warm-up from 0 over `warmup_epochs`, then cosine decay until `epochs`."""

    kind: Literal["warmup_cosine"]
    warmup_epochs: Epochs = 1.0
    epochs: Epochs | None = Field(default=None, description="including the warm-up; fit.epochs if absent")
    alpha: Fraction = 0.0


class CosineRestarts(Frozen):
    """Cosine decay with warm restarts; each cycle is `t_mul` times as long and `m_mul` times as high."""

    kind: Literal["cosine_restarts"]
    first_epochs: Epochs = 10.0
    t_mul: float = Field(default=2.0, ge=1, le=100)
    m_mul: float = Field(default=1.0, gt=0, le=1)
    alpha: Fraction = 0.0


class Exponential(Frozen):
    """Exponential decay: continuously multiplied by `factor` over each `every` epochs."""

    kind: Literal["exponential"]
    factor: Factor = 0.96
    every: Epochs = 1.0


class Polynomial(Frozen):
    """Polynomial decay to `alpha` × rate over `epochs`, along (1 − t)^`power`."""

    kind: Literal["polynomial"]
    power: float = Field(default=1.0, gt=0, le=10)
    epochs: Epochs | None = Field(default=None, description="fit.epochs if absent")
    alpha: Fraction = 0.0


class Step(Frozen):
    """Multiplied by `factor` after every `every` epochs."""

    kind: Literal["step"]
    factor: Factor = 0.1
    every: Epochs = 30.0


class Piecewise(Frozen):
    """Multiplied by `factor` after each of the epochs in `at`."""

    kind: Literal["piecewise"]
    at: tuple[Annotated[int, Field(ge=1)], ...] = Field(min_length=1, max_length=100)
    factor: Factor = 0.1

    @field_validator("at")
    @classmethod
    def _check_order(cls, at: tuple[int, ...]) -> tuple[int, ...]:
        if any(after <= before for before, after in pairwise(at)):
            raise ValueError(f"{list(at)} must be in ascending order without repetitions")
        return at


class ReduceOnPlateau(Frozen):
    """Multiplied by `factor` when `monitor` has not improved by `min_delta` for `patience` epochs."""

    kind: Literal["reduce_on_plateau"]
    monitor: str = "val_loss"
    factor: Factor = 0.5
    patience: int = Field(default=3, ge=1, le=100_000)
    min_delta: float = Field(default=1e-4, ge=0)
    cooldown: int = Field(
        default=0,
        ge=0,
        le=100_000,
        description="epochs to wait after a reduction before patience counts again",
    )
    min_learning_rate: float = Field(default=0.0, ge=0)


Schedule = Annotated[
    Constant
    | Cosine
    | WarmupCosine
    | CosineRestarts
    | Exponential
    | Polynomial
    | Step
    | Piecewise
    | ReduceOnPlateau,
    Field(discriminator="kind"),
]
KINDS: dict[str, type[Frozen]] = {
    "constant": Constant,
    "cosine": Cosine,
    "warmup_cosine": WarmupCosine,
    "cosine_restarts": CosineRestarts,
    "exponential": Exponential,
    "polynomial": Polynomial,
    "step": Step,
    "piecewise": Piecewise,
    "reduce_on_plateau": ReduceOnPlateau,
}
