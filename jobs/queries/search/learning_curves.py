"""Reads ended trials' learning curves, with which a pruner compares running trials.

They are read once when an attempt starts. During the attempt only newly ended trials' curves are read.
"""

from collections.abc import Collection
from itertools import chain

from jobs.models import Execution, Job, Trial
from jobs.queries.search import outcomes
from jobs.spec.sections.pruning import Curve
from jobs.states import TrialState

MAX_TRIALS = 256
"""Only the newest trials are read. Their median is as good, and a task stays small."""


def curves_of_search(search: Job) -> tuple[Curve, ...]:
    """Return the newest ended trials' curves. Empty without a pruner."""
    if outcomes.search_of(search).pruner is None:
        return ()
    return tuple(chain.from_iterable(newly_ended_curves(search.pk, known=()).values()))


def newly_ended_curves(search: int, *, known: Collection[int]) -> dict[int, tuple[Curve, ...]]:
    """Return newly ended trials' curves: those not in `known`.

    Args:
        search: the search job's id.
        known: trial numbers. If no other trial has ended, this costs one SQL statement.

    Returns:
        Trial number → its curves, in ascending order. A trial may have no curves.
    """
    ended = Trial.objects.filter(job=search, state__in=(TrialState.COMPLETED, TrialState.PRUNED))
    newest = ended.order_by("-number").values_list("number", "pk")[:MAX_TRIALS]
    new = {number: pk for number, pk in sorted(newest) if number not in known}
    if not new:
        return {}
    rows = Execution.objects.filter(trial__in=list(new.values())).exclude(best=[]).order_by("trial", "number")
    curves: dict[int, tuple[Curve, ...]] = dict.fromkeys(new, ())
    for trial, number, epochs, state, best in rows.values_list(
        "trial__number", "number", "epochs", "state", "best"
    ):
        over = state == TrialState.COMPLETED
        curves[trial] += (Curve(trial=trial, execution=number, epochs=epochs, over=over, best=best),)
    return curves
