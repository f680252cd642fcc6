"""Defines the result of a root job and of the steps after it."""

from typing import Any

from pydantic import BaseModel

from jobs.kinds.base import Figures, Result


class BestTrial(BaseModel):
    """A summary of the best trial of a search."""

    number: int
    values: dict[str, Any]
    score: float | None
    std: float | None


class RootResult(Result):
    """The result of a root and of the steps after it.

    Attributes:
        best_trial: the best trial, if the root is a search.
        candidates: the metrics of each resulting model, by `Facts.candidate`.
    """

    best_trial: BestTrial | None = None
    candidates: dict[str, dict[str, Figures]] = {}
