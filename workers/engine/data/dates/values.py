"""Reads the texts of a column as dates by one format, with Arrow's regular expressions.

A request's texts are read by `workers.features.date_texts`, by the same patterns.
"""

from typing import Any

import numpy as np

from jobs.spec.data.dates.formats import pattern_of
from workers.engine.arrays import Array
from workers.features.date_texts import DATE, NO_DATE, WORDS, moments_of

PART_ROWS = 65_536
"""Texts that are read at once, since their parts take more memory than they do."""
STRICT_ISO = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?$"
)
"""Texts that pandas reads many times faster, with the same moments."""


def dates_of(texts: Any, form: str) -> Array:
    """Return the moments of texts, an Arrow array, by a single format, (rows,); NaT for those without."""
    import pyarrow as pa

    moments = np.full(len(texts), NO_DATE, DATE)
    for start in range(0, len(texts), PART_ROWS):
        part = texts.slice(start, PART_ROWS)
        if isinstance(part, pa.ChunkedArray):
            part = part.combine_chunks()
        moments[start : start + len(part)] = _dates_of_part(part, form)
    return moments


def iso_dates_of(texts: Any) -> Array | None:
    """Return the moments of texts if all are dates of ISO 8601 in its usual form, (rows,); else None."""
    import pandas as pd
    import pyarrow.compute as pc

    if not pc.all(pc.match_substring_regex(texts, STRICT_ISO), min_count=0).as_py():
        return None
    try:
        moments = pd.to_datetime(texts.to_pandas(), format="ISO8601", utc=True)
    # One of them is impossible.
    except (ValueError, OverflowError):
        return None
    return np.asarray(moments.dt.tz_localize(None).to_numpy(dtype=DATE))


def _dates_of_part(texts: Any, form: str) -> Array:
    import pyarrow.compute as pc

    pattern = pattern_of(form)
    if pattern.short_width:
        is_short = pc.match_substring_regex(texts, f"^[0-9]{{{pattern.short_width}}}$")
        texts = pc.if_else(is_short, pc.utf8_lpad(texts, pattern.width, "0"), texts)
    groups = pc.extract_regex(texts, pattern.regex)
    fits = groups.is_valid()
    moments = np.full(len(texts), NO_DATE, DATE)
    places = np.flatnonzero(fits.to_numpy(zero_copy_only=False))
    if len(places):
        matched = groups.filter(fits)
        parts = {field: _numbers(pc.struct_field(matched, field), field) for field in pattern.fields}
        moments[places] = moments_of(parts, len(places), pattern.first_year, pattern.years)
    return moments


def _numbers(texts: Any, field: str) -> Array:
    """Return the numbers that texts of a field mean, (rows,) int64; those without a text are 0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if (meaning := WORDS.get(field)) is not None:
        words = texts.dictionary_encode()
        numbers = np.asarray([meaning(word or "") for word in words.dictionary.to_pylist()], np.int64)
        return numbers[words.indices.to_numpy()]
    if field == "fraction":
        texts = pc.utf8_slice_codeunits(pc.utf8_rpad(texts, 6, "0"), 0, 6)
    filled = pc.if_else(pc.equal(pc.binary_length(texts), 0), "0", texts)
    return np.asarray(pc.cast(filled, pa.int64()).to_numpy(zero_copy_only=False))
