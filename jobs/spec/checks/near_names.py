"""Finds the known names that are most like an unknown one, for error messages."""

from collections.abc import Iterable
from difflib import SequenceMatcher

LIKENESS = 0.6
"""Names that are less alike than this are not suggested. 1.0 is the same name."""
MAX_NAMES = 3


def near_names(name: str, candidates: Iterable[str]) -> list[str]:
    """Return the known names that are most like a name, best first.

    Args:
        name: the unknown one, for example from another tool's search space.
        candidates: the names to choose from. Those with `/` are compared by their last part, too.
    """
    scores = ((likeness(name, candidate), candidate) for candidate in candidates)
    ranked = sorted(scores, key=lambda pair: (-pair[0], pair[1]))
    return [candidate for score, candidate in ranked[:MAX_NAMES] if score >= LIKENESS]


def likeness(name: str, other: str) -> float:
    """Return how alike two names are, from 0 to 1. Abbreviations and added words count as alike.

    >>> [round(likeness(*pair), 2) for pair in (("lr", "learning_rate"), ("num_layers", "layers"))]
    [0.9, 0.9]
    """
    name, last = name.lower().rpartition("/")[2], other.lower().rpartition("/")[2]
    words, other_words = set(name.split("_")), set(last.split("_"))
    ratio = SequenceMatcher(None, name, last).ratio()
    is_abbreviation = len(name) > 1 and name == "".join(word[0] for word in last.split("_") if word)
    if is_abbreviation or words < other_words or other_words < words:
        ratio = max(ratio, 0.9)
    return ratio
