"""Computes a dataset version's overview."""

from collections.abc import Iterator, Mapping
from typing import get_args

import numpy as np

from jobs.messages.overview import (
    CELLS,
    CORRELATION_CANDIDATES,
    INFORMATIVE_COLUMNS,
    SAMPLE_ROWS,
    Correlations,
    Gaps,
    Information,
    Overview,
    Section,
    SplitOverview,
)
from jobs.spec.data.columns import NUMERIC
from jobs.spec.data.profile import Profile
from jobs.spec.data.split_roles import resolved
from jobs.spec.sections.data import Split
from workers.engine.arrays import Array
from workers.engine.data.encode import missing
from workers.engine.data.overview.correlation import correlations
from workers.engine.data.overview.gaps import gaps
from workers.engine.data.overview.information import binned, bins_for, frequent_codes, information
from workers.engine.data.overview.parts import balance, most_frequent
from workers.engine.data.overview.repeats import Keys, keys_of_arrays, keys_of_table, repeats
from workers.engine.data.spilled import take
from workers.engine.data.split import Parts, split
from workers.engine.errors import BadSpec


def of_table(columns: Mapping[str, Array], y: Array, profile: Profile) -> Iterator[Overview]:
    """Yield a table's overview, each time with further sections, until none is pending.

    Args:
        columns: by name, (rows,) each.
        y: the encoded target, (rows, …).
        profile: column roles and types.
    """
    rows = sample(len(y), len(columns), SAMPLE_ROWS)
    overview = Overview(
        rows=len(y), sample_rows=len(rows), split=resolved(Split(), profile), pending=get_args(Section)
    )
    overview = overview.with_sections(
        "gaps", gaps=gaps(columns, {column.name: column.missing for column in profile.columns})
    )
    yield overview
    drawn = {column.name: take(columns, column.name, rows) for column in profile.columns}
    informed = _information(drawn, y[rows], profile)
    overview = overview.with_sections("information", information=tuple(informed[:INFORMATIVE_COLUMNS]))
    yield overview
    overview = overview.with_sections("correlations", correlations=_correlations(drawn, informed, profile))
    yield overview
    yield from with_parts(overview, columns, y, profile)


def of_arrays(columns: Mapping[str, Array], x: Array, y: Array, profile: Profile) -> Iterator[Overview]:
    """Yield the overview for data whose features are arrays, `x`: it describes only the split's parts."""
    overview = Overview(
        rows=len(y), sample_rows=0, split=resolved(Split(), profile), pending=("gaps", "parts", "repeats")
    )
    overview = overview.with_sections("gaps", gaps=_gaps(columns))
    yield overview
    yield from with_parts(overview, columns, y, profile, x)


def _gaps(columns: Mapping[str, Array]) -> Gaps | None:
    counts = {name: int(missing(column).sum()) for name, column in columns.items()}
    return gaps(columns, counts) if columns else None


def sample(rows: int, columns: int, most: int | None = None) -> Array:
    """Return some row numbers drawn at random, ascending, as many as have at most `CELLS` values."""
    count = min(rows, max(CELLS // max(columns, 1), 1), most or rows)
    if count == rows:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, count, replace=False))


def _information(drawn: Mapping[str, Array], y: Array, profile: Profile) -> list[Information]:
    """Return each column's information about the target, most first; none about several labels."""
    if profile.task == "multilabel":
        return []
    bins = bins_for(len(y))
    target = frequent_codes(y) if y.ndim == 1 else binned(y[:, 0].astype(np.float64), "number", bins)
    if target is None:
        return []
    informed = []
    for column in profile.columns:
        if column.name == profile.target:
            continue
        codes = binned(drawn[column.name], column.type, bins)
        if codes is not None:
            informed.append(information(column.name, codes, target))
    return sorted(informed, key=lambda entry: -entry.bits)


def _correlations(
    drawn: Mapping[str, Array], informed: list[Information], profile: Profile
) -> Correlations | None:
    numeric = [
        column.name
        for column in profile.columns
        if column.type in NUMERIC and column.role not in ("id", "ignore")
    ]
    rank = {entry.column: number for number, entry in enumerate(informed)}
    # The target first: it has no information about itself.
    chosen = sorted(numeric, key=lambda name: rank.get(name, -1))[:CORRELATION_CANDIDATES]
    return correlations(chosen, [_numbers(drawn[name]) for name in chosen], len(numeric))


def _numbers(column: Array) -> Array:
    numbers = column.astype(np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def with_parts[Found: SplitOverview](
    overview: Found, columns: Mapping[str, Array], y: Array, profile: Profile, x: Array | None = None
) -> Iterator[Found]:
    """Yield an overview with its split's parts, and then with the rows that are in several parts.

    Args:
        overview: names the split.
        columns: by name, (rows,) each.
        y: the encoded target, (rows, …).
        profile: column roles and types.
        x: the features, if they are arrays; None for a table.
    """
    try:
        parts = split(y, columns, profile.task, overview.split)
    except BadSpec as error:
        yield overview.with_sections("parts", "repeats", split_problem=str(error))
        return
    classes = most_frequent(profile.class_counts)
    overview = overview.with_sections(
        "parts",
        classes=tuple(profile.class_labels[number] for number in classes),
        more_classes=len(profile.class_counts) - len(classes),
        parts=balance(y, profile.task, profile.outputs, parts, classes),
    )
    yield overview
    compared = sample(len(y), len(profile.features) if x is None else x[0].size)
    counted = repeats(_keys(columns, y, profile, compared, x), _among(parts, compared))
    yield overview.with_sections("repeats", compared_rows=len(compared), repeats=counted)


def _keys(columns: Mapping[str, Array], y: Array, profile: Profile, rows: Array, x: Array | None) -> Keys:
    if x is not None:
        return keys_of_arrays(x[rows], y[rows])
    return keys_of_table(lambda name: take(columns, name, rows), profile.features, profile.target)


def _among(parts: Parts, rows: Array) -> Parts:
    """Return each part's positions in `rows`."""
    return Parts(*(np.flatnonzero(np.isin(rows, part)) for part in parts))
