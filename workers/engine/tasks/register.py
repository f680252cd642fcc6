"""Runs the register task: checks that a model file can be loaded, safely or with its code in a sandbox."""

import json
import re
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np

from jobs.kinds.register.payload import RegisterTask
from jobs.spec.data.features import Features
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.signature import Signature
from workers.engine.arrays import Array
from workers.engine.data.store import file_digest
from workers.engine.errors import BadModel, DamagedFile, affects_process
from workers.engine.models.build import signature_of
from workers.engine.models.files import load_model
from workers.engine.models.own_code.failures import cause_of
from workers.engine.models.own_code.in_use import is_active, using_folder
from workers.engine.models.predict import arranged
from workers.engine.models.size_limit import check_budget
from workers.engine.models.untrusted import TOO_DEEP, metadata_of, scan, scan_archive, with_conversion
from workers.engine.report import Report
from workers.engine.tasks.artifacts import summary_of, write_json
from workers.engine.tasks.samples.probes import Tried
from workers.engine.tasks.samples.trying import try_rows
from workers.engine.tasks.steps import Steps
from workers.features.files import BadFeatures, read_features
from workers.model_process.library_messages import plain_message

MAX_STORED_BYTES = 16 << 20
"""Size up to which the rows that a model was tried with are stored for its gates."""


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
    with naming_conversion(path):
        code = needed_code(task, report)
        with loading_with(code):
            return {**_read(task, report, steps), "needs_code": code is not None}


@contextmanager
def naming_conversion(path: Path) -> Iterator[None]:
    """Add to a refusal how the file is converted, if an older Keras has written it."""
    try:
        yield
    except BadModel as error:
        try:
            metadata = metadata_of(path)
        except (BadModel, DamagedFile):
            raise error from None
        if (reason := with_conversion(str(error), metadata)) == str(error):
            raise
        raise BadModel(reason) from error


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
        load_checked(path, Path(task.folder), task.mesh)
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
    model = load_checked(path, Path(task.folder), task.mesh)
    features = features_for(signature_of(model), path)
    signature = signature_of(model, features)
    _check_inputs(signature)
    steps.begin("predicting sample rows")
    tried = try_rows(partial(predict_sample, model), signature, task.dataset, features, task.sample)
    finding = "" if tried.is_finite else _why_not_finite(model, tried)
    if finding:
        report.warning("not_finite", finding)
    _store(tried, report)
    write_json(report, "summary", "summary.json", summary_of(model))
    with zipfile.ZipFile(path) as archive:
        metadata = json.loads(archive.read("metadata.json"))
    steps.done()
    return {
        "signature": signature.model_dump(mode="json"),
        "class_labels": _labels(task, tried.outputs),
        "parameters": int(model.count_params()),
        "keras_version": str(metadata.get("keras_version", "")),
        "sample_rows": len(tried.rows[0]),
        "tried": tried.description,
        "finding": finding,
    }


def _check_inputs(signature: Signature) -> None:
    """Check that the prediction server can pass rows to the inputs.

    Raises:
        BadModel: one takes texts.
    """
    if texts := [repr(spec.name) for spec in signature.inputs if spec.dtype == "string"]:
        raise BadModel(
            f"its input {', '.join(texts)} takes texts, which only TensorFlow passes to a model: save the "
            "model without it, from the layer behind its vocabulary on, and send numbers"
        )


def _why_not_finite(model: Any, tried: Tried) -> str:
    """Return a warning about predictions that are not finite.

    Raises:
        BadModel: its weights are not finite, so no prediction is.
    """
    for variable in model.weights:
        if "float" in str(variable.dtype) and not np.isfinite(np.asarray(variable.value, np.float32)).all():
            raise BadModel(f"its weights {variable.path!r} are not finite: train it again")
    return (
        f"Its predictions for {tried.description} are not finite. If the model takes other values, upload it "
        "again with a sample of its rows (the field sample: NPZ or JSON); otherwise its gate for finite "
        "predictions fails"
    )


def _store(tried: Tried, report: Report) -> None:
    """Keep the rows for the gates, unless they are in the data."""
    if tried.is_of_data or sum(rows.nbytes for rows in tried.rows) > MAX_STORED_BYTES:
        return
    path = Path(report.folder) / "sample.npz"
    np.savez(path, *tried.rows)
    report.artifact("sample", path.name, name=path.name)


def check_digest(path: Path, digest: str) -> None:
    """Check that the file's SHA-256 is `digest`.

    Raises:
        BadModel: it is not.
    """
    if (actual := file_digest(path)) != digest:
        raise BadModel(f"the file's sha256 is {actual}, but {digest} was registered")


def load_checked(path: Path, folder: Path, mesh: MeshSpec | None = None) -> Any:
    """Load a model: in safe mode, or inside `loading_with` with its code's objects.

    Args:
        path, folder, mesh: see `load_model`.

    Raises:
        BadModel: Keras rejects the file, it is not a functional model, or there is not enough memory for it.
    """
    try:
        model = load_model(path, folder, mesh)
    except RecursionError as error:
        raise BadModel(TOO_DEEP) from error
    # Keras raises any of these for a file that is damaged or that safe mode refuses.
    except (ValueError, TypeError, KeyError, OSError, ImportError, AttributeError) as error:
        if is_active():
            raise BadModel(f"it cannot be loaded with its code: {cause_of(error)}") from error
        # Keras names the link in a temporary folder through which it reads the file.
        reason = re.sub(rf"{re.escape(str(folder))}/[^\s'\":,;]*", "the file", plain_message(error))
        raise BadModel(f"Keras cannot load it: {reason}") from error
    except BadModel:
        raise
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


def predict_sample(model: Any, sample: list[Array]) -> list[Array]:
    """Return the predictions from a model with any number of inputs and outputs, one array per output.

    Raises:
        BadModel: it cannot be called with inputs that fit its signature.
    """
    try:
        outputs = model.predict_on_batch(arranged(model, sample))
    # Layers run as Python code here, and any of them may raise anything for rows that it does not take.
    except (Exception, SystemExit) as error:
        if isinstance(error, Exception) and affects_process(error):
            raise
        raise BadModel(f"it cannot predict sample rows: {cause_of(error)}") from error
    return list(keras.tree.flatten(outputs))


def _labels(task: RegisterTask, outputs: list[Array]) -> list[str]:
    """Return the class labels if the model has one output with matching width.

    Those of its training count: the data that are read now may be a later version, with others of the same
    number. Only if they are unknown, those of the data are taken.
    """
    labels = list(task.class_labels or ())
    if task.class_labels is None and task.dataset is not None:
        labels = list(task.dataset.profile.get("class_labels", ()))
    width = outputs[0].shape[-1] if len(outputs) == 1 and outputs[0].ndim == 2 else 0
    # A binary model may return only the probability of its second class.
    return labels if width == len(labels) or (width == 1 and len(labels) == 2) else []
