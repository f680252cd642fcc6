"""What supervision needs of the database. The node implements it with actions, tests with a list."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from jobs.contracts.events import RunnerEvent
from jobs.contracts.pruning import Curve
from jobs.contracts.task import Task
from jobs.states import Desired
from workers.supervise.endings import Ending


class LedgerAway(Exception):
    """The database is away, locked or slow. Nothing is known about the call: try the same again."""


class Stored(Protocol):
    """A file in the artifact store."""

    @property
    def digest(self) -> str:
        """Sha256 in hex."""

    @property
    def bytes(self) -> int:
        """Size."""


@dataclass(frozen=True)
class Assignment:
    """One attempt that the scheduler gave to this node."""

    attempt: int
    job: int
    root: int
    slots: int = 1
    project: int | None = None

    @property
    def cache(self) -> str:
        """The cache of compiled programs, a project's own: whoever writes one can run code in its readers."""
        return f"job-{self.root}" if self.project is None else f"project-{self.project}"


class Ledger(Protocol):
    """Reads and writes of one worker. Every method may raise `LedgerAway`.

    Writes name their attempt, which is the fence: one that is no longer ours raises
    `jobs.errors.StaleFence` and changes nothing. `record` may be repeated with the same
    `spool_position`: a batch that was committed is not written twice.
    """

    async def assigned(self) -> Sequence[Assignment]:
        """Return what is assigned to this worker and not claimed."""

    async def claim(self, attempt: int) -> bool:
        """Take the attempt; False when somebody or something was faster."""

    async def renew(self, attempts: Sequence[int]) -> Mapping[int, Desired]:
        """Extend the leases; ids missing from the answer are ours no longer."""

    async def task_for(self, attempt: int, *, folder: Path, threads: int) -> Task:
        """Return what to do, its inputs made local."""

    async def curves(self, search: int, *, known: Collection[int]) -> Mapping[int, Sequence[Curve]]:
        """Return the curves of trials of this search that have ended and are not known, by number."""

    async def keep(self, path: Path) -> Stored:
        """Put a file into the artifact store. Slow; outside of any transaction."""

    async def record(
        self,
        attempt: int,
        events: Sequence[RunnerEvent],
        *,
        spool_position: int,
        stored: Mapping[str, Stored],
    ) -> None:
        """Write events, and how far the spool is now in the database, in one transaction."""

    async def finish(self, attempt: int, ending: Ending) -> None:
        """End the attempt."""
