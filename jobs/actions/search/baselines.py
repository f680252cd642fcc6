"""Stores the score of the constant prediction, with which a search's best trial is compared.

Each execution whose validation rows have none is asked for it, and reports it before it trains. So it is
stored before the execution has a score, a trial that is killed before is asked again, and several workers may
report the same: the first report stays. A report about rows that the trial does not have is left out: code in
a sandbox may send any.
"""

from jobs.models import Job, Trial
from jobs.queries.search import outcomes
from jobs.queries.search.algorithm_state import algorithm_state
from jobs.spec.sections.baseline import Baseline
from jobs.spec.sections.evaluation import Turn


def record_baseline(trial: Trial, baseline: Baseline) -> None:
    """Store a score that a trial has reported, inside the caller's transaction.

    Args:
        trial: held by an attempt, which the caller has locked.
        baseline: the score.
    """
    root = Job.objects.locked().get(pk=trial.job_id)
    state = algorithm_state(root)
    if state.baseline_of(Turn(baseline.repeat, baseline.fold)) is None and _is_of(trial, root, baseline):
        root.payload_json = state.changed(baselines=(*state.baselines, baseline)).to_json()
        Job.objects.filter(pk=root.pk).update(payload_json=root.payload_json)
    trial.job.payload_json = root.payload_json


def _is_of(trial: Trial, root: Job, baseline: Baseline) -> bool:
    """Return whether a score is one of the search's objective, on rows of one of the trial's executions."""
    if baseline.metric != outcomes.objective_of(root).metric:
        return False
    rows = trial.executions.filter(fold=baseline.fold)
    # Without folds, the score is stored as that of the first repeat.
    return (rows if baseline.fold is None else rows.filter(repeat=baseline.repeat)).exists()
