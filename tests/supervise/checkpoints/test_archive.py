"""A checkpoint that is packed and unpacked is the same one, or it is refused."""

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from workers.engine.training import checkpoint
from workers.engine.training.checkpoint import CommittedCheckpoint, Snapshot
from workers.engine.training.shared_files import SharedFiles
from workers.supervise.checkpoints import archive

FOLDER = "job-7/0000000012-1"


@pytest.fixture
def written(tmp_path: Path) -> CommittedCheckpoint:
    """The second of two checkpoints, to whose history a third one has appended."""
    shared, parent = SharedFiles(), tmp_path / "here" / "job-7"
    done = []
    for step in (11, 12, 13):
        history = [{"loss": 1 / epoch} for epoch in range(1, step + 1)]
        snapshot = Snapshot({"model": [np.full(4, step, np.float32)]}, {"epoch": step}, history)
        done.append(checkpoint.write(parent, snapshot, fence=1, step=step, shared=shared))
    return done[1]


def test_a_checkpoint_of_the_engine_is_the_same_on_the_other_machine(
    written: CommittedCheckpoint, tmp_path: Path
) -> None:
    archive.pack(tmp_path / "here", FOLDER, written.manifest, tmp_path / "copy")
    archive.unpack(tmp_path / "copy", tmp_path / "there", FOLDER, written.manifest)
    there = tmp_path / "there" / FOLDER
    assert checkpoint.is_intact(there, written.manifest)
    assert archive.is_intact(tmp_path / "there", FOLDER, written.manifest)
    before, after = checkpoint.read(written.folder), checkpoint.read(there)
    assert (after.state, after.history, after.weights) == (before.state, before.history, before.weights)
    assert len(after.history) == 12
    assert [path.name for path in there.parent.iterdir()] == [there.name]


def test_a_damaged_folder_is_replaced(written: CommittedCheckpoint, tmp_path: Path) -> None:
    archive.pack(tmp_path / "here", FOLDER, written.manifest, tmp_path / "copy")
    (written.folder / "model.npz").unlink()
    assert not archive.is_intact(tmp_path / "here", FOLDER, written.manifest)
    archive.unpack(tmp_path / "copy", tmp_path / "here", FOLDER, written.manifest)
    assert archive.is_intact(tmp_path / "here", FOLDER, written.manifest)


def missing_file(folder: Path) -> None:
    (folder / "model.npz").unlink()


def short_file(folder: Path) -> None:
    os.truncate(folder / "model.npz", 10)


def changed_file(folder: Path) -> None:
    path = folder / "model.npz"
    path.write_bytes(path.read_bytes()[:-1] + b"x")


def link_elsewhere(folder: Path) -> None:
    secret = folder.parent / "secret"
    (folder / "model.npz").rename(secret)
    (folder / "model.npz").symlink_to(secret)


def other_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text("{}")


@pytest.mark.parametrize("damage", [missing_file, short_file, changed_file, link_elsewhere, other_manifest])
def test_a_checkpoint_that_differs_from_its_manifest_is_not_packed(
    written: CommittedCheckpoint, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    damage(written.folder)
    assert not archive.is_intact(tmp_path / "here", FOLDER, written.manifest)
    with pytest.raises(archive.Damaged):
        archive.pack(tmp_path / "here", FOLDER, written.manifest, tmp_path / "copy")


def test_no_half_of_a_copy_is_ever_unpacked(written: CommittedCheckpoint, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    archive.pack(tmp_path / "here", FOLDER, written.manifest, copy)
    whole = copy.read_bytes()
    # The end of an archive is two empty blocks, which may be missing.
    content = len(whole.rstrip(b"\0"))
    for size in [0, 1, 511, 512, *range(600, content, 397)]:
        copy.write_bytes(whole[:size])
        with pytest.raises(archive.Damaged):
            archive.unpack(copy, tmp_path / "there", FOLDER, written.manifest)
        assert list((tmp_path / "there" / "job-7").iterdir()) == []


def test_a_copy_with_one_changed_byte_is_refused(written: CommittedCheckpoint, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    archive.pack(tmp_path / "here", FOLDER, written.manifest, copy)
    whole = bytearray(copy.read_bytes())
    at = whole.index(b"PK")  # in the arrays
    whole[at] ^= 1
    copy.write_bytes(whole)
    with pytest.raises(archive.Damaged):
        archive.unpack(copy, tmp_path / "there", FOLDER, written.manifest)


@pytest.mark.parametrize("name", ["../../escaped", "/tmp/escaped", "escaped"])
def test_a_copy_with_another_file_is_refused_and_writes_nothing_elsewhere(
    written: CommittedCheckpoint, tmp_path: Path, name: str
) -> None:
    copy = tmp_path / "copy"
    archive.pack(tmp_path / "here", FOLDER, written.manifest, copy)
    with tarfile.open(copy, "a") as tar:
        member = tarfile.TarInfo(name)
        member.size = 1
        tar.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(archive.Damaged):
        archive.unpack(copy, tmp_path / "there", FOLDER, written.manifest)
    assert not list(tmp_path.rglob("escaped"))


def test_nothing_is_written_through_a_link_that_a_runner_left(
    written: CommittedCheckpoint, tmp_path: Path
) -> None:
    archive.pack(tmp_path / "here", FOLDER, written.manifest, tmp_path / "copy")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (tmp_path / "there" / "job-7").mkdir(parents=True)
    (tmp_path / "there" / "job-7" / "trial-1").symlink_to(elsewhere)
    with pytest.raises(archive.Damaged, match="a link or a file is in the place of a folder"):
        archive.unpack(tmp_path / "copy", tmp_path / "there", "job-7/trial-1/0000000012-1", written.manifest)
    assert list(elsewhere.iterdir()) == []
