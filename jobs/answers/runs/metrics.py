"""Declares the answers about a job's metric series."""

from typing import Annotated, NotRequired, TypedDict

from pydantic import Field

from jobs.answers.base import Nonfinite

type PointOut = Annotated[
    list[float | None],
    Field(
        description="[x, value, minimum, maximum, time]; value is null where it was not finite. The time is "
        "that of the last of the points that are reduced to this one, in seconds since 1970, UTC."
    ),
]


class AttemptStartOut(TypedDict):
    """Where the points of one attempt begin along a curve."""

    attempt: int
    x: Annotated[float, Field(description="The x of its first point.")]
    time: Annotated[float, Field(description="The time of its first point, in seconds since 1970, UTC.")]


class SeriesOut(TypedDict):
    """One curve."""

    name: str
    job: int
    trial: int | None
    execution: int | None
    x: Annotated[str, Field(description="epoch, batch or second.")]
    total_points: Annotated[int, Field(description="Points before they were reduced to `max_points`.")]
    points: Annotated[list[PointOut], Field(description="In ascending order of x.")]
    attempts: Annotated[
        list[AttemptStartOut],
        Field(
            description="Which attempt measured which points, in ascending order of x, of the whole curve. "
            "Points of an attempt that follow those of a later one belong to work that was lost; the later "
            "attempt has not reached them again."
        ),
    ]
    nonfinite: NotRequired[Nonfinite]


class MetricsOut(TypedDict):
    """The metric series of a job."""

    series: list[SeriesOut]
