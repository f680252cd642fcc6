"""Declares the request to a search algorithm, with trials, and its answer, the suggestions.

An algorithm keeps no state. The same trials give the same answer, in any order, in any process and after any
crash. An algorithm's state is part of its suggestions and is stored with the trials.
"""

from typing import Any

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space.search_space import Value

FINAL = frozenset({"pruned", "completed", "failed", "stopped"})
"""A trial's final states; only a retry changes them."""


class TrialRow(Frozen):
    """One trial, as stored in the database.

    Attributes:
        score: the objective's value, None while unknown; at a rung, the value there.
        scores: one value per objective, if there are several.
        source: `algorithm`, `start` (one of `start_with`), `hand`, `earlier` (a trial in the search from
            which this one is warm-started), or `withdrawn` (the algorithm's, cancelled before it began).
        bracket: its Hyperband bracket.
        rung: how often it was promoted. A `paused` trial waits at the end of this rung.
        epochs: this rung's last epoch; None: `fit.epochs`.
        until: the last epoch if a completed trial is continued; it has left its rungs.
        rungs: its score when each rung so far ended, oldest first.
        inside: False if its values lie outside a space that was made narrower. It counts as a trial, but no
            model learns from it.
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
        """Return whether it waits because its rung has ended. A trial paused with its job does not."""
        return self.state == "paused" and len(self.rungs) > self.rung and self.until is None

    def is_pending(self) -> bool:
        """Return whether a result may still arrive without a promotion or a retry."""
        return self.state not in FINAL and not self.waits()

    def result(self) -> tuple[float, ...] | None:
        """Return its result, one value per objective, or None while unknown."""
        if self.scores is not None:
            return self.scores
        return None if self.score is None else (self.score,)


class SuggestRequest(Frozen):
    """A request for up to `count` suggestions. A full training has `epochs`."""

    search: SearchSpec
    epochs: int = Field(default=100, ge=1)
    trials: tuple[TrialRow, ...] = ()
    count: int = Field(default=1, ge=1, le=1000)


class Suggestion(Frozen):
    """A trial to train: a new one, or a promoted one that resumes from its checkpoint.

    Attributes:
        values: the configuration.
        promotes: the promoted trial's number; None: a new trial.
        answered_by: a completed trial with the same values, by number; its scores are copied.
        epochs: the last epoch to train; None: `fit.epochs`.
        saw: the numbers behind a promotion, for display.
    """

    values: dict[str, Value]
    promotes: int | None = None
    answered_by: int | None = None
    bracket: int = 0
    rung: int = 0
    epochs: int | None = None
    saw: dict[str, Any] = Field(default_factory=dict)


class Dropped(Frozen):
    """A trial that will not be promoted from its rung, with the numbers behind the decision."""

    trial: int
    saw: dict[str, Any] = Field(default_factory=dict)


class Answer(Frozen):
    """An algorithm's answer. If it is empty and not `exhausted`, ask again when a trial has changed."""

    suggestions: tuple[Suggestion, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    exhausted: bool = Field(default=False, description="there will be no further suggestion")

    def is_empty(self) -> bool:
        """Return whether there is nothing to do until a trial changes."""
        return not self.suggestions and not self.dropped
