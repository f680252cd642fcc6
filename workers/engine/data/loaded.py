"""Writes the rows that user code has loaded to a file as people upload it, with each row's part."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from jobs.messages.overview import Part
from jobs.spec.data.file_limits import FileLimits
from jobs.spec.sections.data import Task
from workers.engine.arrays import Array
from workers.engine.data.encode import encode_target
from workers.engine.data.expansion import check_expanded
from workers.engine.data.returned import Pair, values_of
from workers.engine.data.store import write_npz
from workers.engine.errors import BadData

PARTS: tuple[Part, ...] = get_args(Part)
TARGET, PART = "y", "part"
"""Names of columns. An underscore follows if the code uses the name for a feature."""
SHARE = 0.2
"""Of the training rows, for a part that the code does not return."""
MAX_CLASSES = 1_000
"""Whole numbers or texts with more different values are not divided class by class."""


@dataclass(frozen=True)
class LoadedFile:
    """The file, and how its columns are used; see `jobs.kinds.code_data.payload.CodeDataResult`.

    Attributes:
        name: the file's name.
        source: its format.
        target: the target column.
        part: the column that names each row's part; None if all rows are training rows.
        rows: each part's row count.
        notes: sentences for the user.
    """

    name: str
    source: Literal["npz", "parquet"]
    target: str
    part: str | None
    rows: dict[Part, int]
    notes: tuple[str, ...] = ()


def write(
    pairs: Mapping[Part, Pair], folder: Path, limits: FileLimits, prediction: Task | None = None
) -> LoadedFile:
    """Write all parts' rows to one file, with a column that names each row's part.

    A missing part gets a fifth of the training rows, class by class if there are classes. With the
    training part alone there is no such column: each experiment then splits the rows.

    Raises:
        BadData: the parts have different columns, shapes or types, or are too large.
    """
    present = [part for part in PARTS if part in pairs]
    first = pairs["train"]
    for part in present:
        _check_alike(first, pairs[part], part)
    columns = {name: [pairs[part].columns[name] for part in present] for name in first.columns}
    target = _free(TARGET, columns)
    columns[target] = [pairs[part].y for part in present]
    is_table = all(pairs[part].is_table for part in present)
    if is_table and isinstance(first.y, np.ndarray):
        raise BadData(
            f"y has {first.y.shape[1]} values for each row, which needs an x that is one array of numbers "
            "with two axes or more; a table has one target"
        )
    encode_target(target, _joined(columns[target]), prediction)
    _check_size(columns, limits.of_large_tables() if is_table else limits)
    names, notes = _parts_of_rows(pairs, present)
    name_of_part = None if names is None else _free(PART, columns)
    if names is not None and name_of_part is not None:
        columns[name_of_part] = [names]
    rows = _counts(names, first.rows)
    if is_table:
        _write_parquet(folder / "load_data.parquet", columns)
        return LoadedFile("load_data.parquet", "parquet", target, name_of_part, rows, notes)
    write_npz(folder / "load_data.npz", {name: _joined(parts) for name, parts in columns.items()})
    return LoadedFile("load_data.npz", "npz", target, name_of_part, rows, notes)


def _free(name: str, used: Mapping[str, Any]) -> str:
    while name in used:
        name += "_"
    return name


def _counts(names: Array | None, rows: int) -> dict[Part, int]:
    if names is None:
        return {"train": rows}
    return {part: int((names == part).sum()) for part in PARTS}


def _check_alike(first: Pair, other: Pair, part: Part) -> None:
    """Check that a part has the same columns as the training part, in the same form."""
    if (here := list(other.columns)) != list(first.columns):
        different = _some([*(set(here) ^ set(first.columns))]) or "in another order"
        raise BadData(f"x has other columns for {part!r} than for 'train': {different}")
    compared = [
        (f"x[{name!r}]" if len(here) > 1 else "x", column, other.columns[name])
        for name, column in first.columns.items()
    ]
    for name, trained, others in [*compared, ("y", first.y, other.y)]:
        shapes = [array.shape[1:] if isinstance(array, np.ndarray) else () for array in (trained, others)]
        if shapes[0] != shapes[1]:
            raise BadData(
                f"{name} has rows of the shape {shapes[1]} for {part!r}, and {shapes[0]} for 'train'"
            )
        if _family(trained) != _family(others):
            raise BadData(
                f"{name} contains {_family(others)} for {part!r}, and {_family(trained)} for 'train'"
            )


def _family(column: Any) -> str:
    """Return a column's value kind, for a comparison."""
    import pyarrow as pa

    if isinstance(column, np.ndarray):
        return "numbers"
    kinds = pa.types
    if kinds.is_string(column.type) or kinds.is_large_string(column.type):
        return "texts"
    return "dates" if kinds.is_temporal(column.type) else "numbers"


