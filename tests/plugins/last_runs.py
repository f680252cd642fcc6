"""Records the commit at which each folder of the second tier passed.

`.ci/run` runs those with changes since then.

A folder has a commit of its own, since all folders together take longer than a check of a submission may on a
slow machine: `make test-all ARGS="tests/browser tests/upgrade"` records these two.
"""

import os
import shutil
import subprocess
import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.tiers import (
    FIRST_TIER,
    ROOT,
    TESTS,
    folder_of,
    guarded_folders,
    is_narrowed,
    second_tier,
)

FILE = TESTS / "last_runs.toml"
HEAD = """\
# The commit at which all tests of a folder of the second tier last passed, written by a run of the folder in
# a checkout without changes. Commit it with the change that it belongs to. `.ci/run` runs the folders that
# changes since then concern.
[folders]
"""
REQUIRED = tuple(
    f"TRAINYARD_REQUIRE_{part}"
    for part in ("BROWSER", "NAMESPACES", "NODE", "PATH_BROKER", "POSTGRES", "PROXIES", "SANDBOXES")
)
"""With these variables a test that lacks a program fails; otherwise it is skipped, and may hide a failure."""
WRITTEN_BY_RUNS = ("tests/core_seconds.toml", "tests/last_runs.toml")
COMPLETE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


class LastRuns:
    """The pytest plugin: writes the folders of a run whose tests have all passed, none skipped for want of
    a program, and reports it.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._passed: set[str] = set()
        self._failed: set[str] = set()
        # Those of the tests: the checkout may change while they run.
        self._commit = _commit_of_clean_checkout()
        self._result = ""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failed.update(second_tier())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.passed:
            folder = folder_of(TESTS.parent / report.nodeid.partition("::")[0])
            (self._failed if report.failed else self._passed).add(folder)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        folders = whole_folders(self._config) & (self._passed - self._failed)
        if not folders:
            return
        if reason := self._why_not(session):
            self._result = f"not recorded as passed: {reason}"
        else:
            write_commit(folders, self._commit)
            self._result = f"{len(folders)} recorded as passed at {self._commit[:8]}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._result:
            terminalreporter.write_line(f"Folders of the second tier: {self._result}.")

    def _why_not(self, session: pytest.Session) -> str:
        """Return why no folder of the run counts as passed; empty if each with passed tests does."""
        if session.exitstatus not in COMPLETE or session.shouldfail or session.shouldstop:
            return "the run did not end by itself"
        if unset := [name for name in REQUIRED if os.environ.get(name) != "1"]:
            return f"without {' '.join(f'{name}=1' for name in unset)}, tests may be skipped"
        if not self._commit:
            return "the checkout had changes when the tests began, or there is no git"
        if changes := _changed_files():
            return f"the checkout has changes ({', '.join(changes.splitlines()[:5])})"
        if self._commit != _commit_of_clean_checkout():
            return "another commit was checked out meanwhile"
        return ""


def whole_folders(config: pytest.Config) -> set[str]:
    """Return the folders of the second tier of which a run includes all tests."""
    if is_narrowed(config) or config.getoption(FIRST_TIER) or config.option.collectonly:
        return set()
    paths = {Path(argument).resolve() for argument in config.args}
    return {name for name in second_tier() if paths & {TESTS / name, *(TESTS / name).parents}}


def write_commit(folders: Iterable[str], commit: str) -> None:
    """Write the commit at which all tests of these folders passed."""
    commits = read_commits() | dict.fromkeys(folders, commit)
    lines = [f'"{folder}" = "{commits[folder]}"\n' for folder in second_tier() if folder in commits]
    FILE.write_text(HEAD + "".join(lines))


def read_commits() -> dict[str, str]:
    """Return the commit at which all tests of each folder passed."""
    return dict(tomllib.loads(FILE.read_text())["folders"]) if FILE.exists() else {}


def folders_to_run() -> list[str]:
    """Return the folders of the second tier that changes since their last run concern.

    A folder without a run, or whose commit is not in this repository, is among them.
    """
    commits = read_commits()
    concerned = {commit: _concerned_since(commit) for commit in set(commits.values())}
    return [folder for folder in second_tier() if folder in concerned.get(commits.get(folder, ""), (folder,))]


def _concerned_since(commit: str) -> Collection[str]:
    lookup = subprocess.run(
        ["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True, check=False
    )
    if lookup.returncode != 0:
        return second_tier()
    return guarded_folders(_git("diff", "--name-only", "--no-renames", commit, "HEAD").splitlines())


def _commit_of_clean_checkout() -> str:
    """Return the commit whose files are in the checkout; an empty text if others are, or without git."""
    if not shutil.which("git") or not (ROOT / ".git").exists() or _changed_files():
        return ""
    return _git("rev-parse", "HEAD")


def _changed_files() -> str:
    return _git("status", "--porcelain", "--", ".", *(f":(top,exclude){name}" for name in WRITTEN_BY_RUNS))


def _git(*arguments: str) -> str:
    ended = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return ended.stdout.strip()
