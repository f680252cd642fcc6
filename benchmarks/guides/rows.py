"""Makes small data in the shapes of the guides, which the code of a version loads."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

Array = npt.NDArray[np.float32]
PARTS = ("train", "validation", "test")
SIZES = (384, 160, 64)
LOADING = """
import numpy as np


def load_data(split):
    arrays = np.load({path!r})
    return arrays["x_" + split], arrays["y_" + split]
"""


def digits(size: int) -> tuple[Array, Array]:
    """Return the digits of scikit-learn as images of a size, with one channel and values from 0 to 1."""
    found = load_digits()
    factor = size // 8
    images = np.kron(found.images / 16, np.ones((factor, factor)))
    margin = size - images.shape[1]
    return np.pad(images, ((0, 0), (0, margin), (0, margin)))[..., None], found.target


def flat(width: int) -> tuple[Array, Array]:
    """Return the digits as rows of 784 numbers, or of their first columns with 64."""
    x, y = digits(28) if width == 784 else digits(8)
    return x.reshape(len(x), -1), y


def numbers(width: int) -> tuple[Array, Array]:
    """Return rows of numbers with a target that follows from them, apart from noise."""
    generator = np.random.default_rng(0)
    x = generator.random((sum(SIZES), width))
    return x, (x @ generator.normal(size=width) + generator.normal(scale=0.1, size=len(x)))


def four(width: int) -> tuple[Array, Array]:
    """Return rows of numbers with four classes."""
    x, y = numbers(width)
    return x, np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75]))


def codes(length: int) -> tuple[Array, Array]:
    """Return sequences of whole numbers with padding, in two classes."""
    generator = np.random.default_rng(0)
    x = generator.integers(1, 50, (sum(SIZES), length))
    y = (np.sort(x, axis=1)[:, length // 2] > 25).astype(np.int64)
    x[np.arange(length) >= generator.integers(length // 2, length + 1, len(x))[:, None]] = 0
    return x, y


def autoencoder(width: int) -> tuple[Array, Array]:
    """Return rows of numbers that are their own targets."""
    x, _ = flat(width)
    return x, x


MAKERS: dict[str, Callable[[int], tuple[Array, Array]]] = {
    "digits": digits,
    "flat": flat,
    "numbers": numbers,
    "four": four,
    "codes": codes,
    "autoencoder": autoencoder,
}


def write(kind: str, folder: Path) -> str:
    """Write the rows of a kind, such as `digits-28`; return the code that loads them."""
    name, _, size = kind.partition("-")
    x, y = MAKERS[name](int(size or 0))
    order = np.random.default_rng(1).permutation(len(x))
    arrays, begin = {}, 0
    for part, count in zip(PARTS, SIZES, strict=True):
        chosen = order[begin : begin + count]
        arrays |= {f"x_{part}": x[chosen].astype(np.float32), f"y_{part}": y[chosen]}
        begin += count
    path = folder / f"{kind}.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return LOADING.format(path=str(path))
