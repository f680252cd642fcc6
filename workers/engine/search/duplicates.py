"""Handles configurations that an algorithm proposes again, for all algorithms."""

from jobs.messages.suggest import Suggestion
from jobs.spec.space.search_space import Value
from workers.engine.search.draws import draw_unseen
from workers.engine.search.history import History


def suggestion_for(history: History, values: dict[str, Value]) -> Suggestion:
    """Return the suggestion for a proposed configuration according to the search's `duplicates`.

    With `answer`, a repetition whose first trial has no score is replaced.
    """
    policy = history.search.duplicates
    if policy == "train" or not history.is_seen(values):
        return Suggestion(values=values)
    if policy == "answer" and (first := history.answer_to(values)) is not None:
        return Suggestion(values=values, answered_by=first.number)
    # Once all configurations have been tried, they are trained again. Their seeds differ, since these are
    # derived from the trial's number.
    return Suggestion(values=draw_unseen(history, history.next_number) or values)
