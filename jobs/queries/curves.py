"""How far the trainings of a search came, for its pruner: a narrow read an attempt, and looks in between."""

from collections.abc import Collection
from itertools import chain

from jobs.contracts.pruning import Curve
from jobs.models import Execution, Job, Trial
from jobs.queries import outcomes
from jobs.states import TrialState

MOST = 256
"""So many of the newest trials are looked at: a median of them is as good, and a task stays small."""


def of(search: Job) -> tuple[Curve, ...]:
    """Return the curves of the newest trials that were completed or pruned; none without a pruner."""
    if outcomes.search_of(search).pruner is None:
        return ()
    return tuple(chain.from_iterable(since(search.pk, known=()).values()))


def since(search: int, *, known: Collection[int]) -> dict[int, tuple[Curve, ...]]:
    """Return the curves of those of the newest trials that ended and are not known.

    Args:
        search: the id of the search's job.
        known: numbers of trials; a look that finds no other costs one statement.

    Returns:
        For each new trial its curves, by its number, ascending; some have none.
    """
    ended = Trial.objects.filter(job=search, state__in=(TrialState.COMPLETED, TrialState.PRUNED))
    newest = ended.order_by("-number").values_list("number", "pk")[:MOST]
    new = {number: pk for number, pk in sorted(newest) if number not in known}
    if not new:
        return {}
    rows = Execution.objects.filter(trial__in=list(new.values())).exclude(best=[]).order_by("trial", "number")
    found: dict[int, tuple[Curve, ...]] = dict.fromkeys(new, ())
    for trial, number, epochs, state, best in rows.values_list(
        "trial__number", "number", "epochs", "state", "best"
    ):
        over = state == TrialState.COMPLETED
        found[trial] += (Curve(trial=trial, execution=number, epochs=epochs, over=over, best=best),)
    return found
