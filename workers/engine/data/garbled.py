"""Finds texts that were decoded with a wrong encoding before the upload, or have lost letters."""

from collections.abc import Mapping

from workers.engine.arrays import Array
from workers.engine.data.spilled import head
from workers.engine.data.texts import is_text

ROWS = 10_000
"""The first rows, whose texts are searched."""
LOST = "\ufffd"
"""What decoders write in place of bytes that are no character."""
MISTAKEN = ("cp1252", "latin-1", "cp1251", "mac_roman")
"""Encodings with which texts in UTF-8 are decoded by mistake."""
SHOWN = 60
MOST_NAMED = 5


def find_garbled(columns: Mapping[str, Array]) -> list[str]:
    """Return a sentence for each column, of the first ones, that has such texts."""
    findings = []
    for name in columns:
        if ungarbled(name) is not None:
            findings.append(f"The name of column {name!r} is garbled. {_cause(name)}")
        column = head(columns, name, ROWS)
        if not is_text(column) or column.ndim != 1:
            continue
        words = [word for word in column.tolist() if not word.isascii()]
        garbled = [word for word in words if LOST in word or ungarbled(word) is not None]
        if garbled:
            many = "a garbled text" if len(garbled) == 1 else f"{len(garbled):,} garbled texts"
            where = f"in the first {ROWS:,} rows" if len(column) == ROWS else f"in {len(column):,} rows"
            example = f"such as {garbled[0][:SHOWN]!r}. {_cause(garbled[0])}"
            findings.append(f"Column {name!r} has {many} {where}, {example}")
    if len(findings) <= MOST_NAMED:
        return findings
    return [*findings[:MOST_NAMED], f"{len(findings) - MOST_NAMED:,} more columns have garbled texts."]


def _cause(word: str) -> str:
    if LOST in word:
        return "Letters were lost before the upload, or the file has another encoding than it was read as."
    meant = (ungarbled(word) or "")[:SHOWN]
    return (
        f"It seems to mean {meant!r}: before the upload, UTF-8 was read as another encoding. Write it again."
    )


def ungarbled(word: str) -> str | None:
    """Return the original of a text in UTF-8 that was decoded by mistake; None for other texts.

    The bytes of other encodings are nearly never valid UTF-8.
    """
    if word.isascii():
        return None
    for codec in MISTAKEN:
        try:
            return word.encode(codec).decode()
        except UnicodeError:
            continue
    return None
