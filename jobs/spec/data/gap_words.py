"""Words that people write where a number or a date is missing."""

from collections.abc import Mapping, Sequence

MOST_NAMED = 5
GAP_WORDS = frozenset(
    {
        *("-", "--", "---", "–", "—", ".", "..", "...", "…", "?", "/", "*", "#n/a", "#na", "<na>"),
        *("na", "n/a", "n.a.", "n. a.", "n.a", "nan", "-nan", "null", "none", "nil", "nd", "n.d.", "n/d"),
        *("missing", "unknown", "not available", "not applicable", "no answer", "no data"),
        *("k.a.", "k. a.", "k.a", "ka", "k/a", "keine angabe", "keine angaben", "unbekannt", "fehlt"),
        *("n.v.", "n. v.", "n/v", "nicht verfügbar", "entfällt", "s.o.", "s.d.", "s/d", "n.c."),
    }
)
"""In lower case. Between numbers or dates they are missing values. Between other words, `gap_evidence` of the
engine decides, since `none` and `missing` may be categories."""
MARKERS = ("NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "null", "NULL", "<NA>")
"""Words that programs write for a missing value of any type."""
PROGRAM_WORDS = (*MARKERS, "None")
"""With the word of Python, which is also an English word, and so often a category."""
LONGEST = max(map(len, GAP_WORDS))


def is_gap(field: str) -> bool:
    """Return whether a field is empty, or a word for a missing number or date."""
    word = field.strip()
    # Most fields are longer, and are not compared.
    return not word or (len(word) <= LONGEST and word.lower() in GAP_WORDS)


def named_words(words: Sequence[str], counts: Mapping[str, int]) -> str:
    """Return words with the number of their rows, for a sentence."""
    named = [f"{word!r} in {counts[word]:,}" for word in words[:MOST_NAMED]]
    more = len(words) - len(named)
    return f"{', '.join(named)}{f' and {more} more words' if more else ''}"
