"""Declares counts of prediction requests, as prediction servers report and the database stores them."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from jobs.messages.histogram import MAX_BUCKET, bucket_of
from jobs.spec.base import Frozen

INTERVAL_SECONDS = 10
MAX_INTERVALS = 60
"""The most intervals in one report."""
NO_VERSION = 0
"""The version for requests that were answered before a version was chosen."""

MAX_COUNT = 2**40
"""The largest count. Larger sums are stored as this number: only a false report has them, and the database
adds the counts in millions of rows as 64-bit integers."""

Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Buckets = Annotated[dict[Annotated[int, Field(ge=0, le=MAX_BUCKET)], Count], Field(max_length=MAX_BUCKET + 1)]


class Counts(Frozen):
    """The requests and batches of one version in one interval."""

    latency: Buckets = Field(
        default_factory=dict, description="Successful requests by logarithmic bucket of their microseconds."
    )
    errors: dict[Annotated[int, Field(ge=400, le=599)], Count] = Field(
        default_factory=dict, description="Other requests by HTTP status."
    )
    batches: Buckets = Field(default_factory=dict, description="Batches by logarithmic bucket of their rows.")
    rows: Count = Field(default=0, description="Rows in these batches.")
    waiting: Count = Field(default=0, description="The most rows that waited when a batch began.")


class VersionCounts(Frozen):
    """The counts of one version; 0: requests that were answered before a version was chosen."""

    version: int = Field(ge=0, le=2**31 - 1)
    counts: Counts


class TrafficInterval(Frozen):
    """The counts of an interval of ten seconds."""

    start: int = Field(
        ge=0, le=2**40, multiple_of=INTERVAL_SECONDS, description="Unix time, by the clock of the server."
    )
    versions: tuple[VersionCounts, ...] = Field(max_length=1000)


class TrafficReport(Frozen):
    """Counts that the dashboard has not confirmed yet.

    It is sent until it is confirmed. The dashboard adds it only if (`run`, `sequence`) is greater than in the
    last report it has added, so nothing is counted twice.
    """

    run: int = Field(ge=1, le=2**53, description="Greater at each start of the server.")
    sequence: int = Field(ge=1, le=2**31 - 1, description="Counts the reports of this run.")
    sent: float = Field(ge=0, le=2**40, description="Unix time of sending, by the clock of the server.")
    intervals: tuple[TrafficInterval, ...] = Field(max_length=MAX_INTERVALS)


class Tally:
    """Mutable counts: over a server's current interval, or over many database rows."""

    __slots__ = ("batches", "errors", "latency", "rows", "waiting")

    def __init__(self) -> None:
        self.latency: dict[int, int] = {}
        self.errors: dict[int, int] = {}
        self.batches: dict[int, int] = {}
        self.rows = 0
        self.waiting = 0

    def count_request(self, status: int, seconds: float) -> None:
        """Count one answered request."""
        if status < 400:
            bucket = bucket_of(seconds * 1e6)
            self.latency[bucket] = self.latency.get(bucket, 0) + 1
        else:
            self.errors[status] = self.errors.get(status, 0) + 1

    def count_batch(self, rows: int, waiting: int) -> None:
        """Count one batch, with the rows that waited meanwhile."""
        bucket = bucket_of(rows)
        self.batches[bucket] = self.batches.get(bucket, 0) + 1
        self.rows += rows
        self.waiting = max(self.waiting, waiting)

    def add(self, other: "Tally | Counts") -> None:
        """Add other counts."""
        _add(self.latency, other.latency)
        _add(self.errors, other.errors)
        _add(self.batches, other.batches)
        self.rows = min(self.rows + other.rows, MAX_COUNT)
        self.waiting = max(self.waiting, other.waiting)

    @property
    def succeeded(self) -> int:
        """The successful requests."""
        return sum(self.latency.values())

    @property
    def failed(self) -> int:
        """All other requests."""
        return sum(self.errors.values())

    def counts(self) -> Counts:
        """Return an immutable copy."""
        return Counts(
            latency=dict(self.latency),
            errors=dict(self.errors),
            batches=dict(self.batches),
            rows=self.rows,
            waiting=self.waiting,
        )


def _add(target: dict[int, int], source: Mapping[int, int]) -> None:
    for key, count in source.items():
        target[key] = min(target.get(key, 0) + count, MAX_COUNT)
