"""How far the trainings of a search came, for its pruner: one narrow read an attempt."""

from jobs.models import Execution, Job
from jobs.queries import outcomes
from jobs.spec.pruning import Curve
from jobs.states import TrialState

MOST = 256
"""So many of the newest trials are looked at: a median of them is as good, and a task stays small."""


def of(search: Job) -> tuple[Curve, ...]:
    """Return the curves of the newest trials that were completed or pruned; none without a pruner."""
    spec = outcomes.search_of(search)
    if spec.pruner is None:
        return ()
    ended = search.trials.filter(state__in=(TrialState.COMPLETED, TrialState.PRUNED))
    newest = ended.order_by("-number").values_list("pk", flat=True)[:MOST]
    rows = Execution.objects.filter(trial__in=list(newest)).exclude(best=[])
    columns = ("trial__number", "number", "epochs", "state", "best")
    return tuple(
        Curve(trial=trial, execution=number, epochs=epochs, over=state == TrialState.COMPLETED, best=best)
        for trial, number, epochs, state, best in rows.order_by("trial", "number").values_list(*columns)
    )
