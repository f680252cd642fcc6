"""Checkpoints: whole or not there, and the newest whole one is found whatever was broken."""

import json
import os

import ml_dtypes
import numpy as np
import pytest

from jobs.spec.task import CheckpointFolder
from workers.engine import checkpoint
from workers.engine.checkpoint import DiskFull, Snapshot


def snapshot(value=1.0):
    arrays = {
        "model": [np.full((3, 2), value, np.float32), np.array([1, 2], np.uint32)],
        "half": [np.arange(4).astype(ml_dtypes.bfloat16)],
        "best": [],
    }
    return Snapshot(arrays, {"epoch": 3, "history": [{"loss": 0.1}]})


def commit(parent, step, value=1.0):
    done = checkpoint.write(parent, snapshot(value), fence=1, step=step)
    return CheckpointFolder(folder=str(done.folder), manifest=done.manifest, step=step)


def test_what_was_written_is_read_again_bit_for_bit(tmp_path):
    kept = commit(tmp_path, 7)
    back, original = checkpoint.read(tmp_path / kept.folder), snapshot()
    assert back.state == original.state
    for group, arrays in original.arrays.items():
        for before, after in zip(arrays, back.arrays[group], strict=True):
            assert after.dtype == before.dtype
            assert after.tobytes() == before.tobytes()


def test_nothing_is_left_aside_after_a_commit(tmp_path):
    commit(tmp_path, 7)
    assert [f.name for f in tmp_path.iterdir()] == ["0000000007-1"]


def damage_by_flip(folder):
    file = folder / "model.npz"
    body = bytearray(file.read_bytes())
    body[len(body) // 2] ^= 1
    file.write_bytes(body)


def damage_by_cut(folder):
    os.truncate(folder / "model.npz", 10)


def damage_by_loss(folder):
    (folder / "state.json").unlink()


def damage_of_manifest(folder):
    (folder / "manifest.json").write_text(json.dumps({"files": {}}))


def damage_by_absence(folder):
    folder.rename(folder.with_name("elsewhere"))


@pytest.mark.parametrize(
    "damage", [damage_by_flip, damage_by_cut, damage_by_loss, damage_of_manifest, damage_by_absence]
)
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(tmp_path, damage):
    older, newer = commit(tmp_path, 1), commit(tmp_path, 2)
    damage(tmp_path / newer.folder)
    assert checkpoint.newest_whole([newer, older]) == older


def test_a_manifest_that_is_not_the_recorded_one_is_not_trusted(tmp_path):
    kept = commit(tmp_path, 1)
    assert checkpoint.newest_whole([kept.model_copy(update={"manifest": "0" * 64})]) is None


def test_the_newest_stay_and_half_written_ones_of_earlier_attempts_go(tmp_path):
    for step in range(6):
        commit(tmp_path, step)
    for name in (".tmp-1-9", ".tmp-2-9"):
        (tmp_path / name).mkdir()
    made_at(tmp_path, dict.fromkeys(range(6), 1000.0))
    checkpoint.prune(tmp_path, fence=1)
    assert names(tmp_path) == [".tmp-1-9", ".tmp-2-9", *(f"000000000{n}-1" for n in (0, 3, 4, 5))]
    checkpoint.prune(tmp_path, fence=2)
    assert names(tmp_path)[0] == ".tmp-2-9"


def names(folder):
    return sorted(f.name for f in folder.iterdir())


def made_at(folder, times):
    for step, moment in times.items():
        os.utime(folder / f"{step:010}-1", (moment, moment))


def test_one_that_is_older_than_a_lease_stays_while_recording_may_lag(tmp_path):
    for step in range(60):
        commit(tmp_path, step)
    made_at(tmp_path, {step: 1000.0 + step for step in range(60)})
    checkpoint.prune(tmp_path, fence=1)
    assert [int(name[:10]) for name in names(tmp_path)] == [20, 40, 57, 58, 59]


def test_what_a_run_went_on_from_stays_until_it_has_recorded_its_own(tmp_path):
    commit(tmp_path, 80)
    (tmp_path / "0000000085-2").mkdir()
    checkpoint.prune(tmp_path, fence=2)
    assert names(tmp_path) == ["0000000080-1", "0000000085-2"]


def test_a_full_disk_leaves_the_earlier_checkpoint_and_says_so(tmp_path, monkeypatch):
    commit(tmp_path, 1)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_npz", full)
    with pytest.raises(DiskFull, match="no space left"):
        commit(tmp_path, 2)
    assert [f.name for f in tmp_path.iterdir()] == ["0000000001-1"]
