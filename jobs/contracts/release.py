"""The signed record of what an endpoint serves; prediction servers trust nothing else."""

import json

from pydantic import Field

from jobs.contracts.answers.base import JsonObject
from jobs.contracts.base import Frozen


class ReleasedVersion(Frozen):
    """A version that may answer requests."""

    number: int
    digest: str = Field(description="sha256 of the .keras file")
    bytes: int
    signature: JsonObject
    class_labels: tuple[str, ...] = ()


class Release(Frozen):
    """What the endpoint `model` serves at `generation`. Generations only increase."""

    model: str
    generation: int
    production: int | None = Field(description="the version that answers; None takes the endpoint down")
    standby: tuple[int, ...] = Field(default=(), description="kept warm: rollback targets")
    labels: dict[str, int] = Field(default_factory=dict)
    versions: tuple[ReleasedVersion, ...] = Field(description="all versions named above")
    issued_at: str

    def signed_bytes(self) -> bytes:
        """Return the canonical bytes that are signed."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":")).encode()


class SignedRelease(Frozen):
    """A release and the Ed25519 signature over its canonical bytes (base64)."""

    release: Release
    signature: str
    key: str = Field(description="first 16 hex digits of the sha256 of the public key")


class ReplicaReport(Frozen):
    """The report of a prediction server about one endpoint."""

    replica: str
    model: str
    generation: int = Field(description="the newest generation it serves completely")
    loading: int | None = Field(default=None, description="the generation it is warming")
    versions: dict[str, str] = Field(default_factory=dict, description="version number → state")
    error: str | None = None
