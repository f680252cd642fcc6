"""Hyperband: brackets of successive halving that trade many short trainings against few long ones.

Within a bracket trials wait until their rung is complete; meanwhile the next bracket is filled, so that
no slot stands idle while there are brackets left.

Source: Li et al., Hyperband, JMLR 18 (2018) 185, algorithm 1.
"""

from collections import defaultdict
from collections.abc import Sequence

from jobs.contracts.rungs import Bracket
from jobs.contracts.search import Objective
from jobs.contracts.suggest import FINAL, Answer, Dropped, Suggestion, TrialRow
from workers.engine.search.history import History
from workers.engine.search.rung import newcomer, promotion, ranked, saw, value_at


def answer(history: History, count: int) -> Answer:
    """Promote and drop where a rung is complete; begin new trials with what is left of `count`."""
    members: dict[int, list[TrialRow]] = defaultdict(list)
    for row in history.own:
        members[row.bracket].append(row)
    brackets = history.search.brackets(history.epochs)
    found: list[Suggestion] = []
    dropped: list[Dropped] = []
    for bracket in brackets:
        promoted, given_up = _decided(bracket, members[bracket.number], history.search.objective)
        found += promoted
        dropped += given_up
    found = found[:count]
    for bracket in brackets:
        free = bracket.sizes[0] - len(members[bracket.number])
        for _ in range(min(free, count - len(found))):
            found.append(newcomer(history, bracket=bracket.number, epochs=bracket.epochs[0]))
    if found or any(row.is_pending() for row in history.own):
        return Answer(suggestions=tuple(found), dropped=tuple(dropped))
    told = {drop.trial for drop in dropped}
    rest = [row for row in history.own if row.waits() and row.number not in told]
    return Answer(dropped=(*dropped, *(Dropped(trial=row.number) for row in rest)), exhausted=True)


def _decided(
    bracket: Bracket, members: Sequence[TrialRow], objective: Objective
) -> tuple[list[Suggestion], list[Dropped]]:
    """Go up a bracket as far as its rungs are complete; return who goes on and who does not."""
    promoted: list[Suggestion] = []
    dropped: list[Dropped] = []
    if len(members) < bracket.sizes[0]:
        return promoted, dropped
    for rung, (size, epochs) in enumerate(zip(bracket.sizes[1:], bracket.epochs[1:], strict=True)):
        if not all(_is_resolved(row, rung) for row in members):
            break
        able = [row for row in members if _is_alive(row, rung) and value_at(row, rung) is not None]
        best = ranked(able, rung, objective)[:size]
        chosen = {row.number for row in best}
        cutoff = best[-1] if best else None
        for row in members:
            if not (row.waits() and row.rung == rung):
                continue
            why = saw(row, rung, cutoff=cutoff, of=len(members))
            if row.number in chosen:
                promoted.append(promotion(row, epochs, why))
            else:
                dropped.append(Dropped(trial=row.number, saw=why))
        members = best
    return promoted, dropped


def _is_resolved(row: TrialRow, rung: int) -> bool:
    """Say whether nothing more is to come of a trial at this rung."""
    return len(row.rungs) > rung or row.state in FINAL


def _is_alive(row: TrialRow, rung: int) -> bool:
    """Say whether a trial has gone on from this rung, or may: what failed or was stopped here is worst."""
    return row.rung > rung or row.waits() or row.state == "completed" or row.until is not None
