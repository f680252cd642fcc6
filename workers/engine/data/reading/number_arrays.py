"""Reads many texts as numbers at once; `number_texts` reads those that have another form one by one."""

from collections.abc import Iterator

import numpy as np

from jobs.spec.data.number_format import LONGEST, NumberFormat, pattern_of
from workers.engine.arrays import Array
from workers.engine.data.dates.stated import as_arrow

MANY = 10_000
"""Fewer texts are read one by one in a few milliseconds."""
_PLAIN = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_UNIT_WITH_DIGIT = "m[23]"


def count_forms(texts: Array, rows: Array) -> Iterator[tuple[str, int]]:
    """Yield the forms of texts with the number of their rows: in `$9,999.99` each digit is 9, but a first 0.

    Args:
        texts: (texts,); empty ones are left out.
        rows: how many rows have each.
    """
    import pyarrow.compute as pc

    values = as_arrow(texts)
    if not pc.any(pc.match_substring_regex(values, _UNIT_WITH_DIGIT)).as_py():
        values = pc.replace_substring_regex(values, "^([^0-9]*)0", "\\1\0")
        values = pc.replace_substring_regex(values, "[0-9]", "9")
        values = pc.replace_substring(values, "\0", "0")
    forms = values.dictionary_encode()
    counts = np.bincount(forms.indices.to_numpy(), weights=rows, minlength=len(forms.dictionary))
    for form, count in zip(forms.dictionary.to_pylist(), counts.tolist(), strict=True):
        if form:
            yield form, int(count)


def read_plain(texts: Array, form: NumberFormat) -> Array:
    """Return the numbers of the texts in a format that consist of digits and its marks, (texts,).

    Others are NaN, also numbers in parentheses or with signs of Unicode.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = pc.utf8_trim_whitespace(as_arrow(texts))
    fits = pc.and_(
        pc.match_substring_regex(values, f"^(?:{pattern_of(form)})$"),
        pc.less_equal(pc.utf8_length(values), LONGEST),
    )
    for mark in (form.currency, form.unit, "%" if form.percent else "", form.thousands, " "):
        if mark:
            values = pc.replace_substring(values, mark, "")
    if form.decimal == ",":
        values = pc.replace_substring(values, ",", ".")
    fits = pc.and_(fits, pc.match_substring_regex(values, _PLAIN))
    if form.hundredths:
        # Those are divided one by one.
        fits = pc.and_(fits, pc.invert(pc.match_substring(as_arrow(texts), "%")))
    values = pc.replace_substring_regex(values, r"^\+", "")
    numbers = pc.cast(pc.if_else(fits, values, None), pa.float64())
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)
