"""Saves and loads the files of models that are divided over devices, without having a model whole.

Keras collects each variable on the host and keeps the copies, and the file that it writes in memory is a
second model. When it loads a file, it puts each variable whole on the first device. Here a variable is
written in blocks, and each device reads its part from the file.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import keras
import ml_dtypes
import numpy as np

from workers.engine.arrays import Array
from workers.engine.models import host_values, keras_private
from workers.engine.models.devices.shards import SpreadArray, is_spread
from workers.engine.models.host_values import DRAWN_HERE
from workers.engine.models.variables import placed

BFLOAT16 = "bfloat16"
"""Keras notes this type beside the values, since HDF5 has none for it."""


class _SpreadWeights(keras_private.WeightsFile):
    """Writes arrays on several devices in blocks, and reads arrays as views of the file."""

    def __init__(self, path_or_io: Any, archive: Any = None, mode: str = "r") -> None:
        if archive is not None:
            raise OSError("the weights need a file of their own for a time, which cannot be written here")
        super().__init__(path_or_io, mode=mode)

    def __setitem__(self, key: str, value: Any) -> None:
        array = value.value if isinstance(value, keras.Variable) else value
        if not is_spread(array):
            super().__setitem__(key, value)
            return
        spread = SpreadArray(array)
        stored = self.create(key, spread.shape, spread.dtype)
        if spread.dtype == ml_dtypes.bfloat16:
            stored.attrs["dtype"] = BFLOAT16
        for place, block in spread.placed_blocks():
            stored[place] = block

    def __getitem__(self, key: str) -> Array:
        stored = self.stored(key)
        # None if it is compressed or in chunks: then it is read.
        offset = stored.id.get_offset()
        if offset is None or not stored.size:
            values: Array = super().__getitem__(key)
            return values
        dtype = ml_dtypes.bfloat16 if stored.attrs.get("dtype") == BFLOAT16 else stored.dtype
        mapped = np.memmap(stored.file.filename, dtype, mode="r", offset=offset, shape=(stored.size,))
        return mapped.reshape(stored.shape)


@contextmanager
def saving_in_blocks() -> Iterator[None]:
    """Have Keras write the models saved inside in blocks. The file is the same as without."""
    with keras_private.weights_in(_SpreadWeights):
        yield


@contextmanager
def loading_in_parts() -> Iterator[None]:
    """Have each device read its parts of the models loaded inside, if there is a mesh.

    Values that the file replaces are not drawn.
    """
    with ExitStack() as stack:
        if keras.distribution.distribution() is not None:
            stack.enter_context(keras_private.weights_in(_SpreadWeights))
            stack.enter_context(keras_private.assigned_by(placed))
            stack.enter_context(beginning_as_zeros())
        yield


@contextmanager
def beginning_as_zeros() -> Iterator[None]:
    """Have variables with random or constant initial values begin as zeros."""
    host_values.install()

    def initialize(variable: Any, initializer: Any, draw: Callable[[Any, Any], None]) -> None:
        draw(variable, keras.initializers.Zeros() if isinstance(initializer, DRAWN_HERE) else initializer)

    with keras_private.initialized_by(initialize):
        yield
