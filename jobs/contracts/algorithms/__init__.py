"""The table of search algorithms. An algorithm is one module here and one of the engine.

`docs/tutorial-new-algorithm.md` adds one.
"""

from importlib import import_module

from jobs.contracts.algorithms.info import AlgorithmInfo

NAMES = (
    "random",
    "grid",
    "bayesian",
    "tpe",
    "hyperband",
    "asha",
    "keras_tuner_bayesian",
)
"""In the order of the form."""

ALGORITHMS: dict[str, AlgorithmInfo] = {name: import_module(f"{__name__}.{name}").INFO for name in NAMES}
