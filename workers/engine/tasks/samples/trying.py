"""Tries a model on rows: of its sender, of its data, by its pipeline, or made up."""

from pathlib import Path

from jobs.messages.task import DatasetFile
from jobs.spec.data.features import Features
from jobs.spec.signature import Signature
from workers.engine.tasks.samples.known_rows import rows_of_data
from workers.engine.tasks.samples.probes import ROWS, Predict, Tried, find_rows
from workers.engine.tasks.samples.sample_file import read_sample
from workers.features.pipeline import Pipeline


def try_rows(
    predict: Predict,
    signature: Signature,
    dataset: DatasetFile | None,
    features: Features | None,
    sample: str | None,
) -> Tried:
    """Return rows that a model has answered, if there are some.

    Args:
        predict: the model.
        signature: its signature.
        dataset: the data that it was trained on, if they are known.
        features: the pipeline in its file, if there is one.
        sample: the path of the file with the sender's rows, which come before all others.

    Raises:
        BadModel: the sample does not fit the signature, or the model answers no rows.
    """
    if sample is not None:
        rows = read_sample(Path(sample), signature, features)
        return Tried(rows, predict(rows), "the rows of its sample")
    if rows := rows_of_data(signature, dataset, features):
        return Tried(rows, predict(rows), "rows of its data", is_of_data=True)
    if features is not None:
        rows = [Pipeline(features).of_nothing(ROWS)]
        return Tried(rows, predict(rows), "rows without values")
    return find_rows(predict, signature)
