"""Reads the decisions on a trial: promotions at rungs and prunings, with the values they were based on."""

import datetime as dt
from typing import Any, NamedTuple

from jobs.models import Trial, TrialDecision
from jobs.queries.search import outcomes
from jobs.spec.algorithms import ALGORITHMS


class Decision(NamedTuple):
    """One decision on a trial.

    Attributes:
        rule: the search algorithm or the pruner that decided.
        rung: the rung at whose end it decided, from 0; None for a rule that decides at any epoch.
        epoch: the trial's epoch at that time.
        value: the trial's score at that epoch; None if it was not finite.
        threshold: the value it was compared with; None if no trial was to be promoted.
        of: the number of trials compared: all in the rung, or the others for a pruner; None if unknown.
        execution: the execution that was judged; None if it was the mean over all executions.
        promoted: whether training continued.
        time: when it was decided.
    """

    rule: str
    rung: int | None
    epoch: int | None
    value: float | None
    threshold: float | None
    of: int | None
    execution: int | None
    promoted: bool
    time: dt.datetime

    @property
    def by_pruner(self) -> bool:
        """Return whether a pruner decided, during training."""
        return self.execution is not None


class RungPosition(NamedTuple):
    """A trial's position in a search with rungs; numbers from 1.

    Attributes:
        bracket: its bracket's number.
        brackets: how many brackets the search has.
        rung: its rung's number in the bracket.
        ends: the epochs at which the bracket's rungs end.
    """

    bracket: int
    brackets: int
    rung: int
    ends: tuple[int, ...]


def decisions_on_trial(trial: Trial) -> list[Decision]:
    """Return the decisions on a trial, oldest first."""
    # The decisions are prefetched: a sort in the database would query them again.
    return [_decision_out(row) for row in sorted(trial.decisions.all(), key=lambda row: row.pk)]


def _decision_out(row: TrialDecision) -> Decision:
    inputs: dict[str, Any] = row.saw
    has_rungs = row.rule in ALGORITHMS and ALGORITHMS[row.rule].has_rungs  # some pruners have the same name
    return Decision(
        rule=row.rule,
        rung=row.rung if has_rungs else None,
        epoch=row.epoch,
        value=row.value,
        threshold=inputs.get("cutoff"),
        of=inputs.get("of"),
        execution=inputs.get("execution"),
        promoted=bool(inputs.get("promoted")),
        time=row.time,
    )


def rung_position(trial: Trial) -> RungPosition | None:
    """Return a trial's position among its search's rungs.

    None if the search has no rungs, and for a trial queued by hand, which trains to the last epoch.
    """
    search = outcomes.search_of(trial.job)
    revision = trial.job.revision
    if revision is None or not search.info.has_rungs or trial.epochs is None:
        return None
    brackets = search.brackets(revision.spec.fit.epochs)
    if trial.bracket >= len(brackets):
        return None  # a revision removed the bracket
    ends = brackets[trial.bracket].epochs
    return RungPosition(trial.bracket + 1, len(brackets), min(trial.rung + 1, len(ends)), ends)
