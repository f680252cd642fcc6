"""Describes the tendency of a search's score over the values of one hyperparameter."""

from typing import NamedTuple

from jobs.messages.analysis import Influence
from webapp.templatetags.trainyard import plain

WORDS = {
    "higher": "higher values tend to score better",
    "lower": "lower values tend to score better",
    "unclear": "no clear tendency",
}


class Tendency(NamedTuple):
    """A few words, and the numbers behind them."""

    text: str
    detail: str


def tendency(found: Influence) -> Tendency:
    """Return the tendency in words."""
    if found.verdict == "choice":
        text = f"{' or '.join(plain(value) for value in found.best)} tends to score best"
        return Tendency(text, f"Compared by rank over {found.trials} trials.")
    if found.correlation is None or found.low is None or found.high is None:
        return Tendency(WORDS[found.verdict], f"From {found.trials} trials.")
    detail = (
        f"Rank correlation of value and score: {found.correlation:+.2f}, 95 % interval {found.low:+.2f} to "
        f"{found.high:+.2f}, from {found.trials} trials."
    )
    if found.verdict == "unclear":
        detail += " The best values may lie in the middle of the range."
    return Tendency(WORDS[found.verdict], detail)
