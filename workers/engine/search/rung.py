"""Ranks, promotes and creates trials for algorithms with rungs, and records their decisions."""

import math
from collections.abc import Iterable
from typing import Any

from jobs.messages.suggest import Suggestion, TrialRow
from jobs.spec.sections.search import Objective
from workers.engine.search.draws import draw_any, first_values
from workers.engine.search.duplicates import suggestion_for
from workers.engine.search.history import History


def value_at(row: TrialRow, rung: int) -> float | None:
    """Return a trial's score at the end of a rung; a completed trial's own score if it has none there."""
    if len(row.rungs) > rung:
        return row.rungs[rung]
    return row.score if row.state == "completed" else None


def ranked(rows: Iterable[TrialRow], rung: int, objective: Objective) -> list[TrialRow]:
    """Return trials sorted by their score at a rung, best first and those without a score last."""

    def place(row: TrialRow) -> tuple[float, int]:
        value = value_at(row, rung)
        return (math.inf if value is None else objective.cost(value), row.number)

    return sorted(rows, key=place)


def evidence(row: TrialRow, rung: int, *, cutoff: TrialRow | None, of: int) -> dict[str, Any]:
    """Return the numbers behind a decision: the trial's score, the cutoff and the trial count.

    Args:
        row: the trial.
        rung: counted from 0.
        cutoff: the last trial that is promoted; None if none is.
        of: how many trials were compared.
    """
    last = None if cutoff is None else value_at(cutoff, rung)
    return {"rung": rung, "value": value_at(row, rung), "cutoff": last, "of": of}


def promotion(row: TrialRow, epochs: int, why: dict[str, Any]) -> Suggestion:
    """Return the suggestion to continue a paused trial to the next rung, which ends at `epochs`."""
    return Suggestion(
        values=row.values,
        promotes=row.number,
        bracket=row.bracket,
        rung=row.rung + 1,
        epochs=epochs,
        saw=why,
    )


def new_trial(history: History, *, bracket: int, epochs: int) -> Suggestion:
    """Return a new random trial at a bracket's first rung, and add it to the history."""
    fresh = suggestion_for(history, first_values(history) or draw_any(history))
    suggestion = fresh.model_copy(update={"bracket": bracket, "epochs": epochs})
    history.add(suggestion)
    return suggestion
