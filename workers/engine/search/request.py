"""What a search algorithm is told: the search, and every trial there is. Imports no Keras."""

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.search import SearchSpec
from jobs.spec.search_space import Value, Values

Key = tuple[tuple[str, Value], ...]
"""A configuration as a hashable value, whatever the order of its names."""

WITHOUT_RESULT = frozenset({"failed", "stopped"})


def key(values: Values) -> Key:
    """Return what makes two configurations the same."""
    return tuple(sorted(values.items()))


class TrialRow(Frozen):
    """One trial as the database knows it; `score` is the objective's value, None while unknown."""

    number: int = Field(ge=0)
    state: str
    values: dict[str, Value]
    score: float | None = None
    source: str = "search"

    def is_pending(self) -> bool:
        """Say whether a result may still come."""
        return self.score is None and self.state not in WITHOUT_RESULT and self.state != "completed"


class SuggestRequest(Frozen):
    """Asks for the values of `count` further trials.

    The same rows give the same answer, in any order of the rows and after any kill.
    """

    search: SearchSpec
    trials: tuple[TrialRow, ...] = ()
    count: int = Field(default=1, ge=1, le=1000)

    def next_number(self) -> int:
        """Return the number that the first new trial will have; trials count from 1."""
        return max((trial.number for trial in self.trials), default=0) + 1

    def seen(self) -> set[Key]:
        """Return every configuration that already has a trial, whoever asked for it."""
        return {key(trial.values) for trial in self.trials}
