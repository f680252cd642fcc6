"""Finds the label for each image in an archive: its folder's name, or a row in a label table."""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.images import FILE, IMAGE
from workers.engine.arrays import Array
from workers.engine.data.encode import choose_target
from workers.engine.data.reading.csv_file import read_csv
from workers.engine.data.table import Table
from workers.engine.data.texts import is_text, text_array
from workers.engine.errors import BadData
from workers.system.archives import ArchiveFile

LABEL, FOLDER = "label", "folder"
TABLES = frozenset({".csv", ".tsv"})
"""Suffixes of a table of labels. Its name may be labels.csv, metadata.csv, train.csv or another one."""
MAX_TABLE_DEPTH = 1
"""Folders around the table of labels."""


@dataclass(frozen=True)
class LabelledImages:
    """The images that have labels.

    Attributes:
        paths: the image paths, sorted.
        columns: their labels by column name, (rows,) each.
        refused: path and reason for each image without a label, and for each label without an image.
    """

    paths: tuple[str, ...]
    columns: dict[str, Array]
    refused: tuple[tuple[str, str], ...] = ()


def is_table(path: str) -> bool:
    """Return whether a file in an archive is its label table."""
    return path.count("/") <= MAX_TABLE_DEPTH and PurePosixPath(path).suffix.lower() in TABLES


def choose_label(columns: Mapping[str, Array], target: str | None) -> str:
    """Return the target's name among the image labels; see `choose_target`.

    Raises:
        BadData: there is no such column.
    """
    features = {name: column for name, column in columns.items() if name not in (IMAGE, FILE, FOLDER)}
    return choose_target(Table(dict(columns) if target is not None else features), target)


def label_by_folder(paths: Sequence[str]) -> LabelledImages:
    """Return images with the innermost folder's name as their label."""
    ordered = tuple(sorted(path for path in paths if "/" in path))
    outside = [
        (path, "it is in no class folder, and there is no labels.csv") for path in paths if "/" not in path
    ]
    folders = [path.split("/")[:-1] for path in ordered]
    columns = {LABEL: text_array(parts[-1].strip() for parts in folders)}
    columns |= _outer(["/".join(parts[:-1]) for parts in folders])
    return LabelledImages(ordered, columns, tuple(outside))


def label_by_table(
    paths: Sequence[str], table: ArchiveFile, folder: Path, limits: FileLimits
) -> LabelledImages:
    """Return images with a table's columns.

    Args:
        paths: the image paths.
        table: the table's file. One column has the image names: their paths from the
            folder that has the table or from the archive, or their names without folders.
        folder: the task's folder, for a temporary file.
        limits: the limits for the table.

    Raises:
        BadData: the table cannot be read, or no column has the image names.
    """
    columns = _read(table, folder, limits)
    path_of_name = _names(paths, table.path.rpartition("/")[0])
    column, row_paths = _paths_in(columns, path_of_name, table.path, paths)
    rows, refused = _matched(row_paths, columns[column], table.path)
    refused += [(path, f"it has no row in {table.path}") for path in paths if path not in rows]
    ordered = tuple(sorted(rows))
    order = np.asarray([rows[path] for path in ordered], np.int64)
    labels = {name: values[order] for name, values in columns.items() if name != column}
    for name in (IMAGE, FILE):
        if name in labels:
            raise BadData(f"{table.path} has a column {name!r} beside {column!r}; give it another name")
    if not labels:
        raise BadData(f"{table.path} has no column beside {column!r}; the labels are missing")
    outer = _outer([path.rpartition("/")[0] for path in ordered])
    return LabelledImages(ordered, outer | labels, tuple(refused))


def _outer(folders: list[str]) -> dict[str, Array]:
    """Return the column with the other folders, such as `train` and `test`, if they differ."""
    return {FOLDER: text_array(folders)} if len({*folders}) > 1 else {}


def _read(table: ArchiveFile, folder: Path, limits: FileLimits) -> dict[str, Array]:
    # Its name is shown in messages.
    path = folder / table.path.rpartition("/")[2].lower()
    path.write_bytes(table.body)
    try:
        return dict(read_csv(path, limits).columns)
    finally:
        path.unlink()


def _names(paths: Sequence[str], folder: str) -> dict[str, str]:
    """Return each image's path by the names that a table may give it."""
    by_name = Counter(path.rpartition("/")[2] for path in paths)
    short = {path.rpartition("/")[2]: path for path in paths if by_name[path.rpartition("/")[2]] == 1}
    inside = {path.removeprefix(f"{folder}/"): path for path in paths} if folder else {}
    return {**short, **{path: path for path in paths}, **inside}


def _paths_in(
    columns: dict[str, Array], path_of_name: dict[str, str], table: str, paths: Sequence[str]
) -> tuple[str, list[str | None]]:
    """Return the column with the most image names, and their paths; None for other values."""
    best, most, best_paths = "", 0, list[str | None]()
    for name, values in columns.items():
        if not is_text(values):
            continue
        here = [path_of_name.get(_normal(value)) for value in values.tolist()]
        if (count := sum(path is not None for path in here)) > most:
            best, most, best_paths = name, count, here
    if not most:
        example = f"such as {paths[0]!r}" if paths else "but there are none"
        raise BadData(f"no column of {table} has the names of the images, {example}")
    return best, best_paths


def _normal(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip().replace("\\", "/").removeprefix("./"))


def _matched(
    row_paths: Sequence[str | None], names: Array, table: str
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return each path's row, and the rows that are refused."""
    rows: dict[str, int] = {}
    refused = []
    for row, path in enumerate(row_paths):
        if path is None:
            refused.append((str(names[row]), f"row {row + 1} of {table} names it, but the archive lacks it"))
        elif path in rows:
            refused.append((path, f"row {row + 1} of {table} names it again"))
        else:
            rows[path] = row
    return rows, refused
