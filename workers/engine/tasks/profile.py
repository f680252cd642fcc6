"""The profile task: read an upload or a bundled set, write it normalized, describe it."""

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np

from jobs.contracts.data import Task
from jobs.contracts.profile import Profile
from jobs.kinds.profile.payload import ProfileTask
from workers.engine.data import statistics
from workers.engine.data.bundled import load_bundled
from workers.engine.data.encode import Encoded, encode
from workers.engine.data.store import write_npz
from workers.engine.data.table import Array, Table, read_csv, read_npz, read_parquet
from workers.engine.errors import BadSpec
from workers.engine.report import Report

READERS = {"csv": read_csv, "npz": read_npz, "parquet": read_parquet}
STEPS = 4


def run(task: ProfileTask, report: Report) -> dict[str, Any]:
    """Write `dataset.npz` and `profile.json`; the result carries digest, rows, bytes and the profile.

    Raises:
        BadData: the upload cannot be used.
        BadSpec: the task names no source.
    """
    table, target, kind = _read(task)
    report.progress(1, STEPS, "steps")
    encoded = encode(table, target=target, features=task.features, task=kind)
    report.progress(2, STEPS, "steps")
    path = Path(task.folder) / "dataset.npz"
    digest = write_npz(path, arrays_to_store(table, encoded))
    report.progress(3, STEPS, "steps")
    profile = make_profile(table, encoded)
    body = profile.model_dump(mode="json")
    (Path(task.folder) / "profile.json").write_text(json.dumps(body))
    report.artifact("dataset", "dataset.npz", name="dataset.npz", meta={"digest": digest})
    report.artifact("profile", "profile.json", name="profile.json")
    report.progress(STEPS, STEPS, "steps")
    return {
        "profile": body,
        "digest": digest,
        "rows": profile.rows,
        "bytes": path.stat().st_size,
        "path": "dataset.npz",
    }


def _read(task: ProfileTask) -> tuple[Table, str | None, Task | None]:
    kind = _task_kind(task.task)
    if task.source == "bundled":
        table, about = load_bundled(task.bundled or "")
        own = task.target is None or task.target == about.target
        return table, task.target or about.target, kind or (about.task if own else None)
    if task.path is None:
        raise BadSpec(f"a profile of a {task.source} upload needs the path of the file")
    return READERS[task.source](Path(task.path)), task.target, kind


def _task_kind(name: str | None) -> Task | None:
    kinds: tuple[Task, ...] = get_args(Task)
    for kind in kinds:
        if kind == name:
            return kind
    if name is not None:
        raise BadSpec(f"no task {name!r}; there are {', '.join(kinds)}")
    return None


def arrays_to_store(table: Table, encoded: Encoded) -> dict[str, Array]:
    """Return `x`, `y` and the raw scalar columns (`columns` names, `column_<i>` holds them).

    The raw columns serve splits by group, column or time and other choices of target and features.
    """
    raw = {name: column for name, column in table.columns.items() if column.ndim == 1}
    return {
        "x": encoded.x,
        "y": encoded.y,
        "columns": np.asarray(list(raw), dtype=np.str_),
        **{f"column_{i}": column for i, column in enumerate(raw.values())},
    }


def make_profile(table: Table, encoded: Encoded) -> Profile:
    """Describe a table under the roles that `encoded` gives its columns."""
    duplicates = statistics.count_duplicates(encoded.x, encoded.y)
    return Profile(
        rows=table.rows,
        kind=encoded.kind,
        task=encoded.task,
        target=encoded.target,
        features=encoded.features,
        inputs=encoded.inputs,
        input_shape=encoded.x.shape[1:],
        outputs=encoded.outputs,
        class_labels=encoded.class_labels,
        class_counts=statistics.class_counts(encoded),
        columns=tuple(statistics.describe_column(name, c) for name, c in table.columns.items()),
        preview=statistics.preview(table),
        duplicates=duplicates,
        findings=statistics.find(table, encoded, duplicates),
    )
