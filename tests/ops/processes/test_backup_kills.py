"""A backup or a restore that is killed at any step leaves nothing that looks whole, and can be repeated."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs import unfinished_restore
from tests.ops.conftest import ROOT
from tests.ops.test_backup import Installation, empty, full
from webapp.ops import backup, backup_file, database_copies, restored_files
from webapp.ops import restore as restoring
from webapp.ops.errors import OpsError

__all__ = ["empty", "full"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")
MAX_STEPS = 400


def die_at(step: int) -> None:
    """Kill this process before or after the call number `step` of a function that changes something."""
    passed = 0

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal passed
            for moment in ("before", "after"):
                passed += 1
                if passed > step:
                    os.kill(os.getpid(), signal.SIGKILL)
                if moment == "before":
                    result = function(*args, **kwargs)
            return result

        return call

    for owner, name in (
        (os, "replace"),
        (os, "rename"),
        (os, "link"),
        (os, "unlink"),
        (os, "fsync"),
        (os, "mkdir"),
        (shutil, "rmtree"),
        (Path, "replace"),
        (Path, "unlink"),
        (sqlite3, "connect"),
        (backup, "verify"),
        (backup_file.BackupWriter, "add"),
        (backup_file, "_new_file"),
        (restoring, "write_private"),
        (restored_files, "_move"),
        (database_copies, "copy_sqlite"),
    ):
        setattr(owner, name, watched(getattr(owner, name)))


def killed_at(step: int, action: Callable[[], object]) -> bool:
    """Run an action in a fork that is killed at a step; return whether it was."""
    pid = os.fork()
    if pid == 0:
        try:
            die_at(step)
            action()
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def test_a_killed_backup_leaves_the_older_file_or_is_whole(full: Installation, tmp_path: Path) -> None:
    saved = full.back_up(tmp_path / "all.tar")
    older = saved.read_bytes()
    (full.artifacts / "ab" / "new").write_bytes(b"new")
    for step in range(MAX_STEPS):
        if not killed_at(step, lambda: full.back_up(saved)):
            break
        if saved.read_bytes() != older:
            with backup.scratch_folder(full.home) as scratch:
                read = backup.verify(saved, scratch)
            assert "artifacts/ab/new" in read.digests
    assert step > 10
    full.back_up(saved)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith((".", "all"))] == ["all.tar"]
    assert not list(full.home.run.glob(f"{backup.SCRATCH}*"))


@pytest.mark.parametrize("force", [False, True])
def test_a_killed_restore_is_refused_or_whole_and_is_repeated_without_force(
    full: Installation, tmp_path: Path, force: bool
) -> None:
    (full.artifacts / "ab" / "shared").hardlink_to(full.artifacts / "ab" / "abcd")
    saved = full.back_up(tmp_path / "all.tar")
    marked = 0
    for step in range(MAX_STEPS):
        target = Installation(tmp_path / f"{step}")
        if force:
            target.fill()
            target.secret_key.write_text("older")
            with target.connect() as connection:
                connection.execute("DELETE FROM point")
        if not killed_at(step, lambda target=target: target.restore(saved, force=force)):  # type: ignore[misc]
            break
        if unfinished_restore.problem(target.home.root) is None:
            is_whole = is_restored(target)
            is_as_before = target.secret_key.read_text() == "older" if force else not database_of(target)
            assert is_whole or is_as_before
        else:
            marked += 1
        try:
            target.restore(saved)
        except OpsError as error:
            # Before its first change, or after its last.
            assert "is not empty" in str(error)
            assert force or is_restored(target)
        else:
            assert is_restored(target)
            assert not list(target.home.root.glob(".restore-*"))
    assert marked > 5
    assert is_restored(target)


def database_of(installation: Installation) -> bool:
    return Path(installation.database["NAME"]).exists()


def is_restored(installation: Installation) -> bool:
    return (
        database_of(installation)
        and installation.points() == 1
        and installation.secret_key.read_text() == "secret"
        and (installation.artifacts / "ab" / "shared").read_bytes() == b"weights"
        and unfinished_restore.problem(installation.home.root) is None
    )


def test_nothing_starts_on_a_home_whose_restore_was_killed(full: Installation) -> None:
    full.secret_key.write_text("x" * 60)
    (full.home.root / unfinished_restore.MARKER).write_text("{}")
    settings = {"TRAINYARD_HOME": str(full.home.root), "DJANGO_SETTINGS_MODULE": "webapp.settings.main"}
    variables = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
    for command in (["token", "ada", "--scopes", "read"], ["web", "--port", "0"], ["backup", "all.tar"]):
        done = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=ROOT,
            env=variables | settings,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode, command
        assert "was interrupted, or still runs" in done.stderr, command
