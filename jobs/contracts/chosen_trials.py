"""An ensemble of trials that somebody chose: of which search, and which. Kept in the payload of its job."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field

from jobs.contracts.base import Frozen
from jobs.contracts.search_space import Value


class ChosenTrial(Frozen):
    """A trial by its number, with the values that are trained anew: they outlive the trial's row."""

    trial: int = Field(ge=1)
    values: dict[str, Value]


class Pooled(Frozen):
    """Which trials are pooled, in the order of their numbers, and the id of the search that tried them."""

    search: int
    chosen: tuple[ChosenTrial, ...]

    @classmethod
    def read(cls, payload: Mapping[str, Any]) -> Self | None:
        """Return what a job's payload holds; None where nobody chose anything."""
        if "chosen" not in payload:
            return None
        return cls.model_validate({name: payload[name] for name in cls.model_fields})

    @property
    def numbers(self) -> list[int]:
        """Return the numbers of the trials."""
        return [member.trial for member in self.chosen]
