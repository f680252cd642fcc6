"""A served version's pipeline, and the file from which other processes read it."""

import functools
from pathlib import Path
from typing import NamedTuple

from jobs.spec.signature import InputColumn, InputWindow
from workers.features.files import read_features
from workers.features.pipeline import Pipeline
from workers.serving.protocols.quick_bodies import size_of


class ServedTable(NamedTuple):
    """The pipeline that turns table columns into a version's input.

    Attributes:
        pipeline: ready to be executed.
        path: the version's file.
        size: how many columns it takes, with wide ones counted several times (`quick_bodies.size_of`).
    """

    pipeline: Pipeline
    path: Path
    size: int


@functools.lru_cache(maxsize=8)
def read_table(path: Path) -> ServedTable | None:
    """Return the pipeline in a verified model file; None if it has none.

    Files are named by their digests and never change, so the newest ones stay in memory.

    Raises:
        BadFeatures: it is invalid.
    """
    features = read_features(path)
    if features is None:
        return None
    pipeline = Pipeline(features)
    return ServedTable(pipeline, path, size_of(pipeline))


def columns_of(table: ServedTable | None) -> tuple[InputColumn, ...]:
    """Return the columns that a version takes, for its signature."""
    columns = {} if table is None else table.pipeline.columns
    return tuple(InputColumn(name=name, type=kind) for name, kind in columns.items())


def window_of(table: ServedTable | None) -> InputWindow | None:
    """Return how many table rows are one instance for a version; None if it is one row, or an array."""
    return None if table is None else table.pipeline.features.window
