"""Writes and reads checkpoints atomically: a checkpoint is complete or does not exist.

`write` does, in this order:

1. write arrays and state to `.tmp-<fence>-<step>` and sync them to disk,
2. write manifest.json with each file's size and SHA-256, and sync it,
3. sync the folder, rename it to `<step>-<fence>`, and sync its parent.

Files that the checkpoint before has already are linked, and the epoch history is only appended to: see
`shared_files`. A reader uses a folder only if every file matches the manifest. Keras' `BackupAndRestore` and
Orbax are not used: they lose seed generators' state, or leave incomplete files when the process is
killed.

Arrays on several devices are written in blocks, and read from mapped files. The format is the same, with
whole arrays: a training may be resumed on any number of devices.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from jobs.messages.task import CheckpointFolder
from workers.engine.arrays import Array
from workers.engine.data.store import file_digest
from workers.engine.killpoint import kill_point
from workers.engine.training.array_groups import DiskFull, disk_full, read_group, weights_digest, write_group
from workers.engine.training.shared_files import HISTORY, FilePart, SharedFiles, part_digest, read_history

__all__ = ["DiskFull", "weights_digest"]

MANIFEST = "manifest.json"
STATE = "state.json"
WEIGHTS = "model"
"""The group of arrays that holds the weights."""
BEST = "best"
"""The group with the best epoch's weights."""
OPTIMIZER = "optimizer"
"""The group with the optimizer's variables."""
MODEL_GROUPS = frozenset({WEIGHTS, BEST, OPTIMIZER})
"""The groups that are as large as the model."""
KEEP = 2
"""Number of recorded checkpoints kept on disk: the newest, and one more in case it is damaged."""


@dataclass
class Snapshot:
    """A checkpoint's contents.

    Attributes:
        arrays: array groups by name (`model`, `optimizer`, `best`, …). Those to write may be on several
            devices.
        state: JSON values.
        history: each epoch's metrics.
        lasting: groups, by name, whose list is replaced whenever its contents change. Such a group is written
            once, and linked by the next checkpoints until it is replaced.
        weights: SHA-256 of the file with the group `model`, as its writer recorded it; empty before it is
            written.
    """

    arrays: dict[str, list[Array]]
    state: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    lasting: frozenset[str] = frozenset()
    weights: str = ""


class CommittedCheckpoint(NamedTuple):
    """A checkpoint under its final name.

    Attributes:
        folder: its path.
        manifest: its manifest file's SHA-256.
        bytes: total size of its files.
    """

    folder: Path
    manifest: str
    bytes: int


def write(
    parent: Path, snapshot: Snapshot, *, fence: int, step: int, shared: SharedFiles | None = None
) -> CommittedCheckpoint:
    """Write `snapshot` to a new folder in `parent` and commit it.

    Args:
        parent: the training's checkpoint folder.
        snapshot: the contents.
        fence: the attempt's fencing token.
        step: training steps completed.
        shared: the files that it can take over from earlier checkpoints; None writes all files.

    Raises:
        DiskFull: nothing was committed; earlier checkpoints are unchanged.
    """
    # Ten digits: names sort by step.
    final = parent / f"{step:010d}-{fence}"
    # A checkpoint may be requested twice at the same step.
    if final.exists():
        return _committed(final)
    temporary = parent / f".tmp-{fence}-{step}"
    shared = shared or SharedFiles()
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        kill_point("checkpoint.begun")
        history = _write_files(temporary, snapshot, shared)
        _write_manifest(temporary, history, step=step, fence=fence)
        # The files must be on disk before the name that makes them valid.
        _sync(temporary)
        kill_point("checkpoint.manifest")
        temporary.rename(final)
        kill_point("checkpoint.renamed")
        # A rename survives a power failure only once its folder is on disk.
        _sync(parent)
    except OSError as error:
        # On a full disk the incomplete folder must not take the space that a later checkpoint needs.
        shutil.rmtree(temporary, ignore_errors=True)
        if (full := disk_full(error, parent)) is not None:
            raise full from error
        raise
    shared.commit(final, {name: snapshot.arrays[name] for name in snapshot.lasting})
    return _committed(final)


def _committed(folder: Path) -> CommittedCheckpoint:
    size = sum(file.stat().st_size for file in folder.iterdir())
    return CommittedCheckpoint(folder, file_digest(folder / MANIFEST), size)


