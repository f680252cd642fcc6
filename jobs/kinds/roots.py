"""Defines the joint result of a root job and its later steps."""

from typing import Any

from pydantic import BaseModel

from jobs.kinds.base import Figures, Result


class BestTrial(BaseModel):
    """A summary of a search's best trial."""

    number: int
    values: dict[str, Any]
    score: float | None
    std: float | None


class RootResult(Result):
    """The joint result of a root job and its later steps.

    Attributes:
        best_trial: the best trial, if the root is a search.
        candidates: the metrics of all resulting models, by `Facts.candidate`.
    """

    best_trial: BestTrial | None = None
    candidates: dict[str, dict[str, Figures]] = {}
