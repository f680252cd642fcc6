"""Joins the tables of several files in formats whose columns have types."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from jobs.spec.data.file_limits import FileLimits
from workers.engine.arrays import Array
from workers.engine.data.expansion import check_expanded, too_large
from workers.engine.data.reading.column_types import convert
from workers.engine.data.reading.exact_numbers import inexact_number
from workers.engine.data.spilled import Spill, SpilledColumns
from workers.engine.data.table import Table
from workers.engine.errors import BadData, TooLarge

JOINED = "all files"
"""Name of the file that the others are copied to, as messages show it."""
MOST_NAMED = 10
KINDS = {"b": "booleans", "i": "numbers", "u": "numbers", "f": "numbers", "M": "times"}

type TypedReader = Callable[[Path, FileLimits, Spill], Table]
"""Reads a file with typed columns within limits; the columns of a large one are in the place."""


def join(paths: Sequence[Path], read: TypedReader, limits: FileLimits, spill: Spill) -> Table:
    """Read files with typed columns, and return their rows as one table.

    Args:
        paths: the files in their order.
        read: reads one, within the limits that the files before it leave.
        limits: the limits for all files together.
        spill: where a large table's columns are.

    Raises:
        TooLarge: the files together are above the limit.
        BadData: a file has other columns than the first one, or columns with another kind or shape.
    """
    check_sizes(paths, limits)
    tables = _read_each(paths, read, limits, spill)
    first, whole = tables[0]
    columns, size = SpilledColumns(spill.folder), 0
    for name in whole.columns:
        parts = _with_equal_types(name, [table.columns[name] for _, table in tables])
        for (file, _), column in zip(tables, parts, strict=True):
            if _kind_of(column) != _kind_of(parts[0]):
                here, there = _kind_of(parts[0]), _kind_of(column)
                raise BadData(f"column {name!r} has {there} in {file}, but {here} in {first}")
        # Small numbers of one file become as large as those of another.
        width = np.result_type(*(column.dtype for column in parts)).itemsize
        size += width * sum(column.size for column in parts)
        check_expanded(JOINED, size, limits)
        columns[name] = np.concatenate(parts)
    findings = [finding for _, table in tables for finding in table.findings]
    return replace(whole, columns=columns, findings=(*dict.fromkeys(findings),))


def _with_equal_types(name: str, parts: list[Array]) -> list[Array]:
    """Return a column's parts, all as texts if long whole numbers stayed texts in one of the files."""
    texts = [part for part in parts if part.dtype.kind == "T" and part.ndim == 1]
    if len(texts) in (0, len(parts)) or any(part.dtype.kind not in "iufT" for part in parts):
        return parts
    numbers = (part[np.isfinite(part)] for part in parts if part.dtype.kind == "f")
    if any((part != np.round(part)).any() for part in numbers) or not all(map(inexact_number, texts)):
        return parts
    converted = (convert(part, "category", name).values for part in parts)
    return [values for values in converted if values is not None]


def _read_each(
    paths: Sequence[Path], read: TypedReader, limits: FileLimits, spill: Spill
) -> list[tuple[str, Table]]:
    """Return each file's name and table; see `join`."""
    tables: list[tuple[str, Table]] = []
    taken = 0
    for path, part in zip(paths, places(spill), strict=False):
        rest = limits.model_copy(update={"expanded_bytes": max(limits.expanded_bytes - taken, 0)})
        try:
            table = read(path, rest, part)
        except TooLarge as error:
            if not tables:
                raise
            raise TooLarge(
                f"{error}. The files before it take {taken:,} of the {limits.expanded_bytes:,} bytes that "
                "are read of all files"
            ) from error
        tables.append((path.name, table))
        check_same_columns(paths[0].name, tables[0][1].columns, path.name, table.columns)
        taken += sum(table.columns[name].nbytes for name in table.columns)
    return tables


def check_sizes(paths: Sequence[Path], limits: FileLimits) -> None:
    """Check the files' total size before any is read.

    Raises:
        TooLarge: it is above the limit.
    """
    size = sum(path.stat().st_size for path in paths)
    if size > limits.expanded_bytes:
        raise too_large(f"{len(paths)} files have {size:,} bytes together", limits)


def places(spill: Spill) -> Iterator[Spill]:
    """Yield a place for each file's columns."""
    for number in range(1, 1_000_000):
        folder = spill.folder / f"file-{number}"
        folder.mkdir()
        yield replace(spill, folder=folder)


def _kind_of(column: Array) -> str:
    """Return a column's value kind for people; columns with the same one can be joined."""
    shape = "".join(f" × {size}" for size in column.shape[1:])
    return f"{KINDS.get(column.dtype.kind, 'texts')}{shape}"


def check_same_columns(first: str, columns: Collection[str], file: str, others: Collection[str]) -> None:
    """Check that a further file has the same columns as the first one, in any order.

    Raises:
        BadData: it lacks some, or has others.
    """
    missing = [name for name in columns if name not in others]
    added = [name for name in others if name not in columns]
    if missing or added:
        lacks = f" lacks {_listed(missing)}" if missing else ""
        has = f" has {_listed(added)}" if added else ""
        raise BadData(
            f"{file} has other columns than {first}: it{lacks}{' and' if lacks and has else ''}{has}"
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(repr(name) for name in names[:MOST_NAMED]) + more
