"""Runs the profile task: reads an upload or a bundled data set, writes it normalized and describes it."""

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np

from jobs.contracts.data import Task
from jobs.contracts.profile import Profile
from jobs.kinds.profile.payload import ProfileTask
from workers.engine.arrays import Array
from workers.engine.data import statistics
from workers.engine.data.bundled import load_bundled
from workers.engine.data.encode import Encoded, encode
from workers.engine.data.store import write_npz
from workers.engine.data.table import Table, read_csv, read_npz, read_parquet
from workers.engine.errors import BadData, BadSpec
from workers.engine.report import Report

READERS = {"csv": read_csv, "npz": read_npz, "parquet": read_parquet}
STEPS = 4
MAX_PROFILE_BYTES = 3 * 2**20
"""The profile is part of the task's result, and an event has at most 4 MiB."""


def run(task: ProfileTask, report: Report) -> dict[str, Any]:
    """Write `dataset.npz` and `profile.json`.

    Returns:
        The profile, and the digest, rows and bytes of the data set.

    Raises:
        BadData: the upload cannot be used.
        BadSpec: the task does not name a source.
    """
    table, target, prediction_task = _read(task)
    report.progress(1, STEPS, "steps")
    report.phase("working")
    encoded = encode(table, target=target, features=task.features, task=prediction_task, limits=task.limits)
    report.progress(2, STEPS, "steps")
    report.phase("working")
    path = Path(task.folder) / "dataset.npz"
    digest = write_npz(path, arrays_to_store(table, encoded))
    report.progress(3, STEPS, "steps")
    report.phase("working")
    profile = make_profile(table, encoded)
    body = profile.model_dump(mode="json")
    text = json.dumps(body)
    if len(text) > MAX_PROFILE_BYTES:
        raise BadData(
            f"the description of its {len(profile.columns):,} columns has {len(text):,} bytes; at most "
            f"{MAX_PROFILE_BYTES:,} are stored. Upload fewer columns, or arrays instead of single columns"
        )
    (Path(task.folder) / "profile.json").write_text(text)
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
    """Return the rows, the target column and the prediction task; `encode` infers those that are None."""
    prediction_task = _prediction_task(task.task)
    if task.source == "bundled":
        table, info = load_bundled(task.bundled or "")
        # The data set's own task belongs to its own target: another column may be of another kind.
        if prediction_task is None and task.target in (None, info.target):
            prediction_task = info.task
        return table, task.target or info.target, prediction_task
    if task.path is None:
        raise BadSpec(f"a profile of a {task.source} upload needs the path of the file")
    return READERS[task.source](Path(task.path), task.limits), task.target, prediction_task


def _prediction_task(name: str | None) -> Task | None:
    kinds: tuple[Task, ...] = get_args(Task)
    for kind in kinds:
        if kind == name:
            return kind
    if name is not None:
        raise BadSpec(f"no task {name!r}; there are {', '.join(kinds)}")
    return None


def arrays_to_store(table: Table, encoded: Encoded) -> dict[str, Array]:
    """Return the arrays of `dataset.npz`: `x`, `y`, the names `columns` and the raw columns `column_<i>`."""
    # Raw columns are needed for splits by group, column or time, and to select other targets or features.
    raw = {name: column for name, column in table.columns.items() if column.ndim == 1}
    return {
        "x": encoded.x,
        "y": encoded.y,
        "columns": np.asarray(list(raw), dtype=np.str_),
        **{f"column_{i}": column for i, column in enumerate(raw.values())},
    }


def make_profile(table: Table, encoded: Encoded) -> Profile:
    """Return the profile of a table whose columns are used as in `encoded`."""
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
        findings=statistics.find_issues(table, encoded, duplicates),
    )
