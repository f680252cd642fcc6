"""What the engine says while it works, and what it may be asked meanwhile.

The runner implements `Report` over its event pipe; a test implements it with a list.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from jobs.contracts.events import Axis, ExecutionState, Level, Role, TrialEnd
from jobs.contracts.pruning import Curve, Verdict

Why = Literal["pause", "stop"]
Request = Literal["checkpoint", "pause", "stop"]


class Report(Protocol):
    """The engine's only way to the outside. No call blocks."""

    folder: str
    """The attempt's own folder: artifacts are written below it."""

    def of_trial(self, number: int) -> "Report":
        """Return a report whose every word is about this trial of a search."""

    def trial_begins(self) -> None:
        """Say that the work on the trial begins."""

    def trial_ends(
        self,
        error: Exception | None = None,
        *,
        state: TrialEnd = "completed",
        verdict: Verdict | None = None,
    ) -> None:
        """Say that the work on the trial is over; `verdict` says why it was pruned, `error` why it failed."""

    def progress(self, done: float, total: float, unit: str) -> None:
        """Say that work went on. Silence means a hang, so call it only after real work."""

    def metric(
        self, x: float, values: Mapping[str, float], *, axis: Axis = "epoch", execution: int | None = None
    ) -> None:
        """Add one point to each named series."""

    def log(self, line: str, *, level: Level = "info", source: str = "engine") -> None:
        """Write a line into the job's log."""

    def warning(self, code: str, message: str) -> None:
        """Say something that the user should know, once, under a stable code."""

    def execution(
        self,
        execution: int,
        state: ExecutionState,
        *,
        score: float | None = None,
        best_epoch: int | None = None,
        epochs: int = 0,
        metrics: Mapping[str, float] | None = None,
        best: Sequence[tuple[int, float]] = (),
    ) -> None:
        """Say how one training of a trial stands."""

    def checkpoint(
        self, folder: str, *, step: int, epoch: int, manifest: str, size: int, execution: int | None = None
    ) -> None:
        """Say that a checkpoint folder stands complete under its final name."""

    def artifact(self, role: Role, path: str, *, name: str, meta: dict[str, Any] | None = None) -> None:
        """Say that the file `path`, relative to the folder, is complete."""

    def request(self) -> Request | None:
        """Return what was asked of the task since, if anything; `checkpoint` is returned once."""

    def recorded(self) -> Sequence[str]:
        """Return the folders of this task's newest checkpoints that are recorded, the newest last.

        They may be relative to the folder of all checkpoints.
        """

    def curves(self) -> Sequence[Curve]:
        """Return how far trainings came that ended elsewhere, as told since the last call."""


class Yielding(BaseException):
    """The checkpoint asked for stands: leave the task. Not an error, so no `except Exception` holds it."""

    def __init__(self, why: Why) -> None:
        super().__init__(why)
        self.why: Why = why


def finite(value: float) -> float | None:
    """Return `value`, or None where JSON has no name for it."""
    return float(value) if math.isfinite(value) else None
