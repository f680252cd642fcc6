"""Defines the base class for model reports, and the types that several share."""

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


FiniteOrNull = Annotated[float | None, BeforeValidator(_finite_or_none)]
"""A number; NaN and infinity become null, since JSON has neither."""


class ModelReport(BaseModel):
    """An immutable report, or part of one.

    Reports are stored for years. So fields that later releases add have defaults, and unknown fields are
    ignored.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class MetricValue(ModelReport):
    """A metric on a number of rows, with its 95 % interval.

    Attributes:
        value: of the metric; null if it is undefined or not finite.
        low: lower bound of the interval; null if there is none.
        high: upper bound of the interval; null if there is none.
        interval: how the interval was computed.
        rows: number of rows it was measured on.
    """

    value: FiniteOrNull
    low: FiniteOrNull = None
    high: FiniteOrNull = None
    interval: Literal["wilson", "bootstrap"] | None = None
    rows: int

    def holds(self, value: float) -> bool:
        """Return whether a value lies in the interval, or False if there is none."""
        return self.low is not None and self.high is not None and self.low <= value <= self.high


type Metrics = dict[str, MetricValue]
"""Metrics by name."""
