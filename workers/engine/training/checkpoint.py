"""Checkpoints that are whole or not there: written aside, synced, hashed, renamed.

`.tmp-<fence>-<step>` → arrays and state, synced → manifest.json with sizes and sha256 → sync the
folder → rename to `<step>-<fence>` → sync the parent. A reader trusts a folder only after every
file matched the manifest. Keras' own ways lose seed generators or tear (BackupAndRestore, Orbax).
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jobs.contracts.task_parts import CheckpointFolder
from workers.engine.data.store import file_digest, write_npz
from workers.engine.data.table import Array
from workers.engine.errors import EngineError
from workers.engine.killpoint import kill_point

MANIFEST = "manifest.json"
STATE = "state.json"
KEEP = 2
"""Recorded checkpoints left on disk: the newest, and one more for the case that it does not verify."""


class DiskFull(EngineError):
    """There is no room for a checkpoint; the earlier ones stand."""

    code = "disk_full"


@dataclass
class Snapshot:
    """What a training goes on from: groups of arrays (`model`, `optimizer`, `best` …) and JSON state."""

    arrays: dict[str, list[Array]]
    state: dict[str, Any] = field(default_factory=dict)


class Committed(NamedTuple):
    """A checkpoint that stands under its final name."""

    folder: Path
    manifest: str
    bytes: int


def write(parent: Path, snapshot: Snapshot, *, fence: int, step: int) -> Committed:
    """Commit `snapshot` below `parent`.

    Raises:
        DiskFull: nothing was committed; what stood before still stands.
    """
    final = parent / f"{step:010d}-{fence}"
    if final.exists():  # asked for twice at the same step
        return _committed(final)
    aside = parent / f".tmp-{fence}-{step}"
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        kill_point("checkpoint.begun")
        _write_files(aside, snapshot)
        _write_manifest(aside, step=step, fence=fence)
        _sync(aside)
        kill_point("checkpoint.manifest")
        aside.rename(final)
        kill_point("checkpoint.renamed")
        _sync(parent)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no space left for a checkpoint in {parent}; earlier ones are kept") from error
        raise
    return _committed(final)


def _committed(folder: Path) -> Committed:
    size = sum(file.stat().st_size for file in folder.iterdir())
    return Committed(folder, file_digest(folder / MANIFEST), size)


def _write_files(folder: Path, snapshot: Snapshot) -> None:
    dtypes: dict[str, list[str]] = {}
    for group, arrays in snapshot.arrays.items():
        dtypes[group] = [str(array.dtype) for array in arrays]
        named = {f"{i:05d}": _storable(array) for i, array in enumerate(arrays)}
        write_npz(folder / f"{group}.npz", named)
        _sync(folder / f"{group}.npz")
        kill_point("checkpoint.arrays")
    (folder / STATE).write_text(json.dumps({"dtypes": dtypes, "state": snapshot.state}))
    _sync(folder / STATE)
    kill_point("checkpoint.state")


def _storable(array: Array) -> Array:
    """View types that NumPy's format does not know (bfloat16, float8) as integers of their width."""
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind == "V" else array


def _write_manifest(folder: Path, *, step: int, fence: int) -> None:
    files = {
        file.name: {"bytes": file.stat().st_size, "sha256": file_digest(file)}
        for file in sorted(folder.iterdir())
    }
    body = {"version": 1, "step": step, "fence": fence, "files": files}
    (folder / MANIFEST).write_text(json.dumps(body, sort_keys=True))
    _sync(folder / MANIFEST)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_whole(folder: Path, manifest: str | None = None) -> bool:
    """Say whether every file of `folder` is what its manifest says, and the manifest what is asked."""
    try:
        body = (folder / MANIFEST).read_bytes()
        if manifest is not None and hashlib.sha256(body).hexdigest() != manifest:
            return False
        files = json.loads(body)["files"]
        return STATE in files and all(
            file_digest(folder / name) == expected["sha256"] for name, expected in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def newest_whole(candidates: Iterable[CheckpointFolder]) -> CheckpointFolder | None:
    """Return the checkpoint of the highest step that verifies.

    Only checkpoints that the database knows are candidates: what was said before they were committed
    is stored, so going on from one loses no metric point.
    """
    for candidate in sorted(candidates, key=lambda c: c.step, reverse=True):
        if is_whole(Path(candidate.folder), candidate.manifest):
            return candidate
    return None


def standing(parent: Path) -> list[Path]:
    """Return the committed folders below `parent`, newest first."""
    if not parent.is_dir():
        return []
    return sorted((f for f in parent.iterdir() if f.is_dir() and f.name[:1].isdigit()), reverse=True)


def read(folder: Path) -> Snapshot:
    """Read a checkpoint that was verified."""
    body = json.loads((folder / STATE).read_text())
    arrays = {group: _read_group(folder, group, dtypes) for group, dtypes in body["dtypes"].items()}
    return Snapshot(arrays, body["state"])


def _read_group(folder: Path, group: str, dtypes: list[str]) -> list[Array]:
    with np.load(folder / f"{group}.npz", allow_pickle=False) as stored:
        return [_restored(stored[f"{i:05d}"], dtype) for i, dtype in enumerate(dtypes)]


def _restored(array: Array, dtype: str) -> Array:
    if str(array.dtype) == dtype:
        return array
    import ml_dtypes

    return array.view(getattr(ml_dtypes, dtype))


def prune(parent: Path, fence: int, recorded: str | None, keep: int = KEEP) -> None:
    """Delete the checkpoints that nobody will go on from, and what earlier attempts left half-written.

    Only recorded checkpoints are gone on from, and recording may lag while the database is away: what is
    newer than the newest that is known to be recorded stays.

    Args:
        parent: the training's folder.
        fence: number of the attempt.
        recorded: name of that newest one; None while none is, and then all stay.
        keep: how many stay of it and those before it, for the case that one does not verify.
    """
    if recorded is not None:
        for folder in [folder for folder in standing(parent) if folder.name <= recorded][keep:]:
            shutil.rmtree(folder, ignore_errors=True)
    for folder in parent.glob(".tmp-*"):
        written_by = folder.name.split("-")[1]
        if written_by.isdigit() and int(written_by) < fence:
            shutil.rmtree(folder, ignore_errors=True)


def sizes(arrays: Mapping[str, list[Array]]) -> int:
    """Return how many bytes the arrays of a snapshot take."""
    return sum(array.nbytes for group in arrays.values() for array in group)
