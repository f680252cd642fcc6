"""Describes how a search's score changes with one hyperparameter."""

from typing import NamedTuple

from jobs.messages.analysis import Influence
from webapp.templatetags.value_filters import plain

WORDS = {
    "higher": "higher values tend to score better",
    "lower": "lower values tend to score better",
    "unclear": "no clear tendency",
}


class Tendency(NamedTuple):
    """A few words, and the numbers behind them."""

    text: str
    detail: str


def describe_tendency(influence: Influence) -> Tendency:
    """Describe how the score changes with a hyperparameter."""
    if influence.verdict == "choice":
        text = f"{' or '.join(plain(value) for value in influence.best)} tends to score best"
        return Tendency(text, f"Compared by rank over {influence.trials} trials.")
    if influence.correlation is None or influence.low is None or influence.high is None:
        return Tendency(WORDS[influence.verdict], f"From {influence.trials} trials.")
    low, high = influence.low, influence.high
    detail = (
        f"Rank correlation of value and score: {influence.correlation:+.2f}, 95 % interval {low:+.2f} to "
        f"{high:+.2f}, from {influence.trials} trials."
    )
    if influence.verdict == "unclear":
        detail += " The best values may lie in the middle of the range."
    return Tendency(WORDS[influence.verdict], detail)
