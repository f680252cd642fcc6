"""Runs the register task: checks that a model file can be loaded, safely or with its code in a sandbox."""

import json
import re
import zipfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import keras
import numpy as np

from jobs.kinds.register.payload import RegisterTask
from jobs.messages.task import DatasetFile
from jobs.spec.data.features import Features
from jobs.spec.signature import Signature, TensorSpec
from workers.engine.arrays import Array
from workers.engine.data.dataset import UploadedColumns
from workers.engine.data.mapped_columns import MappedColumns
from workers.engine.data.reading.arrow_file import is_arrow
from workers.engine.data.store import file_digest, read_arrays
from workers.engine.errors import BadData, BadModel
from workers.engine.models.build import signature_of
from workers.engine.models.files import load_model
from workers.engine.models.own_code import cause_of, is_active, using_folder
from workers.engine.models.predict import arranged
from workers.engine.models.size_limit import check_budget
from workers.engine.models.untrusted import TOO_DEEP, scan, scan_archive
from workers.engine.report import Report
from workers.engine.tasks.artifacts import summary_of, write_json
from workers.engine.tasks.steps import Steps
from workers.features.files import BadFeatures, read_features
from workers.features.pipeline import Pipeline
from workers.features.values import BadValue

SAMPLE_ROWS = 32
RANDOM_ROWS = 4
VARIABLE_SIZE = 8
"""Size used for dimensions of variable size."""


def run(task: RegisterTask, report: Report) -> dict[str, Any]:
    """Verify the digest, scan an untrusted file, load it and predict sample rows.

    A file that came with code is loaded with it only if it cannot be loaded safely.

    Returns:
        The model's signature, class labels and parameter count, and whether the file needs its code.

    Raises:
        BadModel: the file cannot be accepted; the message names the problem.
    """
    steps = Steps(report, 3)
    path = Path(task.model)
    steps.begin("checking the file")
    check_digest(path, task.digest)
    code = needed_code(task, report)
    with loading_with(code):
        return {**_read(task, report, steps), "needs_code": code is not None}


def needed_code(task: RegisterTask, report: Report) -> Path | None:
    """Return the folder with the code without which the file cannot be loaded; None if it can be loaded.

    Raises:
        BadModel, DamagedFile: there is no code, and the file is foreign and cannot be accepted.
    """
    path = Path(task.model)
    if task.code is None:
        # Before Keras reads it: its config could request more memory than there is.
        if task.foreign:
            check_budget(path, scan(path))
        return None
    try:
        check_budget(path, scan(path, names_in_compile_config=False))
        load_checked(path, Path(task.folder))
    except BadModel as reason:
        scan_archive(path)
        report.log(f"The file needs its code: {reason}")
        return Path(task.code.folder)
    return None


def loading_with(code: Path | None) -> AbstractContextManager[None]:
    """Let files be loaded with the objects from the code in a folder; without one, in safe mode."""
    return nullcontext() if code is None else using_folder(code)


def _read(task: RegisterTask, report: Report, steps: Steps) -> dict[str, Any]:
    """Load a file's model, predict sample rows, and return the facts about it."""
    path = Path(task.model)
    steps.begin("loading the model with its code" if is_active() else "loading the model in safe mode")
    model = load_checked(path, Path(task.folder))
    features = features_for(signature_of(model), path)
    signature = signature_of(model, features)
    steps.begin("predicting sample rows")
    sample = sample_for(signature, task.dataset, features)
    outputs = predict_sample(model, sample)
    if not all(np.isfinite(output).all() for output in outputs):
        raise BadModel("its predictions for sample rows are not finite")
    write_json(report, "summary", "summary.json", summary_of(model))
    with zipfile.ZipFile(path) as archive:
        metadata = json.loads(archive.read("metadata.json"))
    steps.done()
    return {
        "signature": signature.model_dump(mode="json"),
        "class_labels": _labels(task.dataset, outputs),
        "parameters": int(model.count_params()),
        "keras_version": str(metadata.get("keras_version", "")),
        "sample_rows": len(sample[0]),
    }


def check_digest(path: Path, digest: str) -> None:
    """Check that the file's SHA-256 is `digest`.

    Raises:
        BadModel: it is not.
    """
    if (actual := file_digest(path)) != digest:
        raise BadModel(f"the file's sha256 is {actual}, but {digest} was registered")


