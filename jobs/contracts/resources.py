"""The resources of a job: pool, slots, priority, restarts."""

from pydantic import Field

from jobs.contracts.base import Frozen


class Resources(Frozen):
    """Slots are per trial, or per training without a search. Higher priorities (0 to 100) run first."""

    pool: str = Field(default="default", pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")
    slots: int = Field(default=1, ge=1, le=1024)
    hosts: int = Field(default=1, ge=1, le=1, description="only one host is supported yet")
    priority: int = Field(default=50, ge=0, le=100)
    max_restarts: int = Field(default=5, ge=0, le=1000)
    memory_gib: float | None = Field(default=None, gt=0, description="cap for the run's memory")
