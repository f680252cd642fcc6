"""Declares the answers about environments with the packages of code."""

from pydantic import Field

from jobs.answers.base import Answer, Stored, Time
from jobs.messages.environments import EnvironmentFailure, EnvironmentState, InstalledPackage


class EnvironmentOut(Answer):
    """A virtual environment with the packages of code, on the machine of a worker."""

    digest: str = Field(description="Of requirements, Python, platform and locked versions.")
    state: EnvironmentState
    error: Stored[EnvironmentFailure | None] = Field(description="Why it could not be built.")
    packages: Stored[list[InstalledPackage]] = Field(
        description="Installed for it; behind them it sees those of the worker."
    )
    python: str
    platform: str
    locked: bool = Field(
        description="Whether the packages that models run with keep their versions; false for scripts."
    )
    installer: str = Field(description="`uv`, or `pip` of an earlier release; empty before it is built.")
    source: str = Field(description="Where the packages came from, without passwords.")
    level: str = Field(description="The level of the sandbox of the installation.")
    bytes: int | None
    seconds: float | None = Field(description="That the installation took.")
    worker: str | None = Field(description="The worker that built it; null if its row was deleted.")
    started: Time
    built: Time | None
    last_used: Time | None
    log: str = Field(description="The output of the installation, its last 200,000 characters.")


class RecordedPackagesOut(Answer):
    """Packages with which environments of a version of code are built, for one Python and platform."""

    digest: str = Field(description="Of the names, versions and files.")
    python: str = Field(description="Without the last number of its version.")
    platform: str
    locked: bool = Field(description="Whether they are for models; false for scripts.")
    packages: Stored[list[InstalledPackage]]


class EnvironmentsOut(Answer):
    """The environments of a version of code, the newest first."""

    requirements: list[str]
    recorded: list[RecordedPackagesOut] = Field(
        description="The packages of the next runs; empty before the first installation, and after a request "
        "to resolve again."
    )
    resolved_again: Time | None = Field(description="When a person had the versions chosen again.")
    installing: int | None = Field(description="The job that installs them ahead of runs.")
    problems: list[str] = Field(description="Requirements that no worker can install, with the reason.")
    items: list[EnvironmentOut]
