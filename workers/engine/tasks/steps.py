"""The steps of a short task: each is progress, and between two of them the task may be told to end."""

from workers.engine.report import Report, Yielding


class Steps:
    """Announces one step after the other of `total`."""

    def __init__(self, report: Report, total: int) -> None:
        self._report = report
        self._total = total
        self._begun = 0

    def begin(self, what: str) -> None:
        """Say that the step before is done and what comes now.

        Raises:
            Yielding: the task was asked to end; it starts anew when it is resumed.
        """
        self._report.progress(self._begun, self._total, "step")
        request = self._report.request()
        if request in ("pause", "stop"):
            raise Yielding(request)
        self._begun += 1
        self._report.log(what)

    def done(self) -> None:
        """Say that the last step is done."""
        self._report.progress(self._total, self._total, "step")
