"""Counts the validation and test rows whose features a training row has too."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, cast

import numpy as np

from jobs.messages.overview import Repeats
from workers.engine.arrays import Array
from workers.engine.data.row_hashes import RowHashes, bits_of, repeated
from workers.engine.data.split import Parts
from workers.engine.data.texts import text_array

STEPS_OF_A_DEVIATION = 100
"""Numbers are nearly equal if they are rounded to the same hundredth of their standard deviation."""
DAY = np.timedelta64(1, "D")


class Keys(NamedTuple):
    """A number for each row, equal for equal features: exactly, with the target, and nearly."""

    exact: Array
    with_target: Array
    near: Array | None


def repeats(keys: Keys, parts: Parts) -> tuple[Repeats, ...]:
    """Return the repeated rows in the validation and the test part."""
    return tuple(_of_part(name, keys, parts) for name in ("validation", "test"))


def _of_part(name: Literal["validation", "test"], keys: Keys, parts: Parts) -> Repeats:
    rows = getattr(parts, name)

    def count(key: Array) -> int:
        # Comparing the parts costs more than finding that no key repeats.
        return int(np.isin(key[rows], key[parts.train]).sum()) if len(repeated(key)) else 0

    return Repeats(
        part=name,
        exact=count(keys.exact),
        exact_same_target=count(keys.with_target),
        near=None if keys.near is None else count(keys.near),
    )


def keys_of_table(column_of: Callable[[str], Array], features: Sequence[str], target: str) -> Keys:
    """Return the row keys for a table.

    Args:
        column_of: returns a column's rows, (rows,). Columns are read until all rows differ.
        features: the feature names.
        target: the target's name.
    """
    target_values = column_of(target)
    exact, near = RowHashes(len(target_values)), RowHashes(len(target_values))
    for name in features:
        if exact.all_differ and near.all_differ:
            break
        column = column_of(name)
        if not exact.all_differ:
            exact.add(bits_of(column))
        if not near.all_differ:
            near.add(_near(column))
    with_target = exact.copy()
    with_target.add(bits_of(target_values))
    return Keys(exact.hashes, with_target.hashes, near.hashes)


def keys_of_arrays(x: Array, y: Array) -> Keys:
    """Return the keys for rows that are arrays: numbers for their different contents."""
    exact = _content(x)
    return Keys(exact, combined([_content(y)], start=exact), None)


def _content(rows: Array) -> Array:
    flat = np.ascontiguousarray(rows).reshape(len(rows), -1)
    blocks = flat.view(np.uint8).reshape(len(rows), -1)
    keys = np.ascontiguousarray(blocks).view(np.dtype((np.void, blocks.shape[1]))).ravel()
    return np.unique(keys, return_inverse=True)[1].astype(np.uint64)


def combined(codes: Sequence[Array], start: Array | None = None) -> Array:
    """Return a hash for each row's codes, 64 bits, (rows,): equal for different rows by chance alone."""
    rng = np.random.default_rng(0)
    factors = rng.integers(1, 2**63, size=len(codes) + 1, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    rows = len(codes[0]) if codes else len(cast("Array", start))
    total = np.zeros(rows, np.uint64) if start is None else start * factors[-1]
    for code, factor in zip(codes, factors, strict=False):
        # Mixed, since sums of small codes times constants would be equal more often.
        total += mixed(code.astype(np.uint64) + factor) * factor
    return total


def mixed(values: Array) -> Array:
    """Apply SplitMix64's finalizer, which spreads each bit over all 64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _near(column: Array) -> Array:
    """Return 64 bits for each column value after rounding, (rows,) uint64."""
    match column.dtype.kind:
        case "T" | "U":
            values, inverse = np.unique(column, return_inverse=True)
            rounded = text_array(" ".join(str(text).lower().split()) for text in values.tolist())
            return np.asarray(bits_of(rounded)[inverse])
        case "M":
            return bits_of(column.astype("datetime64[D]"))
        case "f":
            return bits_of(_rounded(column))
        case "i" | "u":
            return bits_of(_rounded(column.astype(np.float64)))
    return bits_of(column)


def _rounded(values: Array) -> Array:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return values
    largest = float(np.abs(finite).max()) or 1.0
    std = float((finite / largest).std())
    return values if std <= 1e-12 else np.round(values / largest / std * STEPS_OF_A_DEVIATION)
