"""Declares the answers about the metric series of a job."""

from typing import Annotated, NotRequired, TypedDict

from pydantic import Field

from jobs.contracts.answers.base import Nonfinite

type PointOut = Annotated[
    list[float | None],
    Field(description="[x, value, minimum, maximum, time]; value is null where it was not finite."),
]


class SeriesOut(TypedDict):
    """One curve."""

    name: str
    job: int
    trial: int | None
    execution: int | None
    x: Annotated[str, Field(description="epoch, batch or second.")]
    total_points: Annotated[int, Field(description="Points before they were reduced to `max_points`.")]
    points: Annotated[list[PointOut], Field(description="In ascending order of x.")]
    nonfinite: NotRequired[Nonfinite]


class MetricsOut(TypedDict):
    """The metric series of a job."""

    series: list[SeriesOut]