def _some(names: Sequence[str]) -> str:
    return ", ".join(sorted(names)[:5])


def _check_size(columns: Mapping[str, Iterable[Any]], limits: FileLimits) -> None:
    size = sum(int(part.nbytes) for parts in columns.values() for part in parts)
    check_expanded("load_data", size, limits)


def _parts_of_rows(
    pairs: Mapping[Part, Pair], present: Sequence[Part]
) -> tuple[Array | None, tuple[str, ...]]:
    """Return each row's part, and notes; None with the training part alone."""
    if len(present) == 1:
        return None, ()
    names = np.concatenate([np.full(pairs[part].rows, part, "U10") for part in present])
    notes = []
    for part in PARTS:
        if part in present:
            continue
        train = np.flatnonzero(names == "train")
        taken = _drawn(pairs["train"].y, train)
        names[taken] = part
        notes.append(
            f"The code returns no {part} rows, so {len(taken):,} of the {len(train):,} training rows are the "
            f"{part} part."
        )
    return names, tuple(notes)


def _drawn(y: Any, train: Array) -> Array:
    """Return a fifth of the training rows, at random with a fixed seed, class by class if there are classes.

    Raises:
        BadData: there are too few.
    """
    rng = np.random.default_rng(0)
    count = max(round(len(train) * SHARE), 1)
    if count >= len(train):
        raise BadData("load_data returned one training row, of which no further part can be made")
    values = y if isinstance(y, np.ndarray) else values_of(y)
    if values.ndim == 1 and values.dtype.kind in "biuTU":
        classes = np.unique(values)
        if len(classes) <= MAX_CLASSES:
            # Rows in random order, sorted by class: each fifth one is as even as whole rows allow.
            order = train[rng.permutation(len(train))]
            order = order[np.argsort(np.searchsorted(classes, values[order]), kind="stable")]
            return order[np.linspace(0, len(order), count, endpoint=False).astype(int)]
    return rng.permutation(train)[:count]


def _joined(parts: Sequence[Any]) -> Array:
    """Return all parts' values as an array that an NPZ file can have."""
    arrays = [part if isinstance(part, np.ndarray) else values_of(part) for part in parts]
    return np.concatenate([_fixed(part) if part.dtype.kind == "T" else part for part in arrays])


def _fixed(texts: Array) -> Array:
    """Return texts with fixed width: such a file has no form for others."""
    return texts.astype(f"U{max(int(np.strings.str_len(texts).max()), 1)}")


def _write_parquet(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = {}
    for name, parts in columns.items():
        tables = [pa.table({name: part if isinstance(part, pa.Array) else pa.array(part)}) for part in parts]
        try:
            whole[name] = pa.concat_tables(tables, promote_options="permissive").column(0)
        except pa.ArrowException as error:
            kinds = ", ".join(dict.fromkeys(str(table.schema.field(0).type) for table in tables))
            raise BadData(f"column {name!r} has another type in each part: {kinds}") from error
    pq.write_table(pa.table(whole), path)
