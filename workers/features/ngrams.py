"""Counts the n-grams in texts, and their weights by TF-IDF."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
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
"""An n-gram or a word in fewer texts is left out."""
KEPT_WORDS, MAX_KEPT = 16_384, 32
"""Number of words whose parts are kept, about 20 MB, and the characters of the longest of them."""
MAX_WORD = 100
"""Maximum number of characters of a word with an index of its own."""


def words_of(text: str) -> list[str]:
    """Return a text's words in their order. Upper and lower case are equal."""
    return WORD.findall(text[:MAX_TEXT].casefold())


def names_of(text: str, analyzer: Analyzer) -> set[str]:
    """Return the different n-grams in a text.

    Args:
        text: any text; upper and lower case are equal.
        analyzer: words: single words and neighbouring pairs; characters: 3 to 5 neighbouring characters in a
            word, with a space at its ends.
    """
    words = words_of(text)
    if analyzer == "words":
        return {*_words_and_pairs(words)}
    # Long words must not stay in memory.
    parts = [_kept_parts_of(word) if len(word) <= MAX_KEPT else _parts_of(word) for word in {*words}]
    return set().union(*parts)


def _words_and_pairs(words: list[str]) -> list[str]:
    return [*words, *(f"{a} {b}" for a, b in pairwise(words))]


def _parts_of(word: str) -> tuple[str, ...]:
    padded = f" {word} "
    return tuple(padded[i : i + n] for n in CHARACTERS for i in range(len(padded) - n + 1))


_kept_parts_of = lru_cache(maxsize=KEPT_WORDS)(_parts_of)


def frequencies(texts: Iterable[str], analyzer: Analyzer) -> Counter[str]:
    """Return in how many texts each n-gram occurs.

    Beyond `MAX_COUNTED` different ones the rarest so far are forgotten, so their numbers may be too
    small. The result depends on the texts and their order alone.
    """
    return occurrences(names_of(text, analyzer) for text in texts)


def occurrences(names_of_texts: Iterable[Iterable[str]]) -> Counter[str]:
    """Return how often each name occurs; see `frequencies`.

    Args:
        names_of_texts: names that are counted together before rare ones are forgotten.
    """
    counts: Counter[str] = Counter()
    for names in names_of_texts:
        counts.update(names)
        if len(counts) > MAX_COUNTED:
            counts = _without_rarest(counts)
    return counts


def _without_rarest(counts: Counter[str]) -> Counter[str]:
    """Return at most half of `MAX_COUNTED` n-grams: those in more texts than the others."""
    least = 1
    while len(counts) > MAX_COUNTED // 2:
        least += 1
        counts = Counter({name: number for name, number in counts.items() if number >= least})
    return counts


def vocabulary(texts: Iterable[str], count: int) -> tuple[str, ...]:
    """Return the words in the most texts, those in equally many in alphabetical order.

    Args:
        texts: any texts.
        count: how many to return at most.
    """
    counts = occurrences(set(words_of(text)) for text in texts)
    often = [
        (-number, word) for word, number in counts.items() if number >= MIN_TEXTS and len(word) <= MAX_WORD
    ]
    return tuple(word for _, word in sorted(often)[:count])


def choose(text_counts: Mapping[str, int], count: int, texts: int) -> dict[str, float]:
    """Return the n-grams in the most texts, with their weights.

    The weight is the inverse document frequency ln((1 + texts) / (1 + frequency)) + 1, as scikit-learn's
    `TfidfTransformer` computes it with `smooth_idf`.

    Args:
        text_counts: in how many texts each n-gram occurs.
        count: how many to return at most.
        texts: how many texts there are in all.
    """
    often = [(name, number) for name, number in text_counts.items() if number >= MIN_TEXTS]
    often.sort(key=lambda item: (-item[1], item[0]))
    return {name: math.log((1 + texts) / (1 + number)) + 1 for name, number in often[:count]}


class NgramWeights:
    """Computes the weights for known n-grams in texts."""

    def __init__(self, analyzer: Analyzer, ngrams: Sequence[str], weights: Sequence[float]) -> None:
        """Take the n-grams ordered by their positions, with their inverse document frequencies."""
        self._count = {"words": self._of_words, "characters": self._of_characters}[analyzer]
        self._positions = {name: position for position, name in enumerate(ngrams)}
        self._weights = weights
        self._kept_parts = lru_cache(maxsize=KEPT_WORDS)(self._known_parts)

    def weigh(self, text: str) -> dict[int, float]:
        """Return position and value for each known n-gram in a text; the squares add up to 1."""
        counts = self._count(words_of(text))
        values = {position: count * self._weights[position] for position, count in counts.items()}
        # An exact sum does not depend on the order of the words.
        length = math.sqrt(math.fsum(value * value for value in values.values()))
        return {position: value / length for position, value in values.items()}

    def _of_words(self, words: list[str]) -> dict[int, int]:
        positions, counts = self._positions, Counter(_words_and_pairs(words))
        return {positions[name]: count for name, count in counts.items() if name in positions}

    def _of_characters(self, words: list[str]) -> dict[int, int]:
        counts: dict[int, int] = {}
        for word, count in Counter(words).items():
            parts = self._kept_parts if len(word) <= MAX_KEPT else self._known_parts
            for position in parts(word):
                counts[position] = counts.get(position, 0) + count
        return counts

    def _known_parts(self, word: str) -> tuple[int, ...]:
        positions = self._positions
        return tuple(positions[part] for part in _parts_of(word) if part in positions)
