"""A node without a database: the repository is a fake in memory, the runner a fake process."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from jobs import lease_clock
from jobs.errors import QuotaReached
from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.environments import InstalledSet, PackageChoice
from jobs.messages.events import Log, Metric, Points, RunnerEvent
from jobs.messages.sandbox import SandboxRecord
from jobs.messages.task import Task
from jobs.spec.sections.pruning import Curve
from jobs.states import Desired
from jobs.store import LocalStore, StoredFile
from tests.broker import running_broker
from workers.supervise.attempt.attempt import AttemptSupervisor
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt.node_context import NodeContext
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.attempt_repository import (
    Assignment,
    DatabaseUnavailable,
    ReservedGpus,
    StoredArtifact,
)
from workers.supervise.pool.runner_pool import RunnerPool
from workers.supervise.timing import Timing
from workers.system.secret_masking import SecretMasker

FAKE = "tests.supervise.fake_runner"
QUICK = Timing(
    watch=0.02,
    commit=0.01,
    sync=0.05,
    sample=0.1,
    grace=5.0,
    nag=0.1,
    silence=10.0,
    silence_factor=5.0,
    first_progress=20.0,
    stack_dump=0.2,
    retry_first=0.02,
    retry_limit=0.1,
    news=0.02,
    quota=0.05,
)
SECRET = "correct-horse-battery"


@dataclass
class FakeRepository:
    """An attempt repository in memory. `fault` is raised by every call while it is set."""

    scripts: dict[int, list[Any]]
    store: LocalStore
    fault: Exception | None = None
    applied_but_lost: int = 0
    """The number of `record` calls that are applied although they raise."""
    events: dict[int, list[RunnerEvent]] = field(default_factory=dict)
    acked: dict[int, int] = field(default_factory=dict)
    commits: list[float] = field(default_factory=list)
    endings: dict[int, AttemptEnd] = field(default_factory=dict)
    desired: dict[int, Desired] = field(default_factory=dict)
    tries: int = 0
    tasks: dict[int, Task] = field(default_factory=dict)
    """The task of an attempt, instead of its script. Each attempt gets a folder of its own."""
    ended: dict[int, tuple[Curve, ...]] = field(default_factory=dict)
    """The learning curves of ended trials by number."""
    queries: list[Collection[int]] = field(default_factory=list)
    files: dict[str, StoredArtifact] = field(default_factory=dict)
    sandboxes: dict[int, SandboxRecord] = field(default_factory=dict)
    packages: dict[int, tuple[InstalledSet, PackageChoice | None]] = field(default_factory=dict)

    copied: list[str] = field(default_factory=list)
    """The checkpoints whose copies are complete; those of the last two stay."""
    unneeded: set[str] = field(default_factory=set)
    """Checkpoints from which nothing will resume."""

    reserved: dict[int, ReservedGpus] = field(default_factory=dict)
    """The reserved GPUs as single attempts see them."""
    share: float | None = None
    """The events a second that each attempt may record."""
    shares: dict[int, float | None] = field(default_factory=dict)
    """Those of single attempts."""
    rates: list[int] = field(default_factory=list)
    """The events a second that attempts reported."""
    besides: list[int] = field(default_factory=list)
    """The bytes beside those of the database at each check of the disk quota."""
    over_quota: dict[int, QuotaReached] = field(default_factory=dict)
    """Raised by the check of the disk quota of an attempt."""
    room: int = -1
    """With more bytes beside those of the database, the quota is reached."""

    async def assigned(self) -> Sequence[Assignment]:
        return [Assignment(attempt=pk, job=1, root=1) for pk in self.scripts]

    async def decline_assigned(self) -> None:
        self._check()

    async def claim(self, attempt: int) -> bool:
        return attempt in self.scripts

    async def renew(self, attempts: Sequence[int]) -> Mapping[int, Desired]:
        self._check()
        return {pk: self.desired.get(pk, Desired.RUNNING) for pk in attempts if pk not in self.endings}

    async def task_for(self, attempt: int, *, folder: Path, threads: int) -> Task:
        self._check()
        if attempt in self.tasks:
            return self.tasks[attempt].model_copy(update={"folder": str(folder)})
        return ProfileTask(
            folder=str(folder),
            checkpoints=str(self.store.checkpoint_root / "job-1"),
            threads=threads,
            source="bundled",
            bundled=json.dumps(self.scripts[attempt]),
        )

    async def reserved_gpus(self, attempt: int) -> ReservedGpus:
        self._check()
        return self.reserved.get(attempt, ReservedGpus())

    async def record_sandbox(self, attempt: int, record: SandboxRecord) -> None:
        self._check()
        self.sandboxes[attempt] = record

    async def record_packages(
        self, attempt: int, installed: InstalledSet, choice: PackageChoice | None
    ) -> None:
        self._check()
        self.packages[attempt] = (installed, choice)

    async def curves(self, search: int, *, known: Collection[int]) -> Mapping[int, Sequence[Curve]]:
        self.queries.append(known)
        self._check()
        return {number: curves for number, curves in self.ended.items() if number not in known}

    async def store_file(self, attempt: int, path: Path) -> StoredFile:
        self._check()
        return self.store.put(path)

    async def share_events(self, attempt: int, rate: int) -> float | None:
        self._check()
        self.rates.append(rate)
        return self.shares.get(attempt, self.share)

    async def require_within_disk(self, attempt: int, *, beside: int = 0) -> None:
        self._check()
        self.besides.append(beside)
        if attempt in self.over_quota and beside > self.room:
            raise self.over_quota[attempt]

    async def record(
        self,
        attempt: int,
        events: Sequence[RunnerEvent],
        *,
        spool_position: int,
        stored: Mapping[str, StoredArtifact],
    ) -> None:
        self.tries += 1
        self._check()
        if self.acked.get(attempt, 0) < spool_position:
            self.acked[attempt] = spool_position
            self.events.setdefault(attempt, []).extend(events)
            self.files.update(stored)
            self.commits.append(time.monotonic())
        if self.applied_but_lost:
            self.applied_but_lost -= 1
            raise DatabaseUnavailable("the answer was lost")

    async def copies_needed(self, attempt: int, folders: Collection[str]) -> Collection[str]:
        self._check()
        return [folder for folder in folders if folder not in self.unneeded]

    async def record_copy(self, attempt: int, folder: str) -> Sequence[str]:
        self._check()
        self.copied.append(folder)
        return [self.copied[-3]] if len(self.copied) > 2 else []

    async def finish(self, attempt: int, ending: AttemptEnd) -> None:
        self._check()
        self.endings[attempt] = ending

    def close(self) -> None:
        return

    def _check(self) -> None:
        if self.fault is not None:
            raise self.fault

    def losses(self, attempt: int = 1) -> list[float]:
        """The x of every point in the runner's own series, in order."""
        xs: list[float] = []
        for event in self.events.get(attempt, []):
            if isinstance(event, Points):
                xs += event.at
            elif isinstance(event, Metric):
                xs += [x for name, x, _, _ in event.points if name == "loss"]
        return xs

    def lines(self, attempt: int = 1) -> list[Log]:
        return [event for event in self.events.get(attempt, []) if isinstance(event, Log)]


