"""Declares the answers about trials, with their executions and decisions."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from jobs.answers.base import Answer, ErrorOut, Figures, Parameter, Stored

TrialStateOut = Literal["queued", "running", "paused", "pruned", "completed", "failed", "stopped"]


class DecisionOut(Answer):
    """A decision of the search algorithm or the pruner on a trial."""

    rule: str = Field(description="The algorithm or pruner that decided.")
    rung: int | None = Field(description="The rung, from 0; null for a pruner.")
    epoch: int | None
    value: float | None = Field(description="The trial's value at that epoch.")
    threshold: float | None = Field(description="The value that was needed to continue.")
    of: int | None = Field(description="How many trials were compared.")
    execution: int | None = Field(description="The execution that was judged; null for the trial's mean.")
    promoted: bool = Field(description="Whether the trial continued.")
    time: datetime


class ExecutionOut(Answer):
    """One training of a trial."""

    execution: int = Field(description="Its number, from 1.")
    repeat: int
    fold: int | None = Field(description="The fold that is held out in cross-validation.")
    state: TrialStateOut
    score: float | None
    best_epoch: int | None
    epochs: int
    of_epochs: int | None = Field(description="The last possible epoch of a running execution.")
    seed: int
    metrics: Stored[Figures] = Field(description="Metrics at the best epoch.")


class TrialCheckpointOut(Answer):
    """The newest checkpoint of a trial."""

    execution: int | None
    step: int
    epoch: int
    bytes: int


class TrialOut(Answer):
    """A trial."""

    number: int
    state: TrialStateOut
    values: Stored[dict[str, Parameter]]
    score: float | None = Field(description="The mean over executions of each one's best epoch.")
    std: float | None
    best: bool = Field(description="Whether it is the best trial of its search.")
    scores: Stored[Figures | None] = Field(description="One value per objective, if there are several.")
    pareto: bool | None = Field(
        description="Whether no other trial is better in all objectives; null under one objective."
    )
    source: str = Field(description="algorithm, hand, or chosen: repeated from another search.")
    answered_by: int | None = Field(description="The trial of the same values whose scores it has.")
    restarts: int
    bracket: int
    rung: int
    decisions: list[DecisionOut]
    error: Stored[ErrorOut | None]
    executions: list[ExecutionOut]
    checkpoint: TrialCheckpointOut | None
    started: datetime | None
    finished: datetime | None
    seconds: float | None = Field(
        description="How long it ran, without pauses and waits; under rungs, the newest. Null before its end."
    )
