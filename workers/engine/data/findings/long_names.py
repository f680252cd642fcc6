"""Cuts long names of columns in sentences for people."""

from collections.abc import Iterable

from jobs.spec.data.offers import Offer

HEAD, TAIL = 40, 19
MOST_CHARACTERS = HEAD + 1 + TAIL


class LongNames:
    """The names of a table's columns that are too long for a sentence.

    Args:
        names: all of its columns.
    """

    def __init__(self, names: Iterable[str]) -> None:
        long = sorted((name for name in names if len(name) > MOST_CHARACTERS), key=len, reverse=True)
        # The names of one file often differ at their end.
        self._cut = {name: f"{name[:HEAD]}…{name[-TAIL:]}" for name in long}

    def cut(self, sentence: str) -> str:
        """Return a sentence in which long names have an ellipsis in their middle."""
        for name, short in self._cut.items():
            sentence = sentence.replace(repr(name), repr(short)).replace(name, short)
        return sentence

    def cut_in(self, offer: Offer) -> Offer:
        """Return an offer with such a finding and such a label. Its change keeps the name."""
        if not self._cut:
            return offer
        texts = {"finding": self.cut(offer.finding), "label": self.cut(offer.label)}
        return offer.model_copy(update=texts)
