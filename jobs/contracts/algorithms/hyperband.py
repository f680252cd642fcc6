"""Registers Hyperband."""

from jobs.contracts.algorithms.info import AlgorithmInfo
from jobs.contracts.rungs import RungOptions, brackets

INFO = AlgorithmInfo(
    name="hyperband",
    title="Hyperband",
    help="at random; brackets of synchronous halving",
    answer="workers.engine.search.hyperband:answer",
    options=RungOptions,
    needs_results=False,
    brackets=brackets,
)
