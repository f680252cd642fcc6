"""Words that mean a missing value, and the rule that distinguishes them from values."""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

MOST_NAMED = 5
GAP_WORDS = frozenset(
    {
        *("-", "--", "---", ":", "–", "—", ".", "..", "...", "…", "?", "/", "*", "#n/a", "#na", "<na>"),
        *(r"\n", "(null)", "[null]", "<null>", "nat", "#n/a n/a", "(blank)", "(leer)", "\u2212"),
        *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
        *("na", "n/a", "n.a.", "n. a.", "n.a", "nan", "-nan", "null", "none", "nil", "nd", "n.d.", "n/d"),
        *("missing", "unknown", "not available", "not applicable", "no answer", "no data"),
        *("k.a.", "k. a.", "k.a", "ka", "k/a", "keine angabe", "keine angaben", "unbekannt", "fehlt"),
        *("n.v.", "n. v.", "n/v", "nicht verfügbar", "entfällt", "s.o.", "s.d.", "s/d", "n.c."),
    }
)
"""In lower case. Between numbers or dates they are missing values. Between other words, `gap_evidence` of the
engine decides, since `none` and `missing` may be categories."""
MARKERS = (
    *("NA", "N/A", "n/a", "#N/A", "#N/A N/A", "NaN", "nan", "-nan", "-NaN", "null", "NULL", "<NA>", "NaT"),
    # MySQL, PostgreSQL and Hive; Oracle, SQL Server and other clients of databases.
    *(r"\N", "(null)", "(NULL)", "[null]", "[NULL]", "<null>", "<NULL>"),
    # The C library of Windows.
    *("1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Words that programs write for a missing value of any type."""
PROGRAM_WORDS = (*MARKERS, "None")
"""With the word of Python, which is also an English word, and so often a category."""
LONGEST = max(map(len, GAP_WORDS))

type Among = Literal["numbers", "booleans", "words"]
"""The values of a column. Between numbers and dates any word for a gap is one, between true and false a word
that programs write, and between other words one that is no English word."""


def is_gap(field: str, among: Among = "numbers", stated: Collection[str] | None = None) -> bool:
    """Return whether a field is empty, or a word for a missing value.

    Args:
        field: the field.
        among: the other values of its column.
        stated: the words that a person has stated, which alone are gaps then; None for the usual ones.
    """
    word = field.strip()
    if not word:
        return True
    if stated is not None:
        return word in stated
    match among:
        case "numbers":
            # Most fields are longer, and are not compared.
            return len(word) <= LONGEST and word.lower() in GAP_WORDS
        case "booleans":
            return word in PROGRAM_WORDS
        case "words":
            return word in MARKERS


def named_words(words: Sequence[str], counts: Mapping[str, int]) -> str:
    """Return words with the number of their rows, for a sentence."""
    named = [f"{word!r} in {counts[word]:,}" for word in words[:MOST_NAMED]]
    more = len(words) - len(named)
    return f"{', '.join(named)}{f' and {more} more words' if more else ''}"
