"""The arguments that each optimizer takes beside the learning rate: names, bounds and defaults as Keras'.

Clipping and averaging of weights have fields of their own in `fit`; loss scaling belongs to precision.
A test holds these tables against the optimizers themselves.
"""

from typing import Literal

from pydantic import Field

from jobs.contracts.base import Frozen

Optimizer = Literal["adam", "adamw", "nadam", "rmsprop", "sgd", "adagrad", "lion"]


class _Common(Frozen):
    weight_decay: float | None = Field(default=None, ge=0, le=1)
    gradient_accumulation_steps: int | None = Field(default=None, ge=2, le=10_000)


class NadamArgs(_Common):
    """Dozat 2016."""

    beta_1: float = Field(default=0.9, ge=0, lt=1)
    beta_2: float = Field(default=0.999, ge=0, lt=1)
    epsilon: float = Field(default=1e-7, gt=0, le=1)


class AdamArgs(NadamArgs):
    """Kingma and Ba 2014; `amsgrad` after Reddi et al. 2018."""

    amsgrad: bool = False


class AdamwArgs(AdamArgs):
    """Loshchilov and Hutter 2017."""

    weight_decay: float | None = Field(default=0.004, ge=0, le=1)


class RmspropArgs(_Common):
    """Hinton's lecture 6e, 2012."""

    rho: float = Field(default=0.9, ge=0, lt=1)
    momentum: float = Field(default=0.0, ge=0, lt=1)
    epsilon: float = Field(default=1e-7, gt=0, le=1)
    centered: bool = False


class SgdArgs(_Common):
    """Gradient descent, with momentum if asked for."""

    momentum: float = Field(default=0.0, ge=0, lt=1)
    nesterov: bool = False


class AdagradArgs(_Common):
    """Duchi, Hazan and Singer 2011."""

    initial_accumulator_value: float = Field(default=0.1, ge=0, le=1000)
    epsilon: float = Field(default=1e-7, gt=0, le=1)


class LionArgs(_Common):
    """Chen et al. 2023."""

    beta_1: float = Field(default=0.9, gt=0, lt=1)
    beta_2: float = Field(default=0.99, ge=0, lt=1)


ARGUMENTS: dict[Optimizer, type[Frozen]] = {
    "adam": AdamArgs,
    "adamw": AdamwArgs,
    "nadam": NadamArgs,
    "rmsprop": RmspropArgs,
    "sgd": SgdArgs,
    "adagrad": AdagradArgs,
    "lion": LionArgs,
}
