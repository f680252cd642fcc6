"""Reports a short task's steps, and interrupts it between them if a pause or stop was requested."""

from workers.engine.report import Report, TaskInterrupted


class Steps:
    """Counts and logs a task's steps.

    Args:
        report: receives progress and log lines.
        total: how many steps there are.
    """

    def __init__(self, report: Report, total: int) -> None:
        self._report = report
        self._total = total
        self._started = 0

    def begin(self, description: str) -> None:
        """Report that the previous step is done and log the next one.

        Raises:
            TaskInterrupted: a pause or stop was requested; a resumed task starts from its first step.
        """
        self._report.progress(self._started, self._total, "steps")
        request = self._report.request()
        if request in ("pause", "stop"):
            raise TaskInterrupted(request)
        self._started += 1
        self._report.log(description)
        self._report.phase("working")

    def done(self) -> None:
        """Report that the last step is done."""
        self._report.progress(self._total, self._total, "steps")
