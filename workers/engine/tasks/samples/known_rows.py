"""Finds rows for a model in its data."""

from pathlib import Path

from jobs.messages.task import DatasetFile
from jobs.spec.data.features import Features
from jobs.spec.signature import Signature
from workers.engine.arrays import Array
from workers.engine.data.dataset import UploadedColumns
from workers.engine.data.mapped_columns import MappedColumns
from workers.engine.data.reading.arrow_file import is_arrow
from workers.engine.data.store import read_arrays
from workers.engine.errors import BadData
from workers.features.pipeline import Pipeline
from workers.features.values import BadValue

ROWS_OF_DATA = 32


def rows_of_data(
    signature: Signature, dataset: DatasetFile | None, features: Features | None = None
) -> list[Array]:
    """Return the first rows of a model's data, one array for each input; none if their shape does not match.

    Args:
        signature: the model's signature.
        dataset: the data that it was trained on, if they are known.
        features: the pipeline in the model's file, if there is one.
    """
    inputs = signature.inputs
    if dataset is None or len(inputs) != 1:
        return []
    x = _first_rows(dataset, features)
    return [] if x is None or not fits(x.shape[1:], inputs[0].shape) else [x.astype(inputs[0].dtype)]


def _first_rows(dataset: DatasetFile, features: Features | None) -> Array | None:
    if features is None:
        path = Path(dataset.path)
        if is_arrow(path):
            return MappedColumns(path).head("x", ROWS_OF_DATA)
        x = read_arrays(path).get("x")
        return None if x is None else x[:ROWS_OF_DATA]
    columns = UploadedColumns(dataset)
    names = Pipeline(features).columns
    if not all(name in columns for name in names):
        return None
    try:
        pipeline = Pipeline(features)
        size = pipeline.rows_of_window
        x = pipeline.of_stored({name: columns.column(name)[: ROWS_OF_DATA * size] for name in names})
        whole = len(x) // size
        return x[: whole * size].reshape(whole, *features.input_shape) if whole else None
    # The pipeline of a model from elsewhere may take other types than these data have.
    except (BadData, BadValue):
        return None


def fits(shape: tuple[int, ...], accepted: tuple[int | None, ...]) -> bool:
    """Return whether rows with `shape` can be an input with shape `accepted`, where None accepts any size."""
    if len(shape) != len(accepted):
        return False
    return all(size in (None, length) for length, size in zip(shape, accepted, strict=True))
