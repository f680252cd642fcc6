"""Registers ASHA, asynchronous successive halving."""

from pydantic import field_validator

from jobs.spec.algorithms.info import AlgorithmInfo
from jobs.spec.sections.rungs import Bracket, RungOptions, single_bracket


class AshaOptions(RungOptions):
    """The options of Hyperband except `iterations`."""

    @field_validator("iterations")
    @classmethod
    def _check_iterations(cls, iterations: int) -> int:
        if iterations > 1:
            raise ValueError(f"{iterations} iterations: asha has no brackets to repeat; use 1, or hyperband")
        return iterations


def expected(options: AshaOptions, epochs: int, max_trials: int) -> list[Bracket]:
    """Estimate which trainings ASHA runs by the bracket of synchronous halving."""
    return [single_bracket(options.rung_epochs(epochs), max_trials, options.factor)]


INFO = AlgorithmInfo(
    name="asha",
    title="ASHA",
    note="asynchronous halving",
    help="at random; asynchronous halving",
    answer="workers.engine.search.asha:answer",
    options=AshaOptions,
    brackets=expected,
)
