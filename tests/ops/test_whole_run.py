"""The commit of the last passing run of all tests is recorded, unless files were changed for it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.plugins import whole_run

GIT = shutil.which("git") or ""
pytestmark = pytest.mark.skipif(not GIT, reason="no git on PATH")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tests").mkdir()
    for name in (*whole_run.WRITTEN_BY_RUNS, "module.py"):
        (tmp_path / name).write_text("old")
    author = ("-c", "user.name=ada", "-c", "user.email=ada@localhost")
    for command in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "first")):
        subprocess.run([GIT, *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(whole_run, "ROOT", tmp_path)
    return tmp_path


def test_files_that_the_run_itself_has_written_are_no_changes(checkout: Path) -> None:
    for name in whole_run.WRITTEN_BY_RUNS:
        (checkout / name).write_text("new")
    assert not whole_run._changed_files()
    (checkout / "module.py").write_text("new")
    assert whole_run._changed_files() == "M module.py"
