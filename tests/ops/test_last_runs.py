"""The commit of the last passing run of each folder of the second tier is recorded in a clean checkout."""

import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.plugins import last_runs
from tests.plugins.last_runs import LastRuns
from tests.plugins.tiers import TESTS, second_tier

GIT = shutil.which("git") or ""
pytestmark = pytest.mark.skipif(not GIT, reason="no git on PATH")

OPTIONS = {
    "keyword": "",
    "markexpr": "",
    "lf": False,
    "deselect": None,
    "ignore": None,
    "--first-tier": False,
}


def git(*words: str, folder: Path) -> str:
    author = ("-c", "user.name=ada", "-c", "user.email=ada@localhost")
    ended = subprocess.run([GIT, *author, *words], cwd=folder, check=True, capture_output=True, text=True)
    return ended.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*last_runs.WRITTEN_BY_RUNS, "module.py", "workers/chief/a.py", "templates/a.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    git("init", "-q", folder=tmp_path)
    commit(tmp_path)
    for name in last_runs.REQUIRED:
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr(last_runs, "ROOT", tmp_path)
    monkeypatch.setattr(last_runs, "FILE", tmp_path / "tests" / "last_runs.toml")
    last_runs.FILE.unlink()
    return tmp_path


def commit(checkout: Path) -> str:
    git("add", ".", folder=checkout)
    git("commit", "-q", "-m", "change", folder=checkout)
    return git("rev-parse", "HEAD", folder=checkout)


def run(
    *arguments: str,
    passed: Iterable[str] = (),
    failed: Iterable[str] = (),
    exit_code: int = 0,
    change: Callable[[], object] = lambda: None,
    **options: Any,
) -> str:
    """Make a run with these results, during which `change` is called. Return the line in its summary."""
    config: Any = SimpleNamespace(
        args=[str(TESTS / argument) for argument in arguments],
        option=SimpleNamespace(collectonly=False),
        getoption=lambda name, default=None: (OPTIONS | options).get(name, default),
    )
    plugin = LastRuns(config)
    for names, is_passed in ((passed, True), (failed, False)):
        for name in names:
            report: Any = SimpleNamespace(
                passed=is_passed, failed=not is_passed, nodeid=f"tests/{name}/test_a.py::test_b"
            )
            plugin.pytest_runtest_logreport(report)
    change()
    session: Any = SimpleNamespace(exitstatus=exit_code, shouldfail=False, shouldstop=False)
    plugin.pytest_sessionfinish(session)
    said: list[str] = []
    plugin.pytest_terminal_summary(SimpleNamespace(write_line=said.append))
    return "".join(said)


def test_files_that_the_run_itself_has_written_are_no_changes(checkout: Path) -> None:
    for name in last_runs.WRITTEN_BY_RUNS:
        (checkout / name).write_text("new")
    assert not last_runs._changed_files()
    (checkout / "module.py").write_text("new")
    assert last_runs._changed_files() == "M module.py"


def test_folders_whose_tests_all_ran_and_passed_are_recorded(checkout: Path) -> None:
    head = git("rev-parse", "HEAD", folder=checkout)
    run("upgrade", "browser", passed=("upgrade", "browser"), failed=("browser",), exit_code=1)
    assert last_runs.read_commits() == {"upgrade": head}
    run("engine", passed=("engine/processes",))
    assert last_runs.read_commits() == {"upgrade": head, "engine/processes": head}
    (checkout / "module.py").write_text("other")
    later = commit(checkout)
    run("", passed=("upgrade", "jobs"))
    assert last_runs.read_commits() == {"upgrade": later, "engine/processes": head}


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("upgrade/test_a.py", {}),
        ("upgrade", {"keyword": "home"}),
        ("upgrade", {"--first-tier": True}),
        ("upgrade", {"exit_code": 2}),
        ("upgrade", {"passed": ()}),
    ],
    ids=["one file", "some tests", "the first tier", "interrupted", "all skipped"],
)
def test_a_run_of_less_is_not_recorded(argument: str, options: dict[str, Any], checkout: Path) -> None:
    run(argument, **({"passed": ("upgrade",)} | options))
    assert last_runs.read_commits() == {}


def test_a_run_whose_tests_may_be_skipped_is_not_recorded(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRAINYARD_REQUIRE_PROXIES")
    assert "without TRAINYARD_REQUIRE_PROXIES=1" in run("upgrade", passed=("upgrade",))
    assert last_runs.read_commits() == {}


def test_the_check_of_a_submission_skips_no_test_for_want_of_a_program() -> None:
    words = (TESTS.parent / ".ci" / "run").read_text().split()
    exported = {word.removesuffix("=1") for word in words if word.startswith("TRAINYARD_REQUIRE_")}
    assert exported == set(last_runs.REQUIRED)


def test_a_run_is_not_recorded_if_the_commit_changed_meanwhile(checkout: Path) -> None:
    def change() -> None:
        (checkout / "module.py").write_text("other")
        commit(checkout)

    assert "another commit" in run("upgrade", passed=("upgrade",), change=change)
    assert last_runs.read_commits() == {}


def test_folders_with_changes_since_their_last_run_are_due(checkout: Path) -> None:
    everything = list(second_tier())
    assert last_runs.folders_to_run() == everything, "none has run"
    first = git("rev-parse", "HEAD", folder=checkout)
    last_runs.write_commit(everything, first)
    (checkout / "workers/chief/a.py").write_text("other")
    second = commit(checkout)
    assert "chief/processes" in last_runs.folders_to_run()
    assert "package" not in last_runs.folders_to_run()
    last_runs.write_commit(["chief/processes"], second)
    assert "chief/processes" not in last_runs.folders_to_run()
    assert "deploy" in last_runs.folders_to_run()
    last_runs.write_commit(["package"], "0" * 40)
    assert "package" in last_runs.folders_to_run(), "its commit is not in this repository"
