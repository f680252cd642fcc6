"""Declares the answers about endpoints, their replicas, and the releases that prediction servers read."""

from pydantic import Field

from jobs.answers.base import Answer, Stored, Time
from jobs.messages.release import ModelProcess, ServerProcess, SignedRelease


class ReplicaOut(Answer):
    """The last report of a prediction server."""

    name: str
    generation: int
    live: bool = Field(description="Whether it has reported in the last seconds.")
    stopped: bool = Field(description="Whether its last report was that it stops.")
    cut_off_since: Time | None = Field(
        description="Since when it learns of no release, though it may still answer; null: it is not cut off."
    )
    loading: int | None = Field(description="The generation that it is loading.")
    versions: dict[str, str] = Field(description="The state of each version.")
    error: str | None
    server: ServerProcess | None = Field(description="Its process; null if it does not report it.")
    processes: list[ModelProcess] = Field(description="The processes that compute the predictions.")
    seen: Time


class EndpointOut(Answer):
    """The version numbers that an endpoint serves."""

    name: str
    model: str
    project: str
    production: int | None
    previous: int | None
    staging: int | None
    canary: int | None = Field(description="Always null: canary releases are not available yet.")
    shadow: int | None = Field(description="Always null: shadow releases are not available yet.")
    down: bool = Field(
        description="Whether it was taken down: it answers 404, and the stages keep their versions."
    )
    generation: int
    rollback_to: int | None = Field(description="The version that a rollback would make production.")
    replicas: list[ReplicaOut]


class ServedOut(Answer):
    """The result of a change of an endpoint."""

    generation: int = Field(description="The replicas serve it within about a second.")
    down: bool


class AccessOut(Answer):
    """The endpoints that a caller of prediction servers may ask."""

    endpoints: list[str] | None = Field(description="null: the token is for metrics alone.")
    expires: Time | None = Field(description="When this ends; null: when the credentials are revoked.")
    warning: str | None = Field(description="Why the token must be replaced; null: it need not.")
    metrics: bool = Field(description="Whether the caller may read the metrics of prediction servers.")


class KnownAccessOut(Answer):
    """The access that one token gives now."""

    digest: str = Field(description="The SHA-256 of the token, in hexadecimal digits.")
    endpoints: list[str] | None = Field(description="null: the token is not for predictions.")
    expires: Time | None = Field(description="When this ends; null: when the token is revoked.")
    warning: str | None = Field(description="Why the token must be replaced; null: it need not.")
    metrics: bool = Field(description="Whether the token may read the metrics of prediction servers.")


class KnownAccessesOut(Answer):
    """The access of those tokens that are valid. All others are unknown, revoked or expired."""

    tokens: list[KnownAccessOut]


class ReleasesOut(Answer):
    """The newest release of each endpoint that has changed."""

    sequence: int = Field(description="Goes into `?after=` of the next request.")
    releases: Stored[list[SignedRelease]]
