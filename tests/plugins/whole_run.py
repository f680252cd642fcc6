"""Records the commit at which all tests passed: `.ci/run` runs the second tier for the changes since then."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.plugins.tiers import ROOT, is_everything

FILE = Path(__file__).parents[1] / "last_whole_run"
"""The commit of the last run of all tests that passed. Commit it with the change that it belongs to."""
WRITTEN_BY_RUNS = ("tests/core_seconds.toml", "tests/last_whole_run")


class WholeRun:
    """The pytest plugin: writes `FILE` after a complete run in a checkout without changes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        passed = session.exitstatus == pytest.ExitCode.OK and session.testscollected > 0
        if not passed or self._config.option.collectonly or not is_everything(self._config):
            return
        if shutil.which("git") and not _changed_files():
            FILE.write_text(_git("rev-parse", "HEAD") + "\n")


def _changed_files() -> str:
    return _git("status", "--porcelain", "--", ".", *(f":(top,exclude){name}" for name in WRITTEN_BY_RUNS))


def changed_since_whole_run() -> list[str] | None:
    """Return the paths that changed since the recorded commit; None if it is not in this repository."""
    commit = FILE.read_text().strip()
    lookup = subprocess.run(
        ["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True, check=False
    )
    if lookup.returncode != 0:
        return None
    return _git("diff", "--name-only", "--no-renames", commit, "HEAD").splitlines()


def _git(*arguments: str) -> str:
    ended = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return ended.stdout.strip()
