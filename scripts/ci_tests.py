"""Runs a submission's tests: the first tier, and folders of the second with changes since their last run.

A test that failed is repeated once, alone, after all others. If it passes then, it is reported as flaky, and
the run passes. Exits non-zero if a test failed twice, or if a run failed for another reason.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.plugins.failed_tests import OPTION, Outcome  # noqa: E402  needs the path above
from tests.plugins.last_runs import folders_to_run  # noqa: E402

MOST_REPEATED = 20
"""With more failures a change is broken; repeating them all would only take time."""
QUIET = ("-q", "--color=no")


def main() -> int:
    """Run everything that concerns this commit; return the exit code."""
    outcomes = [_make(goal, folders) for goal, folders in _goals()]
    reports = {test: report for outcome in outcomes for test, report in outcome.reports.items()}
    is_broken = not all(outcome.is_complete for outcome in outcomes)
    failed_twice = _repeat(list(reports)) if len(reports) <= MOST_REPEATED else list(reports)
    _report_flaky({test: report for test, report in reports.items() if test not in failed_twice})
    return 1 if is_broken or failed_twice else 0


def _goals() -> list[tuple[str, list[str]]]:
    """Return the goals of make to run, with the folders of tests for each."""
    folders = folders_to_run()
    _print(f"Folders of the second tier to run: {', '.join(folders) or 'none'}.")
    goals: list[tuple[str, list[str]]] = [("test", [])]
    if folders:
        goals.append(("test-all", [f"tests/{folder}" for folder in folders]))
    return goals


def _make(goal: str, folders: list[str]) -> Outcome:
    return _run(lambda options: ["make", "--no-print-directory", goal, f"ARGS={' '.join(options + folders)}"])


def _repeat(tests: list[str]) -> list[str]:
    """Repeat tests in one process; return those that failed again, or all if the run had no end."""
    if not tests:
        return []
    _print(f"Repeating the {len(tests)} tests that failed, alone.")
    pytest_alone = ["sh", "scripts/with-postgres", sys.executable, "-m", "pytest", "-n0"]
    outcome = _run(lambda options: [*pytest_alone, *options, *tests])
    if outcome.exit_code == pytest.ExitCode.OK:
        return []
    return list(outcome.reports) or tests


def _run(command_with: Callable[[list[str]], list[str]]) -> Outcome:
    """Run a command that starts pytest with the options that it is given."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcome.json"
        command = command_with([*QUIET, f"{OPTION}={file}"])
        subprocess.run(command, cwd=ROOT, check=False)  # noqa: S603  our own words and ids of tests
        return Outcome.read(file)


def _report_flaky(reports: dict[str, str]) -> None:
    if not reports:
        return
    _print(
        f"FLAKY: {len(reports)} tests failed once and passed alone. Mend them, list them in tests/flaky.md."
    )
    for test, report in reports.items():
        _print(f"--- {test}\n{report}")


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201  before the output of the commands


if __name__ == "__main__":
    sys.exit(main())
