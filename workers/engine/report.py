"""Defines the interface through which a task reports events and receives requests.

The runner implements `Report` with its event pipe, tests with a list.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, SupportsFloat

from jobs.messages.events import Axis, ExecutionState, Level, PhaseName, Role, TrialEnd
from jobs.spec.sections.baseline import Baseline
from jobs.spec.sections.pruning import Curve, Verdict
from jobs.spec.space.search_space import Space, Values

StopReason = Literal["pause", "stop"]
Request = Literal["checkpoint", "pause", "stop"]


class Report(Protocol):
    """The only connection between a task and the process that runs it. No call blocks."""

    folder: str
    """Folder of the attempt; artifact paths are relative to it."""

    def for_trial(self, number: int) -> "Report":
        """Return a report whose events belong to trial `number` in the search."""

    def trial_started(self) -> None:
        """Report that the trial has started."""

    def trial_finished(
        self,
        error: Exception | None = None,
        *,
        state: TrialEnd = "completed",
        verdict: Verdict | None = None,
    ) -> None:
        """Report that the trial has ended.

        Args:
            error: why it failed; None if it did not fail.
            state: final state, used only without an error.
            verdict: why it was pruned; None if it was not pruned.
        """

    def progress(self, done: float, total: float, unit: str) -> None:
        """Report progress. A watchdog ends tasks that report none, so call it only after real work.

        Args:
            done: units done; may have a fraction.
            total: units planned.
            unit: its name, such as `epochs`.
        """

    def phase(self, name: PhaseName) -> None:
        """Report that work begins whose progress is not known, such as compiling.

        It lasts until the next progress or phase. A watchdog ends tasks whose phase takes too long.
        """

    def metric(
        self, x: float, values: Mapping[str, float], *, axis: Axis = "epoch", execution: int | None = None
    ) -> None:
        """Add one point at `x` to each series named in `values`.

        Args:
            x: position on the axis; epochs count from 1.
            values: value by series name.
            axis: what `x` counts.
            execution: the execution number; None outside a search.
        """

    def log(self, line: str, *, level: Level = "info", source: str = "engine") -> None:
        """Append a line to the job's log."""

    def warning(self, code: str, message: str) -> None:
        """Show a warning to the user, once for each code and message."""

    def declared(self, rows: Space, values: Values, refused: Mapping[str, str]) -> None:
        """Report hyperparameters that a trial's code has asked for and that the search's space lacks.

        Args:
            rows: those that can be searched.
            values: their values in this trial.
            refused: why others cannot be searched, by name.
        """

    def baseline(self, baseline: Baseline) -> None:
        """Report the constant prediction's score on the validation rows of an execution."""

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
        """Report one execution's state in the trial.

        Args:
            execution: its number.
            state: its state.
            score: objective at the best epoch.
            best_epoch: counted from 1.
            epochs: epochs trained.
            metrics: the best epoch's metrics by name.
            best: (epoch, value) for each epoch that improved the objective; pruners compare these.
        """

    def checkpoint(
        self, folder: str, *, step: int, epoch: int, manifest: str, size: int, execution: int | None = None
    ) -> None:
        """Report a committed checkpoint.

        Args:
            folder: its final path.
            step: training steps completed.
            epoch: epochs completed.
            manifest: its manifest file's SHA-256.
            size: bytes in all its files.
            execution: the execution number; None outside a search.
        """

    def resumed(self, *, epoch: int, saved: str, loaded: str, execution: int | None = None) -> None:
        """Report that a training continues from a checkpoint.

        Args:
            epoch: epochs completed.
            saved: SHA-256 of the weights in the checkpoint, as its writer recorded it.
            loaded: SHA-256 of the weights that the training continues with.
            execution: the execution number; None outside a search.
        """

    def artifact(self, role: Role, path: str, *, name: str, meta: dict[str, Any] | None = None) -> None:
        """Report that the file `path`, relative to `folder`, is complete.

        Args:
            role: the file's purpose.
            path: the file's path, relative to `folder`.
            name: under which it is offered for download.
            meta: JSON values that are stored with it.
        """

    def request(self) -> Request | None:
        """Return the pending request, if any. `checkpoint` is returned only once."""

    def recorded(self) -> Sequence[str]:
        """Return the folders with this task's newest checkpoints that the database has recorded, newest last.

        Paths may be relative to the folder with all checkpoints.
        """

    def curves(self) -> Sequence[Curve]:
        """Return other executions' learning curves received since the last call."""


class TaskInterrupted(BaseException):
    """The task stops because a pause or stop was requested; its checkpoint is committed.

    It is not an error, so it derives from `BaseException`: no `except Exception` must catch it.

    Attributes:
        reason: the request that caused it.
    """

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason: StopReason = reason


def finite_or_none(value: SupportsFloat) -> float | None:
    """Return `value` as a float, or None if it is NaN or infinite, which JSON cannot represent."""
    number = float(value)
    return number if math.isfinite(number) else None