def load_checked(path: Path, folder: Path) -> Any:
    """Load a model: in safe mode, or inside `loading_with` with its code's objects.

    Raises:
        BadModel: Keras rejects the file, or it is not a functional model.
    """
    try:
        model = load_model(path, folder)
    except RecursionError as error:
        raise BadModel(TOO_DEEP) from error
    # Keras raises any of these for a file that is damaged or that safe mode refuses.
    except (ValueError, TypeError, KeyError, OSError, ImportError, AttributeError) as error:
        if is_active():
            raise BadModel(f"it cannot be loaded with its code: {cause_of(error)}") from error
        # Keras names the link in a temporary folder through which it reads the file.
        reason = re.sub(rf"{re.escape(str(folder))}/[^\s'\":,;]*", "the file", str(error).strip())
        raise BadModel(f"Keras cannot load it: {reason[:500]}") from error
    except (Exception, SystemExit) as error:
        if not is_active():
            raise
        raise BadModel(f"it cannot be loaded with its code: {cause_of(error)}") from error
    # A Sequential model that was saved before it was built has neither.
    if not getattr(model, "inputs", None) or not getattr(model, "outputs", None):
        raise BadModel("it has no fixed inputs and outputs; build it before saving")
    return model


def features_for(signature: Signature, path: Path) -> Features | None:
    """Return the pipeline in a model's file; None if it has none.

    Raises:
        BadModel: it is invalid, or does not make the model's input.
    """
    try:
        features = read_features(path)
    except BadFeatures as error:
        raise BadModel(str(error)) from error
    if features is not None:
        shapes = [tensor.shape for tensor in signature.inputs]
        if shapes != [features.input_shape]:
            raise BadModel(
                f"its pipeline makes rows of shape {features.input_shape}, but its inputs are {shapes}"
            )
    return features


def sample_for(
    signature: Signature, dataset: DatasetFile | None, features: Features | None = None
) -> list[Array]:
    """Return one array per input: the data's first rows if their shape matches, else generated rows.

    Args:
        signature: the model's signature.
        dataset: the data that it was trained on, if they are known.
        features: the pipeline in the model's file, if there is one.
    """
    inputs = signature.inputs
    if dataset is not None and len(inputs) == 1:
        x = _first_rows(dataset, features)
        if x is not None and fits(x.shape[1:], inputs[0].shape):
            return [x.astype(inputs[0].dtype)]
    if features is not None:
        return [Pipeline(features).of_nothing(RANDOM_ROWS)]
    return [_random_rows(tensor) for tensor in inputs]


def _first_rows(dataset: DatasetFile, features: Features | None) -> Array | None:
    if features is None:
        path = Path(dataset.path)
        if is_arrow(path):
            return MappedColumns(path).head("x", SAMPLE_ROWS)
        x = read_arrays(path).get("x")
        return None if x is None else x[:SAMPLE_ROWS]
    columns = UploadedColumns(dataset)
    names = Pipeline(features).columns
    if not all(name in columns for name in names):
        return None
    try:
        pipeline = Pipeline(features)
        size = pipeline.rows_of_window
        x = pipeline.of_stored({name: columns.column(name)[: SAMPLE_ROWS * size] for name in names})
        whole = len(x) // size
        return x[: whole * size].reshape(whole, *features.input_shape) if whole else None
    # The pipeline of a model from elsewhere may take other types than these data have.
    except (BadData, BadValue):
        return None


def _random_rows(tensor: TensorSpec) -> Array:
    """Return rows with random numbers for an input; zeros if it takes integers."""
    shape = (RANDOM_ROWS, *(VARIABLE_SIZE if size is None else size for size in tensor.shape))
    if "float" not in tensor.dtype:
        # Integers may be indices of an embedding of unknown size; 0 is always valid.
        return np.zeros(shape, tensor.dtype)
    return np.random.default_rng(0).normal(size=shape).astype(tensor.dtype)


def fits(shape: tuple[int, ...], accepted: tuple[int | None, ...]) -> bool:
    """Return whether rows with `shape` can be an input with shape `accepted`, where None accepts any size."""
    if len(shape) != len(accepted):
        return False
    return all(size in (None, length) for length, size in zip(shape, accepted, strict=True))


def predict_sample(model: Any, sample: list[Array]) -> list[Array]:
    """Return the predictions from a model with any number of inputs and outputs, one array per output.

    Raises:
        BadModel: it cannot be called with inputs that fit its signature.
    """
    try:
        outputs = model.predict_on_batch(arranged(model, sample))
    except (ValueError, TypeError) as error:
        raise BadModel(f"it cannot predict sample rows: {cause_of(error)}") from error
    except (Exception, SystemExit) as error:
        if not is_active():
            raise
        raise BadModel(f"it cannot predict sample rows: {cause_of(error)}") from error
    return list(keras.tree.flatten(outputs))


def _labels(dataset: DatasetFile | None, outputs: list[Array]) -> list[str]:
    """Return the data set's class labels if the model has one output with matching width."""
    labels = list(dataset.profile.get("class_labels", ())) if dataset is not None else []
    width = outputs[0].shape[-1] if len(outputs) == 1 and outputs[0].ndim == 2 else 0
    # A binary model may return only the probability of its second class.
    return labels if width == len(labels) or (width == 1 and len(labels) == 2) else []
