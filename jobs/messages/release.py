"""Declares releases, the versions that an endpoint serves, and prediction servers' reports.

Releases are signed. Prediction servers accept no unsigned one.
"""

import hashlib
import json
import re
from typing import Annotated, Literal

from pydantic import Field, field_validator

from jobs.messages.audit import AuditAnchor
from jobs.messages.environments import InstalledPackage, digest_of_set
from jobs.messages.traffic import TrafficReport
from jobs.spec.base import Frozen
from jobs.spec.exports import STORED
from jobs.spec.json_types import JsonObject

_NUMBER = re.compile(r"[0-9]{1,10}")
SandboxLevel = Literal["bubblewrap", "namespaces", "landlock", "process"]
"""`RecordedLevel` from `jobs.messages.sandbox`, which servers without user code do not import."""
Generation = Annotated[int, Field(ge=0, le=2**31 - 1)]


def identity_of(weights: str, code: str | None = None, requirements: str = "", *, packages: str = "") -> str:
    """Compute one digest over everything on which a version's predictions depend.

    Args:
        weights: the model file's SHA-256. It alone identifies a version that needs no code.
        code: digest of the code that the file needs.
        requirements: digest of the packages that the code asks for; empty for none.
        packages: digest of those that are installed for it; empty for versions from earlier releases.
    """
    if code is None:
        return weights
    parts = {"code": code, "requirements": requirements, "weights": weights}
    if packages:
        # Otherwise the identity would change that earlier approvals and signed releases have.
        parts["packages"] = packages
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class ReleasedFile(Frozen):
    """A file of code. `path` is its place in the version of code."""

    path: str
    digest: str
    bytes: int


class ReleasedCode(Frozen):
    """Code of users that a version needs. A prediction server loads it only in a sandbox."""

    digest: str = Field(description="Of the version of code.")
    files: tuple[ReleasedFile, ...]
    requirements: tuple[str, ...] = Field(
        default=(), description="The packages that it asks for, as it writes them."
    )
    requirements_digest: str = ""
    # Left out without a value, because earlier releases were signed without it.
    packages: tuple[InstalledPackage, ...] | None = Field(
        default=None,
        exclude_if=lambda packages: packages is None,
        description="The exact packages that it must have; earlier releases name only the requirements.",
    )
    minimum: SandboxLevel = Field(description="The weakest level of sandbox in which it may run.")


class ReleasedRule(Frozen):
    """A layout rule: the variables that it matches, and the mesh axis of each of their dimensions."""

    match: str
    axes: tuple[str | None, ...]


class ReleasedMesh(Frozen):
    """How a version that is larger than one device is divided over those of a prediction server.

    It has the parts of `MeshSpec` that do not depend on a machine. It is declared by itself, because a field
    with a default that is added there would change the bytes that earlier releases were signed with.
    """

    shape: tuple[int, ...]
    axis_names: tuple[str, ...]
    batch_axis: str | None
    layout: tuple[ReleasedRule, ...]


class ReleasedVersion(Frozen):
    """A version that may answer requests."""

    number: int
    digest: str = Field(description=f"SHA-256 of the {STORED.suffix} file.")
    bytes: int
    signature: JsonObject
    class_labels: tuple[str, ...] = ()
    # Left out without a value, as `Release.audit`.
    multilabel: bool = Field(
        default=False,
        exclude_if=lambda multilabel: not multilabel,
        description="Whether several of its classes may apply to one row; earlier releases lack it.",
    )
    # Left out without a value, as `Release.audit`.
    code: ReleasedCode | None = Field(
        default=None,
        exclude_if=lambda code: code is None,
        description="The code that the file needs; absent for a file of built-in layers.",
    )
    mesh: ReleasedMesh | None = Field(
        default=None,
        exclude_if=lambda mesh: mesh is None,
        description="The mesh for a version larger than one device; absent without layout rules.",
    )

    @property
    def identity(self) -> str:
        """Compute one digest for its weights, code and packages."""
        if self.code is None:
            return self.digest
        packages = "" if self.code.packages is None else digest_of_set(self.code.packages)
        return identity_of(self.digest, self.code.digest, self.code.requirements_digest, packages=packages)

    @property
    def files(self) -> tuple[tuple[str, int], ...]:
        """Return digest and size for each file that a prediction server needs."""
        code = () if self.code is None else self.code.files
        return (self.digest, self.bytes), *((file.digest, file.bytes) for file in code)


class Release(Frozen):
    """The versions that the endpoint `model` serves at `generation`. Generations only increase."""

    model: str
    generation: int
    production: int | None = Field(description="The version that answers; null takes the endpoint down.")
    standby: tuple[int, ...] = Field(default=(), description="Versions that stay loaded for a rollback.")
    labels: dict[str, int] = Field(default_factory=dict)
    versions: tuple[ReleasedVersion, ...] = Field(description="All versions named above.")
    issued_at: str
    # Left out without a value, because earlier releases were signed without it.
    audit: AuditAnchor | None = Field(
        default=None,
        exclude_if=lambda anchor: anchor is None,
        description="The row of this release in the audit chain; earlier releases have none.",
    )

    def signed_bytes(self) -> bytes:
        """Return the canonical bytes that are signed."""
        # Sorted and without spaces: every process that checks the signature must compute the same bytes.
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":")).encode()


class SignedRelease(Frozen):
    """A release and the Ed25519 signature over its canonical bytes (base64)."""

    release: Release
    signature: str
    key: str = Field(description="The first 16 hexadecimal digits of the public key's SHA-256.")


class ModelProcess(Frozen):
    """The process that computes the predictions of one version."""

    version: int
    pid: int
    memory_bytes: int | None = Field(default=None, description="Memory that it shares with no other process.")
    waiting: int = Field(default=0, description="Rows that wait for it.")
    sandbox: SandboxLevel | None = Field(
        default=None, description="The level of its sandbox; null for a version that needs no code."
    )


class ServerProcess(Frozen):
    """The process of a prediction server."""

    host: str = Field(max_length=200)
    pid: int
    started: float = Field(description="Unix time of its start.")
    memory_bytes: int | None = Field(default=None, description="Memory that it shares with no other process.")


class ReplicaReport(Frozen):
    """The report of a prediction server about one endpoint."""

    replica: str = Field(
        description="Differs for servers that share a credential by mistake; that one names the replica."
    )
    instance: int = Field(
        default=1, ge=1, le=99, description="The number of this server among those of one home."
    )
    model: str
    generation: Generation = Field(description="The newest generation that it serves completely.")
    loading: Generation | None = Field(default=None, description="The generation that it is loading.")
    versions: dict[str, str] = Field(
        default_factory=dict, description="The state of each version, by number."
    )
    error: str | None = None
    silent_seconds: float | None = Field(
        default=None,
        ge=0,
        le=1e9,
        description="How long it has learnt of no release; null: it is not cut off.",
    )
    stops: bool = Field(default=False, description="Whether this is its last report.")
    server: ServerProcess | None = None
    processes: tuple[ModelProcess, ...] = ()
    traffic: TrafficReport | None = Field(
        default=None, description="Requests since the last confirmed report."
    )

    @field_validator("versions")
    @classmethod
    def _check_numbers(cls, versions: dict[str, str]) -> dict[str, str]:
        # Pages sort them as numbers. A type of the keys would leave the values without a type in OpenAPI.
        if wrong := next((name for name in versions if not _NUMBER.fullmatch(name)), None):
            raise ValueError(f"{wrong[:40]!r} is not the number of a version")
        return versions