def _write_files(folder: Path, snapshot: Snapshot, shared: SharedFiles) -> FilePart:
    """Write all files but the manifest; return the checkpoint's part of the history file."""
    dtypes: dict[str, list[str]] = {}
    for group, arrays in snapshot.arrays.items():
        dtypes[group] = [str(array.dtype) for array in arrays]
        if not shared.link_group(folder, group, arrays):
            write_group(folder / f"{group}.npz", arrays)
        _sync(folder / f"{group}.npz")
        kill_point("checkpoint.arrays")
    history = shared.write_history(folder, snapshot.history)
    kill_point("checkpoint.history")
    (folder / STATE).write_text(json.dumps({"dtypes": dtypes, "state": snapshot.state}))
    _sync(folder / STATE)
    kill_point("checkpoint.state")
    return history


def _write_manifest(folder: Path, history: FilePart, *, step: int, fence: int) -> None:
    files = {
        file.name: {"bytes": file.stat().st_size, "sha256": file_digest(file)}
        for file in sorted(folder.iterdir())
        if file.name != HISTORY
    }
    # Version 1 has the history in its state.
    body = {"version": 2, "step": step, "fence": fence, "files": files, "history": history._asdict()}
    (folder / MANIFEST).write_text(json.dumps(body, sort_keys=True))
    _sync(folder / MANIFEST)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_intact(folder: Path, manifest: str | None = None) -> bool:
    """Return whether every file in a checkpoint matches its manifest.

    Args:
        folder: the checkpoint's folder.
        manifest: the manifest file's expected SHA-256; None accepts any.
    """
    try:
        body = (folder / MANIFEST).read_bytes()
        if manifest is not None and hashlib.sha256(body).hexdigest() != manifest:
            return False
        manifest_body = json.loads(body)
        files, history = manifest_body["files"], manifest_body.get("history")
        if history is not None and part_digest(folder / HISTORY, history["bytes"]) != history["sha256"]:
            return False
        return STATE in files and all(
            file_digest(folder / name) == expected["sha256"] for name, expected in files.items()
        )
    # A damaged manifest may be missing, no JSON, or JSON of another form.
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def newest_intact(candidates: Iterable[CheckpointFolder]) -> CheckpointFolder | None:
    """Return the intact checkpoint with the highest step, or None.

    Candidates are checkpoints that the database has recorded. All events before such a checkpoint are
    recorded too, so resuming from it loses no metric point.
    """
    for candidate in sorted(candidates, key=lambda c: c.step, reverse=True):
        if is_intact(Path(candidate.folder), candidate.manifest):
            return candidate
    return None


def list_committed(parent: Path) -> list[Path]:
    """Return the committed checkpoint folders in `parent`, newest first."""
    if not parent.is_dir():
        return []
    return sorted((f for f in parent.iterdir() if f.is_dir() and f.name[:1].isdigit()), reverse=True)


def read(folder: Path, *, mapped: bool = False) -> Snapshot:
    """Read a checkpoint. Call `is_intact` before.

    Args:
        folder: its folder.
        mapped: whether the model's arrays are views of the files. A model on several devices may be larger
            than this machine's memory.
    """
    body = json.loads((folder / STATE).read_text())
    arrays = {
        group: read_group(folder / f"{group}.npz", dtypes, mapped=mapped and group in MODEL_GROUPS)
        for group, dtypes in body["dtypes"].items()
    }
    manifest = json.loads((folder / MANIFEST).read_text())
    part = manifest.get("history")
    state = body["state"]
    history = state.pop("history", []) if part is None else read_history(folder, part["bytes"])
    weights = manifest["files"].get(f"{WEIGHTS}.npz", {})
    return Snapshot(arrays, state, history, weights=weights.get("sha256", ""))


def delete_old(parent: Path, fence: int, recorded: str | None, keep: int = KEEP) -> None:
    """Delete old checkpoints, and incomplete ones from earlier attempts.

    Args:
        parent: the training's checkpoint folder.
        fence: the current attempt's fencing token.
        recorded: the newest recorded checkpoint's name; None if there is none, which keeps all.
        keep: how many recorded checkpoints to keep, in case the newest is damaged.
    """
    # Trainings resume only from recorded checkpoints, and recording is delayed while the database is
    # unavailable: until a newer one is recorded, the last recorded one is still needed.
    if recorded is not None:
        for folder in [folder for folder in list_committed(parent) if folder.name <= recorded][keep:]:
            shutil.rmtree(folder, ignore_errors=True)
    # Folders of this attempt or a later one may still be written.
    for folder in parent.glob(".tmp-*"):
        written_by = folder.name.split("-")[1]
        if written_by.isdigit() and int(written_by) < fence:
            shutil.rmtree(folder, ignore_errors=True)
