"""Which checkpoints are used, kept and deleted."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.engine.helpers import RecordingReport
from tests.engine.training.test_checkpoint import commit, names, snapshot
from workers.engine.training import array_groups, checkpoint
from workers.engine.training.checkpoint import DiskFull
from workers.engine.training.checkpointing import MAX_UNRECORDED, Checkpointer


def damage_by_flip(folder: Path) -> None:
    file = folder / "model.npz"
    body = bytearray(file.read_bytes())
    body[len(body) // 2] ^= 1
    file.write_bytes(body)


def damage_by_cut(folder: Path) -> None:
    os.truncate(folder / "model.npz", 10)


def damage_of_history(folder: Path) -> None:
    (folder / "history.jsonl").write_bytes(b'{"loss": 0.2}\n{"loss": NaN}\n')


def damage_by_loss(folder: Path) -> None:
    (folder / "state.json").unlink()


def damage_of_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text(json.dumps({"files": {}}))


def damage_by_absence(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


@pytest.mark.parametrize(
    "damage",
    [
        damage_by_flip,
        damage_by_cut,
        damage_of_history,
        damage_by_loss,
        damage_of_manifest,
        damage_by_absence,
    ],
)
def test_the_checkpoint_before_a_damaged_one_is_used(tmp_path: Path, damage: Any) -> None:
    older, newer = commit(tmp_path, 1), commit(tmp_path, 2)
    damage(tmp_path / newer.folder)
    assert checkpoint.newest_intact([newer, older]) == older


def test_a_manifest_that_is_not_the_recorded_one_is_not_trusted(tmp_path: Path) -> None:
    written = commit(tmp_path, 1)
    assert checkpoint.newest_intact([written.model_copy(update={"manifest": "0" * 64})]) is None


def test_all_but_two_recorded_checkpoints_and_incomplete_ones_of_earlier_attempts_are_deleted(
    tmp_path: Path,
) -> None:
    for step in range(6):
        commit(tmp_path, step)
    for name in (".tmp-1-9", ".tmp-2-9"):
        (tmp_path / name).mkdir()
    checkpoint.delete_old(tmp_path, fence=1, recorded="0000000003-1")
    assert names(tmp_path) == [".tmp-1-9", ".tmp-2-9", *(f"000000000{n}-1" for n in (2, 3, 4, 5))]
    checkpoint.delete_old(tmp_path, fence=2, recorded=None)
    assert names(tmp_path) == [".tmp-2-9", *(f"000000000{n}-1" for n in (2, 3, 4, 5))]


def test_the_checkpoint_a_run_resumed_from_is_kept_until_its_own_are_recorded(tmp_path: Path) -> None:
    commit(tmp_path, 80)
    for step in (85, 90):
        (tmp_path / f"00000000{step}-2").mkdir()
    checkpoint.delete_old(tmp_path, fence=2, recorded=None)
    assert len(names(tmp_path)) == 3
    checkpoint.delete_old(tmp_path, fence=2, recorded="0000000090-2")
    assert names(tmp_path) == ["0000000085-2", "0000000090-2"]


class LaggingReport(RecordingReport):
    """Only the first `recorded_count` checkpoints are recorded."""

    recorded_count = 0

    def recorded(self) -> list[str]:
        return super().recorded()[: self.recorded_count]


def test_while_none_is_recorded_all_are_kept_and_after_some_no_more_are_written(tmp_path: Path) -> None:
    report = LaggingReport(tmp_path)
    checkpointer = Checkpointer(tmp_path / "c", report, fence=1, interval=0.0)
    for step in range(20):
        if checkpointer.is_due():
            checkpointer.write(snapshot(step), step=step, epoch=step)
    assert names(tmp_path / "c") == [f"{step:010}-1" for step in range(MAX_UNRECORDED)]
    report.recorded_count = 5
    assert checkpointer.is_due(), "some have been recorded"
    checkpointer.write(snapshot(20), step=20, epoch=20)
    assert names(tmp_path / "c") == [f"{step:010}-1" for step in (3, 4, 5, 6, 7, 20)]


def test_several_trainings_at_once_write_as_often_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("workers.engine.training.checkpointing.time.monotonic", lambda: now[0])
    checkpointer = Checkpointer(tmp_path / "c", RecordingReport(tmp_path), fence=1, interval=1.0)
    checkpointer.multiply_interval(3)
    due = []
    for now[0] in (0.9, 1.1, 2.9, 3.1):
        due.append(checkpointer.is_due())
    assert due == [False, False, False, True]


def test_a_full_disk_keeps_the_earlier_checkpoint_and_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tmp_path, 1)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(array_groups, "write_npz", full)
    with pytest.raises(DiskFull, match="no space left"):
        commit(tmp_path, 2)
    assert [f.name for f in tmp_path.iterdir()] == ["0000000001-1"]
