"""Joins sentences that are the same for many columns, so that a wide table has one for each kind."""

import re
from collections.abc import Iterable, Sequence

FEWEST = 4
"""So many columns with the same sentence are named in one."""
MOST_NAMED = 200
_COLUMN = re.compile(r"""[Cc]olumn ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_VALUE = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[0-9][0-9.,]*""")


def fold(sentences: Iterable[str]) -> tuple[str, ...]:
    """Return sentences in which the first one of each kind names the further columns that have it too.

    Two sentences are of a kind if they differ in the column, in numbers and in quoted values alone.
    """
    kinds: dict[str, list[str]] = {}
    for sentence in sentences:
        kinds.setdefault(_kind(sentence), []).append(sentence)
    return tuple(
        text for several in kinds.values() for text in (_joined(several) if _is_many(several) else several)
    )


def _kind(sentence: str) -> str:
    match = _COLUMN.search(sentence)
    # Others are the same only if they are equal.
    return sentence if match is None else _VALUE.sub("", sentence)


def _is_many(sentences: Sequence[str]) -> bool:
    return len(sentences) >= FEWEST and _COLUMN.search(sentences[0]) is not None


def _joined(sentences: Sequence[str]) -> tuple[str]:
    names = [match[1] for sentence in sentences[1:] if (match := _COLUMN.search(sentence)) is not None]
    more = len(names) - MOST_NAMED
    listed = ", ".join(names[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
    return (
        f"{sentences[0]} The same holds, with values of their own, for {len(names):,} columns: {listed}.",
    )
