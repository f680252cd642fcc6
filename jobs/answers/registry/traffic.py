"""Declares the answer about the requests to an endpoint."""

from pydantic import Field

from jobs.answers.base import Answer, Time


class TrafficFigures(Answer):
    """Requests in a time. Percentiles are of successful requests, and at most 2 % from the measured value."""

    seconds: int = Field(description="The length of the time.")
    requests: int
    failed: int = Field(description="Requests that were answered with a status of 400 or more.")
    errors: dict[str, int] = Field(description="Failed requests by HTTP status.")
    versions: dict[str, int] = Field(
        description="Requests by version; 0: answered before a version was chosen."
    )
    requests_per_second: float
    p50_ms: float | None = Field(description="Null if no request succeeded, as are the other percentiles.")
    p95_ms: float | None
    p99_ms: float | None
    batches: int = Field(description="Calls of the model.")
    rows: int = Field(description="Rows in these calls.")
    batch_mean: float | None = Field(description="Rows in a batch; null if there were none.")
    batch_p95: int | None
    waiting: int = Field(description="The most rows that waited for the model.")


class TrafficPoint(TrafficFigures):
    """The requests from `at` on, for `seconds`."""

    at: Time


class ServedVersion(Answer):
    """A time in which one version was in production."""

    version: int | None = Field(description="Null: no version was served.")
    begin: Time
    end: Time | None = Field(description="Null: it is in production now.")
    kind: str = Field(description="The release that began it: promote, rollback, take_down or bring_up.")
    generation: int
    by: str | None
    reason: str


class ReplicaTraffic(Answer):
    """The requests to one prediction server in the last minute."""

    name: str
    requests: int
    failed: int
    requests_per_second: float


class TrafficOut(Answer):
    """The requests to an endpoint in a time, and the versions that were in production."""

    endpoint: str
    begin: Time
    end: Time = Field(description="The end of the last complete interval of ten seconds.")
    step_seconds: int = Field(description="The distance of the points. The last one may be shorter.")
    since: Time | None = Field(description="The first counted request; null if there was none yet.")
    total: TrafficFigures
    points: list[TrafficPoint] = Field(description="All points of the time, also those without requests.")
    served: list[ServedVersion] = Field(description="The versions in production, oldest first.")
    replicas: list[ReplicaTraffic]
