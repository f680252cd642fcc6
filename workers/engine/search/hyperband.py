"""Hyperband: successive halving in brackets, from many short trainings to few long ones.

Within a bracket, trials are paused until their rung is complete. Meanwhile the next bracket is filled, so
that no slot is idle while brackets are left.

Source: Li et al., Hyperband, JMLR 18 (2018) 185, algorithm 1.
"""

from collections import defaultdict
from collections.abc import Sequence

from jobs.messages.suggest import FINAL, Answer, Dropped, Suggestion, TrialRow
from jobs.spec.sections.rungs import Bracket
from jobs.spec.sections.search import Objective
from workers.engine.search.history import History
from workers.engine.search.rung import evidence, new_trial, promotion, ranked, value_at


def answer(history: History, count: int) -> Answer:
    """Promote and drop trials in complete rungs, and fill the rest of `count` with new trials."""
    members: dict[int, list[TrialRow]] = defaultdict(list)
    for row in history.own:
        members[row.bracket].append(row)
    brackets = history.search.brackets(history.epochs)
    suggestions: list[Suggestion] = []
    dropped: list[Dropped] = []
    for bracket in brackets:
        promoted, not_promoted = _decide(bracket, members[bracket.number], history.search.objective)
        suggestions += promoted
        dropped += not_promoted
    # The promotions beyond `count` are suggested by the next answer, since their trials still wait.
    suggestions = suggestions[:count]
    for bracket in brackets:
        free = bracket.sizes[0] - len(members[bracket.number])
        for _ in range(min(free, count - len(suggestions))):
            suggestions.append(new_trial(history, bracket=bracket.number, epochs=bracket.epochs[0]))
    if suggestions or any(row.is_pending() for row in history.own):
        return Answer(suggestions=tuple(suggestions), dropped=tuple(dropped))
    dropped_trials = {drop.trial for drop in dropped}
    rest = [row for row in history.own if row.waits() and row.number not in dropped_trials]
    return Answer(dropped=(*dropped, *(Dropped(trial=row.number) for row in rest)), exhausted=True)


def _decide(
    bracket: Bracket, members: Sequence[TrialRow], objective: Objective
) -> tuple[list[Suggestion], list[Dropped]]:
    """Return the promotions and the dropped trials in a bracket's complete rungs."""
    promoted: list[Suggestion] = []
    dropped: list[Dropped] = []
    if len(members) < bracket.sizes[0]:
        return promoted, dropped
    for rung, (size, epochs) in enumerate(zip(bracket.sizes[1:], bracket.epochs[1:], strict=True)):
        # A rung is decided when all its trials have their final result.
        if not all(len(row.rungs) > rung or row.state in FINAL for row in members):
            break
        # Trials promoted earlier are ranked again, so the answer does not depend on earlier answers.
        able = [row for row in members if _is_alive(row, rung) and value_at(row, rung) is not None]
        best = ranked(able, rung, objective)[:size]
        chosen = {row.number for row in best}
        cutoff = best[-1] if best else None
        for row in members:
            if not (row.waits() and row.rung == rung):
                continue
            why = evidence(row, rung, cutoff=cutoff, of=len(members))
            if row.number in chosen:
                promoted.append(promotion(row, epochs, why))
            else:
                dropped.append(Dropped(trial=row.number, saw=why))
        members = best
    return promoted, dropped


def _is_alive(row: TrialRow, rung: int) -> bool:
    """Return whether a trial was or can be promoted from this rung; failed and stopped trials rank last."""
    return row.rung > rung or row.waits() or row.state == "completed" or row.until is not None
