"""Declares each optimizer's arguments except the learning rate, with Keras' names and defaults.

Gradient clipping and weight averaging are fields in `fit`, and loss scaling is in `precision`. A test
compares these classes with Keras' optimizers.
"""

from typing import Literal

from pydantic import Field

from jobs.spec.base import Frozen

Optimizer = Literal["adam", "adamw", "nadam", "rmsprop", "sgd", "adagrad", "lion"]


class _Common(Frozen):
    weight_decay: float | None = Field(default=None, ge=0, le=1)
    # Keras refuses 1; None turns the accumulation off.
    gradient_accumulation_steps: int | None = Field(default=None, ge=2, le=10_000)


# The base class of `AdamArgs`: Nadam has Adam's arguments, except `amsgrad`.
class NadamArgs(_Common):
    """Arguments of Nadam; Dozat 2016."""

    beta_1: float = Field(default=0.9, ge=0, lt=1)
    beta_2: float = Field(default=0.999, ge=0, lt=1)
    epsilon: float = Field(default=1e-7, gt=0, le=1)


class AdamArgs(NadamArgs):
    """Arguments of Adam; Kingma and Ba 2014. `amsgrad`: Reddi et al. 2018."""

    amsgrad: bool = False


class AdamwArgs(AdamArgs):
    """Arguments of AdamW; Loshchilov and Hutter 2017."""

    weight_decay: float | None = Field(default=0.004, ge=0, le=1)


class RmspropArgs(_Common):
    """Arguments of RMSprop; Hinton, lecture 6e, 2012."""

    rho: float = Field(default=0.9, ge=0, lt=1)
    momentum: float = Field(default=0.0, ge=0, lt=1)
    epsilon: float = Field(default=1e-7, gt=0, le=1)
    centered: bool = False


class SgdArgs(_Common):
    """Arguments of stochastic gradient descent, with optional momentum."""

    momentum: float = Field(default=0.0, ge=0, lt=1)
    nesterov: bool = False


class AdagradArgs(_Common):
    """Arguments of Adagrad; Duchi, Hazan and Singer 2011."""

    initial_accumulator_value: float = Field(default=0.1, ge=0, le=1000)
    epsilon: float = Field(default=1e-7, gt=0, le=1)


class LionArgs(_Common):
    """Arguments of Lion; Chen et al. 2023."""

    # Keras refuses 0, with which Lion would be SignSGD.
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
