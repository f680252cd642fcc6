"""Checkpoints: complete or absent, and the newest intact one is found."""

import json
import os
import shutil
from pathlib import Path
from unittest.mock import Mock

import ml_dtypes
import numpy as np
import pytest

from jobs.messages.task import CheckpointFolder
from workers.engine.data.store import file_digest, write_npz
from workers.engine.training import array_groups, checkpoint
from workers.engine.training.checkpoint import Snapshot
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
    written = commit(tmp_path, 7)
    back, original = checkpoint.read(tmp_path / written.folder), snapshot()
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
    """One training's checkpoints, whose history grows."""

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
    monkeypatch.setattr(array_groups, "write_npz", written)
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


def names(folder: Path) -> list[str]:
    return sorted(f.name for f in folder.iterdir())