@dataclass
class Bench:
    """Runs attempts on fake runners."""

    node: NodeContext
    repository: FakeRepository

    def start(self, *script: list[Any], attempt: int = 1, root: int = 1) -> "Run":
        self.repository.scripts[attempt] = list(script)
        supervisor = AttemptSupervisor(Assignment(attempt, 1, root), self.node, claimed_at=lease_clock.now())
        return Run(supervisor, asyncio.create_task(supervisor.run()))

    async def run(self, *script: list[Any], attempt: int = 1, root: int = 1) -> AttemptEnd | None:
        await asyncio.wait_for(self.start(*script, attempt=attempt, root=root).task, 30)
        return self.repository.endings.get(attempt)

    def with_timing(self, **changes: float) -> None:
        self.node = replace(self.node, timing=replace(self.node.timing, **changes))

    def with_memory(self, cap: int) -> None:
        self.node = replace(self.node, memory_per_slot=cap)

    @property
    def pids(self) -> list[int]:
        return self.node.pool.pids


@dataclass
class Run:
    supervisor: AttemptSupervisor
    task: "asyncio.Task[None]"

    async def ended(self) -> None:
        await asyncio.wait_for(self.task, 30)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    repository = FakeRepository({}, LocalStore(tmp_path / "store"))
    pool = RunnerPool(tmp_path / "runners", 2, 60.0, 2**30, SecretMasker([SECRET]), FAKE)
    node = NodeContext(
        repository=repository,
        pool=pool,
        devices=Devices(),
        timing=QUICK,
        attempts=tmp_path / "attempts",
        checkpoints=repository.store.checkpoint_root,
        compile_caches=tmp_path / "caches",
        threads_per_slot=1,
        memory_per_slot=2**31,
    )
    yield Bench(node, repository)
    await pool.close()


@pytest.fixture(scope="session")
def broker_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real broker on its own socket."""
    with running_broker(tmp_path_factory.mktemp("broker")) as url:
        yield url


async def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never became true"
        await asyncio.sleep(0.01)
