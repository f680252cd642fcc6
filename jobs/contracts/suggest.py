"""What a search algorithm is told, and what it answers: rows in, suggestions out, nothing in between.

An algorithm has no memory. The same rows give the same answer, in any order of the rows, in any process,
after any kill; what it must remember, it writes into its suggestions, and the rows bring it back.
"""

from typing import Any

from pydantic import Field

from jobs.contracts.base import Frozen
from jobs.contracts.search import SearchSpec
from jobs.contracts.search_space import Value

FINAL = frozenset({"pruned", "completed", "failed", "stopped"})
"""States of a trial that nothing follows but a retry."""


class TrialRow(Frozen):
    """One trial as the database knows it.

    Attributes:
        score: the objective's value, None while unknown; of a trial that waits at a rung, its value there.
        scores: one value an objective, where there are several.
        source: `algorithm`, `hand`, `earlier` (a trial of the search that this one is warm-started from), or
            `withdrawn` (the algorithm's, taken back before it began).
        bracket: which bracket of Hyperband it belongs to.
        rung: how often it was promoted. A `paused` trial has reached the end of this rung and waits there.
        epochs: up to which epoch it may train at this rung; None: to the end.
        until: up to which epoch it trains on that was completed before; its rungs are behind it.
        rungs: its score at the end of each rung it has reached, oldest first.
        inside: False of one whose values were searched only before the space was made narrower. It counts
            among the trials made, and no model learns from it.
    """

    number: int = Field(ge=0)
    state: str
    values: dict[str, Value]
    score: float | None = None
    scores: tuple[float, ...] | None = None
    source: str = "algorithm"
    bracket: int = 0
    rung: int = 0
    epochs: int | None = None
    until: int | None = None
    rungs: tuple[float | None, ...] = ()
    inside: bool = True

    def waits(self) -> bool:
        """Say whether it stands at the end of its rung; else, if it is paused, somebody paused the job."""
        return self.state == "paused" and len(self.rungs) > self.rung and self.until is None

    def is_pending(self) -> bool:
        """Say whether a result may still come without anybody's decision."""
        return self.state not in FINAL and not self.waits()

    def result(self) -> tuple[float, ...] | None:
        """Return what it reached, one value an objective; None while that is not known."""
        if self.scores is not None:
            return self.scores
        return None if self.score is None else (self.score,)


class SuggestRequest(Frozen):
    """Asks for up to `count` things to train next. `epochs` is how long a whole training may take."""

    search: SearchSpec
    epochs: int = Field(default=100, ge=1)
    trials: tuple[TrialRow, ...] = ()
    count: int = Field(default=1, ge=1, le=1000)


class Suggestion(Frozen):
    """One thing to train: a new trial, or one that goes on from its checkpoint.

    Attributes:
        values: the configuration.
        promotes: the number of the trial that goes on; None: a new trial.
        answered_by: the number of a completed trial with the same values, which answers for this one.
        epochs: up to which epoch to train; None: to the end.
        saw: the numbers that a promotion rests on, for people.
    """

    values: dict[str, Value]
    promotes: int | None = None
    answered_by: int | None = None
    bracket: int = 0
    rung: int = 0
    epochs: int | None = None
    saw: dict[str, Any] = Field(default_factory=dict)


class Dropped(Frozen):
    """A trial that waits at a rung and will never be promoted, with the numbers that decided so."""

    trial: int
    saw: dict[str, Any] = Field(default_factory=dict)


class Answer(Frozen):
    """What an algorithm says. Neither suggestions nor `exhausted`: ask again once a trial has changed."""

    suggestions: tuple[Suggestion, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    exhausted: bool = Field(default=False, description="no further suggestion will ever come")

    def is_empty(self) -> bool:
        """Say whether it holds nothing to do: it waits for results."""
        return not self.suggestions and not self.dropped
