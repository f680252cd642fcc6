"""Reports a trial's progress: all its executions' epochs as one number."""

from collections.abc import Callable, Iterable

from workers.engine.report import Report


class TrialProgress:
    """Sums the epochs over a trial's executions. An execution that stops early reduces the total.

    Args:
        report: receives the progress.
        executions: their numbers.
        epochs: maximum epochs for each.
    """

    def __init__(self, report: Report, executions: Iterable[int], epochs: int) -> None:
        self._report = report
        self._done: dict[int, float] = dict.fromkeys(executions, 0)
        self._planned = dict.fromkeys(self._done, epochs)

    def update(self, execution: int, epochs: float) -> None:
        """Report the epochs that an execution has completed, with a fraction for the current one."""
        self._done[execution] = epochs
        self._report.progress(sum(self._done.values()), sum(self._planned.values()), "epochs")

    def callback_for(self, execution: int) -> Callable[[float], None]:
        """Return a function that calls `update` for this execution."""
        return lambda epochs: self.update(execution, epochs)

    def finish(self, execution: int, epochs: int) -> None:
        """Report that an execution has ended after `epochs` epochs."""
        # If it has stopped early, the rest of its epochs no longer counts as planned.
        self._planned[execution] = epochs
        self.update(execution, epochs)
