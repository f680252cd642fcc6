"""Asynchronous successive halving, promotion type: no trial ever waits for a whole rung.

Source: Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, algorithm 2.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from jobs.contracts.suggest import Answer, Dropped, Suggestion, TrialRow
from workers.engine.search.history import History
from workers.engine.search.rung import newcomer, promotion, ranked, saw, value_at


def answer(history: History, count: int) -> Answer:
    """Promote what may go on, from the highest rung down; begin new trials with what is left of `count`."""
    rungs = history.search.rung_options().ladder(history.epochs)
    standing = _standing(history, len(rungs))
    found = list(islice(_promotions(standing, rungs), count))
    while len(found) < count and history.left > 0:
        found.append(newcomer(history, bracket=0, epochs=rungs[0]))
    if found or any(row.is_pending() for row in history.own):
        return Answer(suggestions=tuple(found))
    waiting = (row for row in history.own if row.waits())
    return Answer(dropped=tuple(_dropped(row, standing[row.rung]) for row in waiting), exhausted=True)


class Standing(NamedTuple):
    """Who has reached the end of a rung: all of them, and the best 1/factor, best first."""

    members: list[TrialRow]
    top: list[TrialRow]


def _standing(history: History, rungs: int) -> list[Standing]:
    """Return the standing at each rung. One whose training ended by itself counts, though it cannot go on."""
    reached: list[list[TrialRow]] = [[] for _ in range(rungs)]
    for row in history.own:
        for members in reached[: len(row.rungs)]:
            members.append(row)
        if row.state == "completed" and len(row.rungs) == row.rung:
            reached[row.rung].append(row)
    factor, objective = history.search.rung_options().factor, history.search.objective
    orders = [ranked(members, rung, objective) for rung, members in enumerate(reached)]
    return [Standing(order, order[: len(order) // factor]) for order in orders]


def _promotions(standing: Sequence[Standing], rungs: Sequence[int]) -> Iterator[Suggestion]:
    """Yield every trial that waits among the best of its rung, in the order of promotion."""
    for rung in reversed(range(len(rungs) - 1)):
        members, top = standing[rung]
        for row in top:
            if row.waits() and row.rung == rung and value_at(row, rung) is not None:
                yield promotion(row, rungs[rung + 1], saw(row, rung, cutoff=top[-1], of=len(members)))


def _dropped(row: TrialRow, standing: Standing) -> Dropped:
    members, top = standing
    why = saw(row, row.rung, cutoff=top[-1] if top else None, of=len(members))
    return Dropped(trial=row.number, saw=why)
