"""Lists the search algorithms. Each has a module here and one in the engine.

`docs/tutorial-new-algorithm.md` adds one.
"""

from importlib import import_module

from jobs.spec.algorithms.info import AlgorithmInfo

NAMES = (
    "random",
    "grid",
    "bayesian",
    "tpe",
    "hyperband",
    "asha",
    "keras_tuner_bayesian",
)
"""In the order in which the form lists them."""

ALGORITHMS: dict[str, AlgorithmInfo] = {name: import_module(f"{__name__}.{name}").INFO for name in NAMES}
