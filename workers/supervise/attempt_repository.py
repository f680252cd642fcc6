"""Defines the interface between the supervisor and the database. Tests implement it in memory."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from jobs.messages.environments import InstalledSet, PackageChoice
from jobs.messages.events import RunnerEvent
from jobs.messages.sandbox import SandboxRecord
from jobs.messages.task import Task
from jobs.spec.checks.gpu_memory import UNKNOWN_NEED, MemoryNeed
from jobs.spec.sections.pruning import Curve
from jobs.states import Desired
from workers.supervise.attempt_end import AttemptEnd


class DatabaseUnavailable(Exception):
    """The database is unreachable, locked or slow. The call may have taken effect: repeat it unchanged."""


class StoredArtifact(Protocol):
    """A file in the artifact store."""

    @property
    def digest(self) -> str:
        """Its SHA-256 in hex."""

    @property
    def bytes(self) -> int:
        """Its size."""


@dataclass(frozen=True)
class Assignment:
    """One attempt that the scheduler assigned to this worker.

    Attributes:
        attempt, job, root: the ids of the attempt, its job, and the job's root.
        slots: how many of the worker's slots it uses.
        project: the id of the job's project; None if it belongs to none.
        need: the memory that it needs on each of its GPUs.
    """

    attempt: int
    job: int
    root: int
    slots: int = 1
    project: int | None = None
    need: MemoryNeed = UNKNOWN_NEED

    @property
    def compile_cache(self) -> str:
        """The compile cache's folder name.

        Each project has its own: a cached program is executed by every runner that loads it.
        """
        return f"job-{self.root}" if self.project is None else f"project-{self.project}"


class ReservedGpus(NamedTuple):
    """The reserved GPUs of this worker, as an attempt must treat them now.

    Attributes:
        kept: the names of those that are reserved for others, with a sentence for each.
        own: the names of those that are reserved for the person or the project of its job.
    """

    kept: Mapping[str, str] = MappingProxyType({})
    own: Set[str] = frozenset()


class AttemptRepository(Protocol):
    """Reads and writes for one worker. Every method may raise `DatabaseUnavailable`.

    Writes name their attempt, which is the fencing token: a write for an attempt that the worker no longer
    holds raises `jobs.errors.StaleFence` and changes nothing. `record` may be repeated with the same
    `spool_position`: a batch that was committed is not written twice.
    """

    async def assigned(self) -> Sequence[Assignment]:
        """Return the attempts that are assigned to this worker and not claimed yet."""

    async def decline_assigned(self) -> None:
        """Let the worker get no further attempts, and have those placed elsewhere that it has not claimed."""

    async def claim(self, attempt: int) -> bool:
        """Claim the attempt; return False if it was ended or reassigned meanwhile."""

    async def renew(self, attempts: Sequence[int]) -> Mapping[int, Desired]:
        """Renew the leases and return the desired states.

        The worker no longer holds attempts that are missing.
        """

    async def task_for(self, attempt: int, *, folder: Path, threads: int) -> Task:
        """Return the attempt's task, with its input files downloaded."""

    async def reserved_gpus(self, attempt: int) -> ReservedGpus:
        """Return which GPUs of this worker the attempt must leave to others now, and which are its own."""

    async def record_sandbox(self, attempt: int, record: SandboxRecord) -> None:
        """Write the sandbox that the attempt's runner has."""

    async def record_packages(
        self, attempt: int, installed: InstalledSet, choice: PackageChoice | None
    ) -> None:
        """Write the packages that the attempt's environment has.

        Args:
            attempt: the attempt.
            installed: its packages.
            choice: for which code later runs get the same packages; None if they do not.
        """

    async def curves(self, search: int, *, known: Collection[int]) -> Mapping[int, Sequence[Curve]]:
        """Return the learning curves from ended trials in the search by number, except the `known` ones."""

    async def store_file(self, attempt: int, path: Path) -> StoredArtifact:
        """Copy an output into the artifact store. Slow, so never inside a transaction.

        Raises:
            QuotaReached: the file does not fit into its project's disk quota.
        """

    async def share_events(self, attempt: int, rate: int) -> float | None:
        """Report how many events a second the attempt records; return how many it may record.

        None: there is no quota.
        """

    async def require_within_disk(self, attempt: int, *, beside: int = 0) -> None:
        """Require that the attempt's project is within its disk quota.

        Args:
            attempt: the attempt.
            beside: bytes in the attempt that no row counts.

        Raises:
            QuotaReached: it is not.
        """

    async def record(
        self,
        attempt: int,
        events: Sequence[RunnerEvent],
        *,
        spool_position: int,
        stored: Mapping[str, StoredArtifact],
    ) -> None:
        """Write events and the spool position up to which they reach, in one transaction."""

    async def copies_needed(self, attempt: int, folders: Collection[str]) -> Collection[str]:
        """Return which of these checkpoints are to be copied into object storage."""

    async def record_copy(self, attempt: int, folder: str) -> Sequence[str]:
        """Note that a checkpoint's copy is complete. Return the checkpoints whose copies can be deleted."""

    async def finish(self, attempt: int, ending: AttemptEnd) -> None:
        """Write the attempt's end."""

    def close(self) -> None:
        """End the repository's threads, after the calls that they have."""
