"""What was decided on a trial, and the numbers that were seen: promotions at rungs, and what a pruner did."""

import datetime as dt
from typing import Any, NamedTuple

from jobs.contracts.algorithms import ALGORITHMS
from jobs.models import Trial, TrialDecision
from jobs.queries import outcomes


class Decision(NamedTuple):
    """One decision.

    Attributes:
        rule: what decided: the search's algorithm, or its pruner.
        rung: at the end of which rung, from 0; None of a rule that judges at any epoch.
        epoch: where the trial stood.
        value: what it had reached there; None if it was no finite number.
        threshold: what it was held against; None where nobody was to go on.
        of: how many trials were seen: all of the rung, or for a pruner the others; None if nobody counted.
        execution: the training that was judged alone; None where the mean over all of them was.
        promoted: whether it went on.
        time: when.
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
    def is_pruners(self) -> bool:
        """Say whether a pruner decided, while the trial trained."""
        return self.execution is not None


class Place(NamedTuple):
    """Where a trial of a search with rungs stands; numbers from 1.

    Attributes:
        bracket: which of so many `brackets`.
        brackets: how many the search has.
        rung: which of the bracket's rungs.
        ends: the epochs at which these end.
    """

    bracket: int
    brackets: int
    rung: int
    ends: tuple[int, ...]


def of(trial: Trial) -> list[Decision]:
    """Return the decisions on a trial, oldest first."""
    return [_read(row) for row in sorted(trial.decisions.all(), key=lambda row: row.pk)]


def _read(row: TrialDecision) -> Decision:
    saw: dict[str, Any] = row.saw
    has_rungs = row.rule in ALGORITHMS and ALGORITHMS[row.rule].has_rungs  # some pruners are named so too
    return Decision(
        rule=row.rule,
        rung=row.rung if has_rungs else None,
        epoch=row.epoch,
        value=row.value,
        threshold=saw.get("cutoff"),
        of=saw.get("of"),
        execution=saw.get("execution"),
        promoted=bool(saw.get("promoted")),
        time=row.time,
    )


def place(trial: Trial) -> Place | None:
    """Return where a trial stands among the rungs of its search.

    None where there are none, and of a trial queued by hand, which trains to the end.
    """
    search = outcomes.search_of(trial.job)
    revision = trial.job.revision
    if revision is None or not search.info.has_rungs or trial.epochs is None:
        return None
    brackets = search.brackets(revision.spec.fit.epochs)
    if trial.bracket >= len(brackets):
        return None  # a revision took it away
    ends = brackets[trial.bracket].epochs
    return Place(trial.bracket + 1, len(brackets), min(trial.rung + 1, len(ends)), ends)
