"""Declares the answers about registered models, their versions and releases."""

from typing import Annotated, NotRequired, TypedDict

from pydantic import Field

from jobs.answers.base import Answer, CauseOut, Figures, Parameter, SignatureOut, Stored, Time
from jobs.messages.environments import InstalledPackage
from jobs.spec.exports import STORED
from jobs.spec.json_types import JsonValue


class ModelOut(Answer):
    """A model and the version numbers that its endpoint serves."""

    name: str
    project: str
    description: str
    production: int | None
    previous: int | None
    staging: int | None
    generation: int
    versions: int = Field(description="How many versions it has.")
    aliases: dict[str, int]
    created_by: str | None
    created: Time


class LineageOut(TypedDict):
    """Where a version comes from. Keys that do not apply are absent."""

    artifact: str
    uploaded_by: NotRequired[str]
    job: NotRequired[int]
    kind: NotRequired[Annotated[str, Field(description="The kind of the job.")]]
    root_job: NotRequired[int]
    attempt: NotRequired[int]
    trial: NotRequired[int]
    values: NotRequired[dict[str, Parameter]]
    experiment: NotRequired[int]
    experiment_name: NotRequired[str]
    revision: NotRequired[int]
    revision_digest: NotRequired[str]
    dataset: NotRequired[str]
    dataset_version: NotRequired[int]
    dataset_digest: NotRequired[str]
    code: NotRequired[Annotated[str, Field(description="The digest of the code of users.")]]
    code_name: NotRequired[str]


class VersionCodeOut(Answer):
    """The code that came with the file of a version, or that made it."""

    digest: str
    name: str
    needed: bool = Field(
        description="Whether the file cannot be loaded without it. False while the version is validated."
    )
    requirements_digest: str | None = Field(description="Of the packages that it asks for; null for none.")
    reported_metrics: bool = Field(
        description="Whether it ran in the process that computed `metrics`, and could report any number."
    )
    packages_digest: str | None = Field(
        description="Of the packages that are installed for it, with which it was trained; null for none and "
        "for versions of earlier releases."
    )


class PackageChangeOut(Answer):
    """A package that differs from those of the production version."""

    name: str
    before: str = Field(description="The version in production; empty if it is not there.")
    after: str = Field(description="The version here; empty if it is not here.")
    files: bool = Field(description="Whether the version is the same, and only files differ.")


class VersionPackagesOut(Answer):
    """The packages that are installed for the code of a version."""

    digest: str | None = Field(description="Null if the version has no packages, or none are known.")
    packages: Stored[list[InstalledPackage]]
    compared_with: int | None = Field(
        description="The production version; null without another one, or if packages of one are unknown."
    )
    changes: list[PackageChangeOut] = Field(description="Since the production version.")


class VersionOut(Answer):
    """A version of a model."""

    model: str
    number: int
    digest: str = Field(description=f"SHA-256 of the {STORED.suffix} file.")
    identity: str = Field(
        description="What approvals and releases are bound to: `digest`, or for a version that needs code a "
        "digest of its file, its code and its packages."
    )
    code: VersionCodeOut | None = Field(description="Code of users; null without any.")
    bytes: int
    state: str = Field(description="validating, candidate or invalid.")
    stage: str | None = Field(description="production, staging, previous, or null.")
    single_person: bool = Field(description="Whether it was approved under the single-person rule.")
    what: str = Field(description="best, ensemble, quantized or uploaded.")
    metrics: Stored[dict[str, Figures]] = Field(description="By part of the data.")
    signature: Stored[SignatureOut]
    class_labels: Stored[list[JsonValue]]
    lineage: Stored[LineageOut]
    aliases: list[str]
    card: str = Field(description="The model card as Markdown.")
    error: Stored[CauseOut | None] = Field(description="Why the version is invalid.")
    job: int | None
    created_by: str | None
    created: Time


class AliasOut(Answer):
    """An alias and the version that it names."""

    alias: str
    version: int


class ReleaseOut(Answer):
    """One change of the versions that an endpoint serves."""

    generation: int
    kind: str = Field(description="promote, rollback, stage, take_down, bring_up or label.")
    version: int | None
    replaced: int | None
    promotion: int | None
    reason: str
    by: str | None
    created: Time


class RollbackOut(Answer):
    """The version that is served after a rollback, and its generation."""

    generation: int
    version: int
