"""What becomes of a configuration that an algorithm proposes again, the same for every algorithm."""

from jobs.contracts.search_space import Value
from jobs.contracts.suggest import Suggestion
from workers.engine.search.draws import unseen
from workers.engine.search.history import History


def settle(history: History, values: dict[str, Value]) -> Suggestion:
    """Return the new trial that a proposal becomes under the search's `duplicates`.

    A repetition that shall be answered, but whose first trial has no score, is replaced too. Once the space
    is used up, configurations are trained again; their seeds differ, since those follow from the number.
    """
    policy = history.search.duplicates
    if policy == "train" or not history.is_seen(values):
        return Suggestion(values=values)
    if policy == "answer" and (first := history.answer_to(values)) is not None:
        return Suggestion(values=values, answered_by=first.number)
    return Suggestion(values=unseen(history, history.next_number) or values)
