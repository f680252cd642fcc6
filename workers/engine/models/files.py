"""Loads and saves stored models without an optimizer, and in safe mode unless the task has user code.

On a mesh, neither a device nor the host has a model whole meanwhile; see `devices.weights_files`.
"""

import datetime as dt
import os
import tempfile
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import keras

from jobs.spec.data.features import Features
from jobs.spec.exports import STORED
from jobs.spec.sections.mesh import MeshSpec
from workers.engine.models.devices.loading import loading_on
from workers.engine.models.devices.memory import check_fits
from workers.engine.models.devices.weights_files import loading_in_parts, saving_in_blocks
from workers.engine.models.keras_private import saved_at
from workers.engine.models.own_code.in_use import is_active
from workers.engine.models.own_objects import objects_for
from workers.engine.models.variables import are_spread
from workers.engine.models.zip_times import set_member_times
from workers.features.files import add_features

EPOCH = dt.datetime(1980, 1, 1)
"""The time in the files of all models, so that equal models have equal digests."""


def load_model(path: Path, folder: Path, mesh: MeshSpec | None = None) -> Any:
    """Load a saved model for prediction: on a mesh, or on one device.

    Args:
        path: a `.keras` file with any name. The artifact store names files by digest, but Keras needs the
            suffix.
        folder: a temporary link with the suffix is created here.
        mesh: with which it was trained; used if this process has its devices. By default that in use.

    Raises:
        BadModel: one device has not enough memory for it.
        ValueError, TypeError, OSError: from Keras, for files that it rejects or cannot read.
        CodeImportFailure: a module in the used code cannot be imported.
    """
    with loading_on(mesh), tempfile.TemporaryDirectory(dir=folder, prefix="load-") as place:
        check_fits(path, mesh)
        link = Path(place) / STORED.file_name()
        link.symlink_to(path.resolve())
        # Safe mode rejects lambdas, whose code would run in this process. A task with code of its own runs
        # such code anyway, in a sandbox.
        with objects_for(link), loading_in_parts(), warnings.catch_warnings():
            # Keras keeps random weights there, only with a warning.
            warnings.filterwarnings("error", ".*freshly-initialized weights")
            try:
                return keras.saving.load_model(link, compile=False, safe_mode=not is_active())
            except UserWarning as missing:
                raise ValueError(f"the file lacks weights that the model needs: {missing}") from missing


def save_model(model: Any, path: Path, features: Features | None = None) -> None:
    """Save a model atomically: `path` is complete or unchanged. Equal models make equal files.

    Args:
        model: the model.
        path: the file's path.
        features: the pipeline that makes the model's input from table columns.
    """
    # Keras chooses the format by the suffix.
    partial = path.with_name(STORED.file_name(f"{path.stem}.partial"))
    with saved_at(EPOCH), saving_in_blocks() if are_spread(model.variables) else nullcontext():
        model.save(partial)
    if features is not None:
        add_features(partial, features)
    set_member_times(partial, EPOCH)
    os.replace(partial, path)  # noqa: PTH105  only os.replace is documented as atomic
