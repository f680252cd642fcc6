"""Registers Hyperband."""

from jobs.spec.algorithms.info import AlgorithmInfo
from jobs.spec.sections.rungs import RungOptions, brackets

INFO = AlgorithmInfo(
    name="hyperband",
    title="Hyperband",
    help="at random; brackets of synchronous halving",
    answer="workers.engine.search.hyperband:answer",
    options=RungOptions,
    needs_results=False,
    brackets=brackets,
)
