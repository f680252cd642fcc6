"""Writes a run's failed tests to a file, so that `.ci/run` can repeat each once."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

OPTION = "--failed-tests"


class Outcome(NamedTuple):
    """How a run ended."""

    exit_code: int
    reports: dict[str, str]
    """The failed tests by id, each with its report."""
    uncollected: tuple[str, ...] = ()
    """Files that could not be collected."""

    @classmethod
    def read(cls, file: Path) -> "Outcome":
        """Read a file of `--failed-tests`; without one, the run has not reached its end."""
        if not file.exists():
            return cls(pytest.ExitCode.INTERNAL_ERROR, {})
        return cls(**json.loads(file.read_text()))

    @property
    def is_complete(self) -> bool:
        """Whether all tests ran, and nothing but a failed test made the run fail."""
        if self.uncollected:
            return False
        return self.exit_code == pytest.ExitCode.OK or (
            self.exit_code == pytest.ExitCode.TESTS_FAILED and bool(self.reports)
        )


class FailedTests:
    """The pytest plugin: `--failed-tests=FILE` receives an `Outcome` as JSON.

    make replaces pytest's exit code by its own, so the file has it as well.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._session: pytest.Session | None = None
        self._reports: dict[str, str] = {}
        self._uncollected: list[str] = []

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            captured = "\n".join(f"--- {title}\n{text}" for title, text in report.sections)
            earlier = self._reports.get(report.nodeid, "")
            self._reports[report.nodeid] = f"{earlier}{report.when}: {report.longreprtext}\n{captured}"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._uncollected.append(report.nodeid)

    def pytest_unconfigure(self) -> None:
        """Write the file once the exit code is final."""
        if self._session is not None:
            outcome = Outcome(int(self._session.exitstatus), self._reports, tuple(self._uncollected))
            self._file.write_text(json.dumps(outcome._asdict()))
