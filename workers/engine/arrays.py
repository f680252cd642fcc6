"""Names the types of NumPy arrays. Their shapes are in the docstrings of the functions that take them."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
"""An array of any type, such as features, targets or predictions."""
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
