"""Runs the profile task: reads an upload or a bundled data set, writes it normalized and describes it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np

from jobs.contracts.data import Task
from jobs.contracts.file_limits import FileLimits
from jobs.contracts.profile import Profile
from jobs.kinds.profile.payload import ProfileTask
from workers.engine.arrays import Array
from workers.engine.data import statistics
from workers.engine.data.bundled import load_bundled
from workers.engine.data.csv_file import BadRows, read_csv
from workers.engine.data.encode import Encoded, encode, encode_target
from workers.engine.data.json_lines import read_json_lines
from workers.engine.data.schema import is_tabular, propose
from workers.engine.data.store import write_npz
from workers.engine.data.table import Table, read_array, read_arrow, read_npz, read_parquet
from workers.engine.data.tabular import TableTarget, make_table_profile
from workers.engine.errors import BadData, BadSpec
from workers.engine.report import Report

READERS: dict[str, Callable[[Path, FileLimits], Table]] = {
    "npz": read_npz,
    "npy": read_array,
    "parquet": read_parquet,
    "arrow": read_arrow,
}
BAD_ROWS = "bad_rows.csv"
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
    arrays, profile = _described(table, target, prediction_task, task, report)
    path = Path(task.folder) / "dataset.npz"
    digest = write_npz(path, arrays)
    report.progress(3, STEPS, "steps")
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
    if table.bad_rows:
        report.artifact("bad_rows", BAD_ROWS, name=BAD_ROWS)
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
    return _read_file(task, Path(task.path)), task.target, prediction_task


def _read_file(task: ProfileTask, path: Path) -> Table:
    """Return the rows of an upload; those that are left out are written to a file."""
    bad = BadRows(task.reading.max_bad_share)
    match task.source:
        case "csv":
            table = read_csv(path, task.limits, task.reading.dialect, bad)
        case "json_lines":
            table = read_json_lines(path, task.limits, bad)
        case _:
            return READERS[task.source](path, task.limits)
    if bad.rows:
        bad.write(Path(task.folder) / BAD_ROWS)
    return table


def _prediction_task(name: str | None) -> Task | None:
    kinds: tuple[Task, ...] = get_args(Task)
    for kind in kinds:
        if kind == name:
            return kind
    if name is not None:
        raise BadSpec(f"no task {name!r}; there are {', '.join(kinds)}")
    return None


def _described(
    table: Table, target: str | None, prediction_task: Task | None, task: ProfileTask, report: Report
) -> tuple[dict[str, Array], Profile]:
    """Return the arrays of `dataset.npz` and the profile."""
    if not is_tabular(table):
        if task.columns:
            raise BadData("roles and types of columns can be chosen for tables, not for arrays")
        encoded = encode(
            table, target=target, features=task.features, task=prediction_task, limits=task.limits
        )
        _encoded(report)
        return arrays_to_store(table, encoded.y, x=encoded.x), make_profile(table, encoded)
    schema = propose(table, target=target, features=task.features, requests=task.columns)
    column = schema.table.columns[schema.target]
    found = TableTarget(*encode_target(schema.target, column, prediction_task))
    _encoded(report)
    return arrays_to_store(schema.table, found.y), make_table_profile(schema, found, task.limits)


def _encoded(report: Report) -> None:
    report.progress(2, STEPS, "steps")
    report.phase("working")


def arrays_to_store(table: Table, y: Array, *, x: Array | None = None) -> dict[str, Array]:
    """Return the arrays of `dataset.npz`: `y`, the names `columns` and the columns `column_<i>`.

    Features that are arrays are stored encoded, as `x`. Those of a table are encoded by each training, since
    the pipeline is fitted on its training part.
    """
    # Raw columns are needed for splits by group, column or time, and to select other targets or features.
    raw = {name: column for name, column in table.columns.items() if column.ndim == 1}
    encoded = {} if x is None else {"x": x}
    return {
        **encoded,
        "y": y,
        "columns": np.asarray(list(raw), dtype=np.str_),
        **{f"column_{i}": column for i, column in enumerate(raw.values())},
    }


def make_profile(table: Table, encoded: Encoded) -> Profile:
    """Return the profile of arrays that are used as in `encoded`."""
    duplicates = statistics.count_duplicates(encoded.x, encoded.y)
    counts = statistics.class_counts(encoded.y, encoded.task, encoded.outputs)
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
        class_counts=counts,
        columns=tuple(statistics.describe_column(name, c) for name, c in table.columns.items()),
        preview=statistics.preview(table),
        duplicates=duplicates,
        findings=(
            *encoded.findings,
            *statistics.find_issues(
                table,
                target=encoded.target,
                features=encoded.features,
                class_labels=encoded.class_labels,
                class_counts=counts,
                duplicates=duplicates,
            ),
        ),
    )
