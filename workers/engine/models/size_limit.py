"""Counts the values that loading and calling a model would create, without allocating them.

`untrusted.scan` estimates sizes from the config's own numbers, which may be wrong on purpose. Here Keras
builds the model from its config in a scope in which variables have shapes but no values.
"""

import json
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np

from workers.engine.errors import BadModel
from workers.engine.models.graph import graph_of
from workers.engine.models.keras_private import calls_of, global_state
from workers.engine.models.untrusted import MAX_PARAMETERS, SLACK_PARAMETERS, TOO_DEEP, Scan
from workers.model_process.library_messages import plain_message
from workers.system.memory_limit import bytes_left

GIB = 2**30

MAX_ROW_VALUES = 1 << 28
"""Maximum number of values of one row in any layer or operation: 1 GiB in float32."""
TRIED_ROWS = 4
"""Rows of the smallest batch with which an accepted model is tried."""
COPIES = 2
"""Of each value: in NumPy's memory and in that of the device."""
DEFAULT_MEMORY = 8 << 30
"""The limit for the memory of that batch where the process has none of its own, in bytes."""
UNINITIALIZED = "uninitialized_variables"
"""Keras' list of variables without values, which are allocated at the end of a `StatelessScope`."""


def check_budget(path: Path, scanned: Scan) -> None:
    """Check that loading creates at most about twice as many parameters as the file stores.

    Args:
        path: a file that `untrusted.scan` has accepted.
        scanned: the result from that scan.

    Raises:
        BadModel: loading would create more, or Keras cannot build the model.
    """
    with zipfile.ZipFile(path) as archive:
        config = json.loads(archive.read("config.json"))
    declared = declared_parameters(config)
    # Twice, since quantized weights may be stored packed, two in a byte.
    if declared > min(MAX_PARAMETERS, 2 * scanned.stored + SLACK_PARAMETERS):
        raise BadModel(
            f"loading it would create {declared:,} parameters, but the file stores {scanned.stored:,}"
        )


def declared_parameters(config: dict[str, Any]) -> int:
    """Return how many parameters the model with this config has.

    Raises:
        BadModel: Keras cannot build the model, or one row would need too much memory.
    """
    with keras.StatelessScope():
        try:
            # `compile_config` would create an optimizer with its own variables
            model = keras.saving.deserialize_keras_object({**config, "compile_config": None}, safe_mode=True)
            _check_rows(model)
            _check_memory(model)
            return sum(int(np.prod(variable.shape)) for variable in model.variables)
        except RecursionError as error:
            raise BadModel(TOO_DEEP) from error
        except (ValueError, TypeError, KeyError, AttributeError, ImportError) as error:
            raise BadModel(f"Keras cannot build it: {plain_message(error)}") from error
        finally:
            # Still inside the scope, whose end would allocate the variables.
            global_state.set_global_attribute(UNINITIALIZED, [])


def _check_rows(model: Any) -> None:
    """Check the sizes of intermediate results: a few config bytes repeat or pad a tensor to any size."""
    for name, shape in _results(model):
        values = _values_of_row(shape)
        if values > MAX_ROW_VALUES:
            raise BadModel(
                f"{name} computes {values:,} values a row; at most {MAX_ROW_VALUES:,} are accepted"
            )


def _check_memory(model: Any) -> None:
    """Check that the smallest batch fits into memory, before the model is loaded and its inputs are made.

    The inputs of a model cost no bytes in its file, so a file of a few kilobytes may ask for any number.
    """
    inputs = sum(map(_values_of_row, (tensor.shape for tensor in model.inputs or ())))
    largest = max((_values_of_row(shape) for _, shape in _results(model)), default=0)
    itemsize = np.dtype(np.float32).itemsize
    needed = TRIED_ROWS * COPIES * itemsize * (inputs + largest)
    left = bytes_left()
    allowed = DEFAULT_MEMORY if left is None else min(left, DEFAULT_MEMORY)
    if needed > allowed:
        raise BadModel(
            f"its inputs have {inputs:,} values a row, and its largest result {largest:,}: a batch of "
            f"{TRIED_ROWS} rows needs about {needed / GIB:.2g} GiB of memory, but {allowed / GIB:.2g} GiB "
            "are left for it here. Save it with smaller inputs, or have the operator raise "
            "TRAINYARD_LIMIT_MEMORY_GIB or start the worker with fewer slots"
        )


def _values_of_row(shape: tuple[int | None, ...]) -> int:
    # An open size, such as that of a batch, counts as one.
    return math.prod(size for size in shape if size is not None)


def _results(model: Any) -> Iterator[tuple[str, tuple[int | None, ...]]]:
    """Yield each layer's and operation's name and output shapes, also inside inner models."""
    graph = graph_of(model)
    for operation in getattr(graph, "operations", ()):
        yield from _results(operation)
        for node in calls_of(operation):
            for tensor in node.output_tensors:
                yield operation.name, tuple(tensor.shape)
