"""Writes an experiment's data as a file for a script: Parquet for tables, NPZ for arrays and images."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jobs.messages.task import DatasetFile
from jobs.spec.data.encoding import feature_names
from jobs.spec.data.profile import Profile
from jobs.spec.data.split_roles import resolved
from jobs.spec.sections.data import DataSpec
from workers.engine.arrays import Array
from workers.engine.data.dataset import columns_of, load_dataset
from workers.engine.data.encode import encode_target
from workers.engine.data.mapped_columns import MappedColumns
from workers.engine.data.reading.arrow_columns import to_arrow
from workers.engine.data.reading.arrow_file import is_arrow
from workers.engine.data.rows import Rows, WholeColumns
from workers.engine.data.split import Parts, split
from workers.engine.data.store import read_arrays
from workers.engine.errors import BadSpec

PART = "trainyard_part"
"""The column, or the array, that names the part of each row: train, validation, test; empty for none."""
PART_ROWS = 65_536


def write_data(file: DatasetFile, data: DataSpec, folder: Path) -> Path:
    """Write a version's rows with the part that the split gives each, and return the new file.

    A table becomes Parquet with the columns as they were uploaded: features, target, and the column of
    weights. Other data become NPZ with the arrays `x` and `y`, and `class_labels` if there are classes.

    Raises:
        BadData: the file is damaged, or the target cannot be used.
        BadSpec: a column does not exist, or these rows cannot be split.
    """
    profile = Profile.model_validate(file.profile)
    if profile.has_pipeline and profile.images is None:
        return _write_table(Path(file.path), profile, data, folder / "data.parquet")
    loaded = load_dataset(file, data)
    rows = len(loaded.y)
    path = folder / "data.npz"
    arrays = {"x": loaded.x[:], "y": loaded.y, PART: _parts(loaded.parts, rows)}
    if loaded.profile.class_labels:
        arrays["class_labels"] = np.asarray(loaded.profile.class_labels, np.str_)
    np.savez(path, allow_pickle=False, **arrays)
    return path


def _write_table(source: Path, profile: Profile, data: DataSpec, path: Path) -> Path:
    columns, y = _read(source)
    target = data.target or profile.target
    names = [*feature_names(data, profile), target, *([profile.weight] if profile.weight else [])]
    names = list(dict.fromkeys(names))
    if missing := [name for name in names if name not in columns]:
        raise BadSpec(f"the data have no column {missing[0]!r}")
    if PART in names:
        raise BadSpec(f"the data have a column {PART!r}, which names the part of each row; rename it")
    task = data.task or (profile.task if target == profile.target else None)
    if (target, task) != (profile.target, profile.task):
        y, task, _ = encode_target(target, columns[target][:], task)
    parts = split(y, WholeColumns(columns), task or profile.task, resolved(data.split, profile))
    _write(path, columns, names, _parts(parts, len(y)))
    return path


def _read(source: Path) -> tuple[Mapping[str, Rows], Array]:
    if is_arrow(source):
        mapped = MappedColumns(source)
        return mapped, mapped.array("y")
    arrays = read_arrays(source)
    return columns_of(arrays, has_images=False), arrays["y"]


def _write(path: Path, columns: Mapping[str, Rows], names: list[str], parts: Array) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: pq.ParquetWriter | None = None
    # In parts, since a table may be larger than the memory of the run.
    for start in range(0, max(len(parts), 1), PART_ROWS):
        rows = slice(start, start + PART_ROWS)
        values = {name: to_arrow(columns[name][rows]) for name in names}
        table = pa.table({**values, PART: pa.array(parts[rows].tolist(), pa.string())})
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _parts(parts: Parts, rows: int) -> Array:
    """Return each row's part name, (rows,); rows in no part have an empty one."""
    part_names = np.full(rows, "", dtype="<U10")
    for name in Parts._fields:
        part_names[getattr(parts, name)] = name
    return part_names
