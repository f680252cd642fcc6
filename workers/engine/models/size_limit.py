"""Counts the parameters that a config would really make, without giving a byte to any of them.

The scan before it reads the sizes that a file states, and a file may lie. Here Keras builds the model
from its config in a scope in which variables have shapes and no values.
"""

import json
import zipfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras.src.backend.common import global_state

from workers.engine.models.untrusted import MAX_PARAMETERS, SLACK_PARAMETERS, BadModel, Scan

UNINITIALIZED = "uninitialized_variables"
"""Keras' list of variables that wait for values; the next scope to end would make them all."""


def check_budget(path: Path, scanned: Scan) -> None:
    """Check that loading makes no more parameters than the file stores, or twice that if packed.

    Args:
        path: a file that `scan` has let through.
        scanned: what it found.

    Raises:
        BadModel: loading it would make more, or it cannot be built at all.
    """
    with zipfile.ZipFile(path) as archive:
        config = json.loads(archive.read("config.json"))
    declared = declared_parameters(config)
    if declared > min(MAX_PARAMETERS, 2 * scanned.stored + SLACK_PARAMETERS):
        raise BadModel(
            f"loading it would make {declared:,} parameters, but the file stores {scanned.stored:,}"
        )


def declared_parameters(config: dict[str, Any]) -> int:
    """Return how many numbers the model of this config holds.

    Raises:
        BadModel: Keras cannot build it.
    """
    with keras.StatelessScope():
        try:
            model = keras.saving.deserialize_keras_object({**config, "compile_config": None}, safe_mode=True)
            return sum(int(np.prod(variable.shape)) for variable in model.variables)
        except (ValueError, TypeError, KeyError, AttributeError, ImportError) as error:
            raise BadModel(f"Keras does not build it: {str(error).strip()[:500]}") from error
        finally:
            global_state.set_global_attribute(UNINITIALIZED, [])
