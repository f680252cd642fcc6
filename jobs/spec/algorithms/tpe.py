"""Registers TPE, Optuna's tree-structured Parzen estimator."""

from jobs.spec.algorithms.info import AlgorithmInfo

INFO = AlgorithmInfo(
    name="tpe",
    title="TPE",
    note="Parzen estimators",
    help="by Parzen estimators of the good and the bad trials (Optuna)",
    answer="workers.engine.search.tpe:answer",
    several_objectives=True,
    learns_from_earlier=True,
    # Importing optuna is slow.
    own_process=True,
)
