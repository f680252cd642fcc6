"""Makes rows that a model of unknown origin may take, and finds some for which its predictions are finite.

A signature leaves open how long a sequence or how large an image must be, and nothing in it limits the values
for which a model is defined: five poolings need 32 pixels, a logarithm positive numbers, and an embedding
small integers. So several sizes and kinds of values are tried.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.spec.signature import Signature, TensorSpec
from workers.engine.arrays import Array
from workers.engine.errors import BadModel
from workers.model_process.client import ModelFailed, RowsRefused

ROWS = 4
SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 4, 2, 1)
"""Sizes of the axes that the signature leaves open, in this order. All axes get the same one, since
the lengths of several inputs often depend on each other."""
SECONDS = 120.0
"""After this time no further rows are tried."""
MAX_VALUES = 1 << 24
"""Values in all rows of an input; larger sizes are not tried if a smaller one is possible."""

Predict = Callable[[list[Array]], list[Array]]
"""Returns a model's outputs for rows, or raises `BadModel`; for one in its own process, `ModelFailed`."""


@dataclass(frozen=True)
class Tried:
    """Rows that a model has answered.

    Attributes:
        rows: one array for each input.
        outputs: its predictions, one array for each output.
        description: which rows they are, for messages.
        is_of_data: whether they are rows of the data on which it was trained.
    """

    rows: list[Array]
    outputs: list[Array]
    description: str
    is_of_data: bool = False

    @property
    def is_finite(self) -> bool:
        """Whether all predictions are finite."""
        return all(np.isfinite(output).all() for output in self.outputs)

    @property
    def has_values(self) -> bool:
        """Whether there is a prediction: pooling may have left nothing of a short row."""
        return all(output.size for output in self.outputs)


def find_rows(predict: Predict, signature: Signature) -> Tried:
    """Return rows for which the predictions are finite; else the first ones that the model answered.

    Args:
        predict: the model.
        signature: its signature.

    Raises:
        BadModel: it answered none.
        ModelFailed: its process has ended, or answers wrongly.
    """
    answered: Tried | None = None
    until = time.monotonic() + SECONDS
    refusals: dict[int, str] = {}
    for size in _sizes_for(signature):
        for kind in KINDS:
            if time.monotonic() > until and (answered or refusals):
                break
            rows = [_rows_of(kind, spec, size) for spec in signature.inputs]
            description = KINDS[kind] + (f" of the length {size}" if _is_open(signature) else "")
            try:
                tried = Tried(rows, predict(rows), description)
            except (BadModel, RowsRefused) as error:
                refusals.setdefault(size, str(error))
                # A size does not fit, whatever the values.
                break
            except ModelFailed as error:
                raise ModelFailed(f"{error}, when it was given {description}") from error
            if tried.is_finite and tried.has_values:
                return tried
            answered = answered or tried
    if answered is not None:
        return answered
    first = next(iter(refusals.values()))
    if not _is_open(signature):
        raise BadModel(first)
    sizes = (
        f"lengths {', '.join(map(str, refusals))}" if len(refusals) > 1 else f"length {min(refusals)} only"
    )
    raise BadModel(
        f"{first}; rows of the {sizes} were tried. If it takes others, upload it again with a sample "
        "of its rows (the field sample: NPZ or JSON)"
    )


def _sizes_for(signature: Signature) -> Sequence[int]:
    """Return the sizes to try for the open axes: at least one, however large the others are."""
    if not _is_open(signature):
        return SIZES[:1]
    fitting = [size for size in SIZES if all(_values(spec, size) <= MAX_VALUES for spec in signature.inputs)]
    return fitting or [min(SIZES)]


def _is_open(signature: Signature) -> bool:
    return any(None in spec.shape for spec in signature.inputs)


def _values(spec: TensorSpec, size: int) -> int:
    return ROWS * math.prod(_shape(spec, size))


def _shape(spec: TensorSpec, size: int) -> Sequence[int]:
    return [size if axis is None else axis for axis in spec.shape]


KINDS = {
    "normal": "random numbers",
    "positive": "random positive numbers",
    "ones": "rows of ones",
    "small": "random zeros and ones",
    "large": "random numbers from 1 to 10",
    "zeros": "random numbers, and zeros where whole numbers are taken",
}
"""The kinds of values that are tried, in this order, and their descriptions."""


def _rows_of(kind: str, spec: TensorSpec, size: int) -> Array:
    """Return rows for an input.

    Integers may be indices of an embedding of unknown size, in which 0 is often the mask: ones come first.
    """
    random = np.random.default_rng(0)
    shape = (ROWS, *_shape(spec, size))
    if "float" not in spec.dtype:
        values = {"zeros": np.zeros(shape), "small": random.integers(0, 2, shape), "large": np.full(shape, 2)}
        return values.get(kind, np.ones(shape)).astype(spec.dtype)
    draws: dict[str, Callable[[], Array]] = {
        "normal": lambda: random.normal(size=shape),
        "positive": lambda: random.uniform(0.1, 0.9, shape),
        "ones": lambda: np.ones(shape),
        "small": lambda: random.integers(0, 2, shape),
        "large": lambda: random.uniform(1, 10, shape),
        # Whatever is wrong with a model, its answer to zeros is often finite.
        "zeros": lambda: random.normal(size=shape),
    }
    return draws[kind]().astype(spec.dtype)
