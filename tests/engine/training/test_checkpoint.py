"""Checkpoints: complete or absent, and the newest intact one is found."""

import json
import os
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import ml_dtypes
import numpy as np
import pytest

from jobs.messages.task import CheckpointFolder
from tests.engine.helpers import RecordingReport
from workers.engine.data.store import file_digest, write_npz
from workers.engine.training import checkpoint
from workers.engine.training.checkpoint import DiskFull, Snapshot
from workers.engine.training.checkpointing import MAX_UNRECORDED, Checkpointer
from workers.engine.training.shared_files import SharedFiles


def snapshot(value: float = 1.0) -> Snapshot:
    arrays = {
        "model": [np.full((3, 2), value, np.float32), np.array([1, 2], np.uint32)],
        "half": [np.arange(4).astype(kind) for kind in (ml_dtypes.bfloat16, ml_dtypes.float8_e5m2)],
        "best": [],
    }
    return Snapshot(arrays, {"epoch": 3}, history=[{"loss": 0.1}, {"loss": float("nan")}])


def commit(parent: Path, step: int, value: float = 1.0) -> CheckpointFolder:
    done = checkpoint.write(parent, snapshot(value), fence=1, step=step)
    return CheckpointFolder(folder=str(done.folder), manifest=done.manifest, step=step)


def test_what_was_written_is_read_again_bit_for_bit(tmp_path: Path) -> None:
    kept = commit(tmp_path, 7)
    back, original = checkpoint.read(tmp_path / kept.folder), snapshot()
    assert back.state == original.state
    assert repr(back.history) == repr(original.history)
    for group, arrays in original.arrays.items():
        for before, after in zip(arrays, back.arrays[group], strict=True):
            assert after.dtype == before.dtype
            assert after.tobytes() == before.tobytes()


def test_a_checkpoint_of_an_older_release_is_read(tmp_path: Path) -> None:
    folder = tmp_path / commit(tmp_path, 7).folder
    (folder / "history.jsonl").unlink()
    state = json.loads((folder / "state.json").read_text())
    state["state"]["history"] = [{"loss": 0.1}]
    (folder / "state.json").write_text(json.dumps(state))
    files = {f.name: {"bytes": f.stat().st_size, "sha256": file_digest(f)} for f in folder.glob("*.*")}
    del files["manifest.json"]
    (folder / "manifest.json").write_text(json.dumps({"version": 1, "files": files}))
    assert checkpoint.is_intact(folder)
    back = checkpoint.read(folder)
    assert (back.state, back.history) == ({"epoch": 3}, [{"loss": 0.1}])


def epochs(count: int, first: int = 1) -> list[dict[str, float]]:
    return [{"loss": 1 / n, "val_loss": 2 / n} for n in range(first, first + count)]


class Series:
    """The checkpoints of one training, whose history grows."""

    def __init__(self, parent: Path) -> None:
        self.parent, self.shared, self.best = parent, SharedFiles(), [np.ones(5)]

    def write(self, step: int, history: list[dict[str, float]]) -> Path:
        arrays = {"model": [np.full(3, step)], "best": self.best}
        taken = Snapshot(arrays, {"epoch": step}, history, frozenset({"best"}))
        return checkpoint.write(self.parent, taken, fence=1, step=step, shared=self.shared).folder


def test_each_checkpoint_has_its_own_part_of_the_one_history(tmp_path: Path) -> None:
    series = Series(tmp_path)
    history: list[dict[str, float]] = []
    for step in range(1, 5):
        history += epochs(100, first=len(history) + 1)
        series.write(step, history)
    folders = checkpoint.list_committed(tmp_path)
    assert all(map(checkpoint.is_intact, folders))
    assert [checkpoint.read(f).history for f in reversed(folders)] == [
        history[: 100 * n] for n in (1, 2, 3, 4)
    ]
    assert len({(f / "history.jsonl").stat().st_ino for f in folders}) == 1, "they share one file"


def test_a_checkpoint_survives_the_deletion_of_those_it_shares_files_with(tmp_path: Path) -> None:
    series = Series(tmp_path)
    first, second = series.write(1, epochs(1)), series.write(2, epochs(2))
    shutil.rmtree(first)
    assert checkpoint.is_intact(second)
    assert len(checkpoint.read(series.write(3, epochs(3))).history) == 3


def test_epochs_of_a_checkpoint_that_was_not_completed_are_not_in_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = Series(tmp_path)
    first = series.write(1, epochs(2))
    with monkeypatch.context() as patch, pytest.raises(OSError, match="broken"):
        patch.setattr(checkpoint, "_write_manifest", Mock(side_effect=OSError("broken")))
        series.write(2, [*epochs(2), *epochs(3, first=50)])
    assert checkpoint.is_intact(first)
    third = series.write(3, epochs(3))
    assert checkpoint.is_intact(third)
    assert checkpoint.read(third).history == epochs(3)


def test_arrays_that_did_not_change_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series, written = Series(tmp_path), Mock(wraps=write_npz)
    monkeypatch.setattr(checkpoint, "write_npz", written)
    for step in (1, 2, 3):
        if step == 3:
            series.best = [np.zeros(5)]
        folder = series.write(step, [])
        np.testing.assert_array_equal(checkpoint.read(folder).arrays["best"], series.best)
    names = [call.args[0].stem for call in written.call_args_list]
    assert names == ["model", "best", "model", "model", "best"]


def test_without_hard_links_every_checkpoint_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", Mock(side_effect=OSError("not supported")))
    series = Series(tmp_path)
    for step in (1, 2):
        folder = series.write(step, epochs(step))
        assert checkpoint.is_intact(folder)
        assert checkpoint.read(folder).history == epochs(step)


def test_a_checkpoint_of_a_long_training_writes_only_its_new_epochs(tmp_path: Path) -> None:
    series, history = Series(tmp_path), epochs(30_000)
    series.write(1, history)
    before = (tmp_path / "0000000001-1" / "history.jsonl").stat().st_size
    folder = series.write(2, [*history, *epochs(1, first=30_001)])
    assert 0 < (folder / "history.jsonl").stat().st_size - before < 100
    assert sum(f.stat().st_size for f in folder.glob("*.json")) < 2_000


def test_no_temporary_folder_is_left_after_a_commit(tmp_path: Path) -> None:
    commit(tmp_path, 7)
    assert [f.name for f in tmp_path.iterdir()] == ["0000000007-1"]


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
    kept = commit(tmp_path, 1)
    assert checkpoint.newest_intact([kept.model_copy(update={"manifest": "0" * 64})]) is None


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


def names(folder: Path) -> list[str]:
    return sorted(f.name for f in folder.iterdir())


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

    monkeypatch.setattr(checkpoint, "write_npz", full)
    with pytest.raises(DiskFull, match="no space left"):
        commit(tmp_path, 2)
    assert [f.name for f in tmp_path.iterdir()] == ["0000000001-1"]
