"""Registers random search."""

from jobs.spec.algorithms.info import AlgorithmInfo

INFO = AlgorithmInfo(
    name="random",
    title="random",
    help="each trial on its own",
    answer="workers.engine.search.random_search:answer",
    several_objectives=True,
    needs_results=False,
)
