"""Asynchronous successive halving."""

from pydantic import field_validator

from jobs.contracts.algorithms.info import AlgorithmInfo
from jobs.contracts.rungs import Bracket, RungOptions, halved


class AshaOptions(RungOptions):
    """The options of Hyperband without further rounds."""

    @field_validator("iterations")
    @classmethod
    def _has_one_round(cls, iterations: int) -> int:
        if iterations > 1:
            raise ValueError("iterations is for hyperband: asha has no brackets to go through again")
        return iterations


def expected(options: AshaOptions, epochs: int, max_trials: int) -> list[Bracket]:
    """Return the bracket that synchronous halving would make; asynchronous halving promotes about as many."""
    return [halved(options.ladder(epochs), max_trials, options.factor)]


INFO = AlgorithmInfo(
    name="asha",
    title="ASHA",
    note="asynchronous halving",
    help="at random; asynchronous halving",
    answer="workers.engine.search.asha:answer",
    options=AshaOptions,
    brackets=expected,
)
