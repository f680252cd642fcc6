"""Asynchronous successive halving (ASHA), promotion type: no trial waits for a complete rung.

Source: Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, algorithm 2.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from jobs.messages.suggest import Answer, Dropped, Suggestion, TrialRow
from workers.engine.search.history import History
from workers.engine.search.rung import evidence, new_trial, promotion, ranked, value_at


def answer(history: History, count: int) -> Answer:
    """Promote trials, from the highest rung down, and fill the rest of `count` with new trials."""
    rungs = history.search.rung_options().rung_epochs(history.epochs)
    rankings = _rankings(history, len(rungs))
    suggestions = list(islice(_promotions(rankings, rungs), count))
    while len(suggestions) < count and history.left > 0:
        suggestions.append(new_trial(history, bracket=0, epochs=rungs[0]))
    if suggestions or any(row.is_pending() for row in history.own):
        return Answer(suggestions=tuple(suggestions))
    # No result can arrive any more, so no ranking can change.
    dropped = []
    for row in history.own:
        if row.waits():
            members, top = rankings[row.rung]
            why = evidence(row, row.rung, cutoff=top[-1] if top else None, of=len(members))
            dropped.append(Dropped(trial=row.number, saw=why))
    return Answer(dropped=tuple(dropped), exhausted=True)


class RungRanking(NamedTuple):
    """The trials that have reached the end of a rung: all, and the best 1/factor; best first."""

    members: list[TrialRow]
    top: list[TrialRow]


def _rankings(history: History, rungs: int) -> list[RungRanking]:
    """Return the ranking at each rung. Trials that stopped early count, although they cannot be promoted."""
    reached: list[list[TrialRow]] = [[] for _ in range(rungs)]
    for row in history.own:
        for members in reached[: len(row.rungs)]:
            members.append(row)
        # It stopped before the end of its rung, so its final score is ranked there.
        if row.state == "completed" and len(row.rungs) == row.rung:
            reached[row.rung].append(row)
    factor, objective = history.search.rung_options().factor, history.search.objective
    orders = [ranked(members, rung, objective) for rung, members in enumerate(reached)]
    return [RungRanking(order, order[: len(order) // factor]) for order in orders]


def _promotions(rankings: Sequence[RungRanking], rungs: Sequence[int]) -> Iterator[Suggestion]:
    """Yield a promotion for each paused trial among the best in its rung, highest rung first."""
    for rung in reversed(range(len(rungs) - 1)):
        members, top = rankings[rung]
        for row in top:
            if row.waits() and row.rung == rung and value_at(row, rung) is not None:
                yield promotion(row, rungs[rung + 1], evidence(row, rung, cutoff=top[-1], of=len(members)))
