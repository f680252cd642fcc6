"""Bayesian optimization by a Gaussian process of ours."""

from jobs.contracts.algorithms.info import AlgorithmInfo

INFO = AlgorithmInfo(
    name="bayesian",
    title="Bayesian optimization",
    note="Gaussian process",
    help="where a Gaussian process expects most",
    answer="workers.engine.search.bayesian:answer",
    learns_from_earlier=True,
    own_process=True,  # scikit-learn: a second, and 100 MB
)
