"""Registers KerasTuner's Bayesian optimization."""

from jobs.spec.algorithms.info import AlgorithmInfo

INFO = AlgorithmInfo(
    name="keras_tuner_bayesian",
    title="KerasTuner's Bayesian optimization",
    note="slow",
    help="by KerasTuner's Gaussian process: seconds a suggestion",
    answer="workers.engine.search.keras_tuner_bayesian:answer",
    # Importing keras_tuner takes seconds and 300 MB.
    own_process=True,
)
