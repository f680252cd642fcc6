"""Registers Bayesian optimization with a Gaussian process."""

from jobs.spec.algorithms.info import AlgorithmInfo

INFO = AlgorithmInfo(
    name="bayesian",
    title="Bayesian optimization",
    note="Gaussian process",
    help="where a Gaussian process expects most",
    answer="workers.engine.search.bayesian:answer",
    learns_from_earlier=True,
    # Importing scikit-learn takes a second and 100 MB.
    own_process=True,
)
