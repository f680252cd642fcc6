"""Learning-rate schedules: how the rate changes over a training, in epochs and as parts of the rate.

Each starts from `fit.learning_rate`. Lengths are epochs, so one schedule means the same for any batch
size; the engine turns them into steps. `fit.epochs` is what a schedule without a length spans: a
training that stops earlier, or is retrained for fewer epochs, walks the same curve less far.
"""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, field_validator

from jobs.contracts.base import Frozen

Fraction = Annotated[float, Field(ge=0, le=1)]
Epochs = Annotated[float, Field(gt=0, le=1_000_000)]
Factor = Annotated[float, Field(gt=0, lt=1)]


class Constant(Frozen):
    """The same rate all along."""

    kind: Literal["constant"]


class Cosine(Frozen):
    """Half a cosine down to `alpha` of the rate over `epochs`; Loshchilov and Hutter 2016."""

    kind: Literal["cosine"]
    epochs: Epochs | None = Field(default=None, description="fit.epochs if absent")
    alpha: Fraction = 0.0


class WarmupCosine(Frozen):
    """A straight line up from 0 over `warmup_epochs`, then a cosine down to the end of `epochs`."""

    kind: Literal["warmup_cosine"]
    warmup_epochs: Epochs = 1.0
    epochs: Epochs | None = Field(default=None, description="with the warm-up; fit.epochs if absent")
    alpha: Fraction = 0.0


class CosineRestarts(Frozen):
    """Cosines one after the other, each `t_mul` times as long and `m_mul` times as high as the last."""

    kind: Literal["cosine_restarts"]
    first_epochs: Epochs = 10.0
    t_mul: float = Field(default=2.0, ge=1, le=100)
    m_mul: float = Field(default=1.0, gt=0, le=1)
    alpha: Fraction = 0.0


class Exponential(Frozen):
    """Times `factor` over each `every` epochs, smoothly."""

    kind: Literal["exponential"]
    factor: Factor = 0.96
    every: Epochs = 1.0


class Polynomial(Frozen):
    """Down to `alpha` of the rate over `epochs`, along (1 − t)^`power`; a straight line with power 1."""

    kind: Literal["polynomial"]
    power: float = Field(default=1.0, gt=0, le=10)
    epochs: Epochs | None = Field(default=None, description="fit.epochs if absent")
    alpha: Fraction = 0.0


class Step(Frozen):
    """Times `factor` after each `every` epochs, at once."""

    kind: Literal["step"]
    factor: Factor = 0.1
    every: Epochs = 30.0


class Piecewise(Frozen):
    """Times `factor` after each of the epochs `at`."""

    kind: Literal["piecewise"]
    at: tuple[Annotated[int, Field(ge=1)], ...] = Field(min_length=1, max_length=100)
    factor: Factor = 0.1

    @field_validator("at")
    @classmethod
    def _ascend(cls, at: tuple[int, ...]) -> tuple[int, ...]:
        if any(after <= before for before, after in pairwise(at)):
            raise ValueError(f"{list(at)} must ascend")
        return at


class ReduceOnPlateau(Frozen):
    """Times `factor` when `monitor` has not improved by `min_delta` for `patience` epochs."""

    kind: Literal["reduce_on_plateau"]
    monitor: str = "val_loss"
    factor: Factor = 0.5
    patience: int = Field(default=3, ge=1, le=100_000)
    min_delta: float = Field(default=1e-4, ge=0)
    cooldown: int = Field(default=0, ge=0, le=100_000, description="epochs after a cut that do not count")
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
