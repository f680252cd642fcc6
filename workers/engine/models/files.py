"""Loading and saving `.keras` files: always in safe mode, never with an optimizer."""

import os
import tempfile
from pathlib import Path
from typing import Any

import keras


def load_model(path: Path, folder: Path) -> Any:
    """Load a saved model for prediction.

    Args:
        path: a `.keras` file under any name: the store names files by digest alone, and Keras goes
            by the suffix.
        folder: where a link with the right suffix may be made for the moment.

    Raises:
        ValueError, TypeError, OSError: as Keras does for files that it refuses or cannot read.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix="load-") as place:
        link = Path(place) / "model.keras"
        link.symlink_to(path.resolve())
        return keras.saving.load_model(link, compile=False, safe_mode=True)


def save_model(model: Any, path: Path) -> None:
    """Save a model so that the file appears whole or not at all."""
    partial = path.with_name(f"{path.stem}.partial.keras")
    model.save(partial)
    os.replace(partial, path)  # noqa: PTH105  pathlib's replace does not say that it is atomic
