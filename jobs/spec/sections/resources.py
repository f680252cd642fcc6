"""Declares the spec section `resources`: pool, labels, slots, GPUs, priority, restarts."""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import Field, field_validator

from jobs.spec.base import Frozen
from jobs.spec.labels import Labels, labels_text
from jobs.spec.problems import Problem, warning
from jobs.spec.sections.gpu import GpuDevice, GpuWish

POOL = r"^[a-z0-9][a-z0-9_-]{0,62}$"
"""The names that a pool may have."""
MOST_MINUTES = 525_600
"""A year."""


class Resources(Frozen):
    """Slots are per trial, or per training without a search. Higher priorities (0 to 100) run first."""

    pool: str = Field(default="default", pattern=POOL)
    labels: Labels | None = Field(
        default=None, description="only workers with all of these labels run it, such as gpu: h200"
    )
    slots: int = Field(default=1, ge=1, le=1024)
    gpu: GpuWish | None = Field(default=None, description="the GPUs of each run; any device if absent")
    hosts: int = Field(default=1, ge=1, description="only 1 is available yet")
    priority: int = Field(default=50, ge=0, le=100)
    max_restarts: int = Field(default=5, ge=0, le=1000)
    max_minutes: float | None = Field(
        default=None,
        gt=0,
        le=MOST_MINUTES,
        description="ends a training or script that has run for so long, without waiting and pauses; in a "
        "search, each retraining: search.max_minutes ends the search",
    )
    memory_gib: float | None = Field(default=None, gt=0, description="cap for the run's memory")

    @field_validator("hosts")
    @classmethod
    def _check_hosts(cls, hosts: int) -> int:
        if hosts > 1:
            raise ValueError(f"{hosts} hosts: jobs on several hosts are not available yet; use 1")
        return hosts


class WorkerSize(NamedTuple):
    """A live worker's size."""

    slots: int
    devices: tuple[str, ...] = ()
    """The names of its devices, such as `gpu:0`."""
    no_gpu_in_sandbox: tuple[str, ...] = ()
    """Why runs with code get no GPU, and why not several; empty words if they do."""
    gpus: tuple[GpuDevice, ...] = ()


def unserved(
    pool: str, slots: int, largest: int, labels: Mapping[str, str] | None = None, *, unlabelled: bool = False
) -> Problem | None:
    """Return why no running worker can take a job, at the field that decides it, or None if one can.

    Args:
        pool: the job's pool.
        slots: the slots that it needs. It runs on one worker, so several workers' free slots do not add up.
        largest: the most slots that a running worker in the pool with the labels has; 0 if none runs.
        labels: the labels that it asks for.
        unlabelled: whether workers without these labels run in the pool.
    """
    if largest == 0 and labels and unlabelled:
        options = " ".join(f"--label {key}={value}" for key, value in sorted(labels.items()))
        return warning(
            "/labels",
            f"no running worker of pool {pool!r} has the labels {labels_text(labels)}, so the job will wait",
            f"Start a worker with --pool {pool} {options}, or choose other labels",
        )
    if largest == 0:
        return warning(
            "/pool",
            f"no worker is running in pool {pool!r}, so the job will wait",
            f"Start a worker with --pool {pool}, or choose another pool",
        )
    if slots > largest:
        return warning(
            "/slots",
            f"the largest worker of the pool has {largest} slots, so the job will wait for a larger one",
            f"Set at most {largest} slots, or start a worker with {slots}",
        )
    return None
