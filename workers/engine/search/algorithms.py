"""Every algorithm, with those that build a model. What these import is loaded when the first one is asked."""

from jobs.contracts.search import Algorithm
from jobs.contracts.suggest import Answer
from workers.engine.search.history import History
from workers.engine.search.suggest import CHEAP, Answerer, one_by_one


def _bayesian(history: History, count: int) -> Answer:
    from workers.engine.search import bayesian  # scikit-learn: a second, and 100 MB

    return one_by_one(bayesian.start)(history, count)


def _tpe(history: History, count: int) -> Answer:
    from workers.engine.search import tpe  # optuna

    return one_by_one(tpe.start)(history, count)


def _keras_tuner_bayesian(history: History, count: int) -> Answer:
    from workers.engine.search import keras_tuner_bayesian  # keras_tuner: seconds, and 300 MB

    return one_by_one(lambda _: keras_tuner_bayesian.propose)(history, count)


ALGORITHMS: dict[Algorithm, Answerer] = {
    **CHEAP,
    "bayesian": _bayesian,
    "tpe": _tpe,
    "keras_tuner_bayesian": _keras_tuner_bayesian,
}
