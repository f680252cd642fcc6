"""Finds dates behind which is a word that gives no single offset from UTC: `Europe/Berlin`, `IST`, `Uhr`.

Such columns stay words, since a summer time or another country would move their times. A person may read them
without the word.
"""

import re
from dataclasses import replace
from typing import Any

from jobs.spec.data.dates.formats import OR, formats_of
from jobs.spec.data.plain_characters import plain_characters
from workers.engine.arrays import Array
from workers.engine.data.dates.columns import SAMPLED, read_stated, recognize_dates, some_texts
from workers.engine.data.dates.facts import MIN_WRITTEN, DateFacts
from workers.engine.data.dates.families import families_of

_WORD = r"[ \t]*[\[(]?[^\W\d_][\w+./-]{1,40}[\])]?$"
_BEHIND = re.compile(rf"(?<=[0-9mM.]){_WORD}")
_CLOCKS = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p")
_CLOCK = re.compile(r"(?P<between>[T ,]+)[0-9]{1,2}:[0-9]{2}")
MOST_ZONES = 5


def may_have_dates_with_words(texts: Array, codes: Array | None = None) -> bool:
    """Return whether some rows have a date with a word behind it; see `columns.may_have_dates`."""
    divided = map(_divided, some_texts(texts, codes))
    return any(word and families_of(text) for text, word in divided)


def find_dates_with_words(values: Any, codes: Array) -> DateFacts | None:
    """Return how a column's texts are dates, apart from a word behind them; None if they are none.

    Args:
        values: its different texts, an Arrow array in the order of their first rows.
        codes: each row's position in `values`, (rows,).
    """
    import pyarrow as pa

    texts = values.to_pylist()
    parts = [_divided(text) for text in texts]
    words = {word for _, word in parts if word}
    dates = recognize_dates(pa.array([text for text, _ in parts], pa.large_string()), codes)
    if not 0 < len(words) <= MOST_ZONES or dates is None or not dates.facts.are_most_dates:
        return None
    example = next(text for text, (_, word) in zip(texts, parts, strict=True) if word)
    facts = DateFacts(
        format="",
        present=dates.facts.present,
        others=dates.facts.others,
        example=example,
        words=tuple(sorted(word.strip() for word in words)),
    )
    if len(words) > 1 or OR in dates.facts.format:
        return facts
    return _with_format(facts, values, codes, dates.facts.format, words.pop())


def _divided(text: str) -> tuple[str, str]:
    """Return a text without the word behind it, and the word with the blanks around it."""
    stripped = plain_characters(text)
    match = _BEHIND.search(stripped) if len(stripped) <= 2 * SAMPLED else None
    return (stripped, "") if match is None else (stripped[: match.start()], match[0])


def _with_format(facts: DateFacts, values: Any, codes: Array, form: str, word: str) -> DateFacts:
    """Return facts with the format that reads the dates without regard to the word, if there is one."""
    clock = _CLOCK.search(plain_characters(facts.example))
    between = " " if clock is None or clock["between"].strip() != "T" else "T"
    forms = [f"{form}{word}"] if clock is None else [f"{form}{between}{time}{word}" for time in _CLOCKS]
    stated = read_stated(values, codes, OR.join(forms)).facts
    fitting = [form for form, rows in zip(formats_of(stated.format), stated.rows, strict=True) if rows]
    if stated.share <= MIN_WRITTEN or not fitting:
        return facts
    return replace(facts, format=OR.join(fitting))
