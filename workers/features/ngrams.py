"""Counts the n-grams of texts, and their weights by TF-IDF."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Literal

Analyzer = Literal["words", "characters"]
WORD = re.compile(r"\w+")
CHARACTERS = range(3, 6)
MAX_TEXT = 20_000
"""Characters of a text that are read; the rest of a longer one is left out."""
MAX_COUNTED = 1_000_000
"""Maximum number of different n-grams that are counted at the same time, about 150 bytes each."""
MIN_TEXTS = 2
"""An n-gram in fewer texts is left out."""


def ngrams_of(text: str, analyzer: Analyzer) -> Counter[str]:
    """Return the n-grams of a text with their counts.

    Args:
        text: any text; upper and lower case are equal.
        analyzer: words: single words and pairs of neighbours; characters: 3 to 5 neighbouring characters of a
            word, with a space at its ends.
    """
    words = WORD.findall(text[:MAX_TEXT].casefold())
    if analyzer == "words":
        return Counter([*words, *(f"{a} {b}" for a, b in pairwise(words))])
    padded = [f" {word} " for word in words]
    return Counter(word[i : i + n] for word in padded for n in CHARACTERS for i in range(len(word) - n + 1))


def frequencies(texts: Iterable[str], analyzer: Analyzer) -> Counter[str]:
    """Return in how many texts each n-gram occurs.

    Of more than `MAX_COUNTED` different ones the rarest so far are forgotten, so their numbers may be too
    small. The result depends on the texts and their order alone.
    """
    found: Counter[str] = Counter()
    for text in texts:
        found.update(ngrams_of(text, analyzer).keys())
        if len(found) > MAX_COUNTED:
            found = _without_rarest(found)
    return found


def _without_rarest(found: Counter[str]) -> Counter[str]:
    """Return at most half of `MAX_COUNTED` n-grams: those in more texts than the others."""
    least = 1
    while len(found) > MAX_COUNTED // 2:
        least += 1
        found = Counter({name: number for name, number in found.items() if number >= least})
    return found


def choose(found: Mapping[str, int], count: int, texts: int) -> dict[str, float]:
    """Return the n-grams in the most texts, with their weights.

    The weight is the inverse document frequency ln((1 + texts) / (1 + frequency)) + 1, as scikit-learn's
    `TfidfTransformer` computes it with `smooth_idf`.

    Args:
        found: the number of texts for each n-gram.
        count: how many to return at most.
        texts: number of all texts.
    """
    often = [(name, number) for name, number in found.items() if number >= MIN_TEXTS]
    often.sort(key=lambda item: (-item[1], item[0]))
    return {name: math.log((1 + texts) / (1 + number)) + 1 for name, number in often[:count]}


def weights_of(text: str, analyzer: Analyzer, known: Mapping[str, tuple[int, float]]) -> dict[int, float]:
    """Return the position and value of each known n-gram of a text; the squares of the values add up to 1.

    Args:
        text: any text.
        analyzer: see `ngrams_of`.
        known: position and inverse document frequency by n-gram.
    """
    values = {}
    for name, count in ngrams_of(text, analyzer).items():
        if name in known:
            position, weight = known[name]
            values[position] = count * weight
    # An exact sum does not depend on the order of the words.
    length = math.sqrt(math.fsum(value * value for value in values.values()))
    return {position: value / length for position, value in values.items()}
