"""Registers grid search."""

from jobs.spec.algorithms.info import AlgorithmInfo

INFO = AlgorithmInfo(
    name="grid",
    title="grid",
    help="every point of the grid, in order",
    answer="workers.engine.search.grid_search:answer",
    several_objectives=True,
    needs_results=False,
    enumerates_grid=True,
)
