"""A regular backup that is killed at any step loses no older one, and the next one removes the rest of it."""

import sys
from pathlib import Path

import pytest

from tests.ops.processes.test_backup_kills import MAX_STEPS, empty, full, killed_at
from tests.ops.test_backup import Installation
from webapp.ops import backup
from webapp.ops.regular_backups import back_up_into, backups_in

__all__ = ["empty", "full"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")


def test_a_killed_regular_backup_leaves_whole_ones_only(full: Installation, tmp_path: Path) -> None:
    folder, scratch = tmp_path / "backups", tmp_path / "scratch"
    folder.mkdir()
    first = full.back_up(folder / "trainyard-20260101T000000Z.tar")
    for step in range(MAX_STEPS):
        was_killed = killed_at(step, lambda: back_up_into(folder, full.back_up, keep=1))
        assert backups_in(folder)
        if not was_killed:
            break
    else:
        pytest.fail(f"it has more than {MAX_STEPS} steps")
    assert step > 10
    assert not first.exists()
    (newest,) = backups_in(folder)
    assert not list(folder.glob(".*"))
    scratch.mkdir()
    assert backup.verify(newest, scratch).digests
