"""Ends one trial of a task without the others."""

from collections.abc import Callable

from workers.engine.errors import CodeFatalFailure, affects_process
from workers.engine.report import Report


def result_or_failure[T](report: Report, train: Callable[[], T]) -> T | None:
    """Return the result of a trial; None if it failed, which is reported as its end.

    Raises:
        CodeFatalFailure: user code ends the search.
        Exception: an error after which later trials of this process would fail too, such as out of memory.
    """
    try:
        return train()
    # A trial may run user code, which may raise anything.
    except Exception as error:
        if affects_process(error) or isinstance(error, CodeFatalFailure):
            raise
        report.trial_finished(error)
        return None
