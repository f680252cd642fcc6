"""How far a trial is: the epochs of all its executions, told as one number."""

from collections.abc import Callable, Iterable

from workers.engine.report import Report


class Progress:
    """Told by each execution how far it is. One that stops early shortens what there is to do.

    Args:
        executions: their numbers.
        epochs: what each of them may train.
    """

    def __init__(self, report: Report, executions: Iterable[int], epochs: int) -> None:
        self._report = report
        self._done: dict[int, float] = dict.fromkeys(executions, 0)
        self._planned = dict.fromkeys(self._done, epochs)

    def of(self, execution: int) -> Callable[[float], None]:
        """Return what takes the epochs that an execution has done, a fraction within one."""

        def tell(epochs: float) -> None:
            self._done[execution] = epochs
            self._report.progress(sum(self._done.values()), sum(self._planned.values()), "epochs")

        return tell

    def end(self, execution: int, epochs: int) -> None:
        """Note that an execution is over after so many epochs."""
        self._planned[execution] = epochs
        self.of(execution)(epochs)
