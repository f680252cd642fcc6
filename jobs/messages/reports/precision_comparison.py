"""Defines the comparison of a precision with float32 that a dry run measures."""

from pydantic import Field

from jobs.messages.reports.base import FiniteOrNull
from jobs.spec.base import Frozen
from jobs.spec.sections.precision import Policy

DEFAULT_STEPS = 50
"""Training steps with each precision, unless a person chooses others."""
MOST_STEPS = 500


class PrecisionRun(Frozen):
    """The first steps of a training with one precision."""

    policy: Policy
    losses: tuple[FiniteOrNull, ...] = Field(description="The mean loss of each group of steps, in order.")
    seconds_per_step: float | None = Field(description="Without the compilation; null if only that ran.")
    variable_bytes: int = Field(description="Of the weights and the optimizer's variables, as allocated.")
    skipped_steps: int | None = Field(
        default=None, description="Because gradients overflowed; null without a dynamic loss scale."
    )
    is_finite: bool = Field(description="False: the loss became NaN or infinite, which ended the run.")


class PrecisionComparison(Frozen):
    """Two runs on the same rows and from the same initial values."""

    baseline: PrecisionRun = Field(description="In float32.")
    compared: PrecisionRun = Field(description="With the experiment's precision.")
    steps_per_loss: int = Field(description="How many steps each loss is the mean of.")
    rows: int = Field(description="The training rows that were used.")
    platform: str = Field(description="cpu, gpu or tpu.")
    hardware: str = Field(description="The device or CPU.")
