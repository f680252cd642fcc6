"""A box of GPUs on which work is placed again and again, with the worker that takes GPUs and its reports."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from jobs.placement.decision import decide
from jobs.placement.reservations import reserved_for_others
from jobs.placement.state import Decision, Reservation, Room, Running, State, Work
from jobs.queries.runs.gpus.box import Box, Wish
from jobs.spec.checks.gpu_memory import MemoryNeed
from tests.jobs.placement.situations import NOW, machine, running
from workers.supervise.attempt.devices import Devices

BOX = 1


@dataclass
class GpuRun:
    """Work that runs, with the GPUs that the worker has taken for it, and when it ends."""

    work: Work
    attempt: Running
    gpus: tuple[str, ...]
    ends: float


@dataclass
class GpuWorld:
    """One box.

    Attributes:
        gpus: how many it has.
        places: how many runs may share a GPU.
        rows: the reservations.
        now: the time.
        waiting: the work that waits.
        runs: the work that runs.
        done: the jobs that have ended, in order.
    """

    gpus: int
    places: int = 1
    rows: list[Reservation] = field(default_factory=list)
    now: float = NOW
    waiting: list[Work] = field(default_factory=list)
    runs: list[GpuRun] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    _started: int = 0

    def __post_init__(self) -> None:
        self.names = [f"gpu:{number}" for number in range(self.gpus)]
        self._devices = Devices({name: name for name in self.names}, places=self.places)
        self._reports: dict[str, list[int]] = {}

    @property
    def slots(self) -> int:
        """Return how many slots the box has."""
        return self.gpus * self.places

    def step(self, seconds: float, *, lasts: float, reports: bool = True) -> Decision:
        """End the runs whose time is over, decide, take GPUs for placed work, and let time pass.

        Args:
            seconds: how long until the next step.
            lasts: how long work runs that is placed now, if its own limit is not shorter.
            reports: whether the worker has reported since the last step which runs have which GPUs.
        """
        for run in [run for run in self.runs if run.ends <= self.now]:
            self.runs.remove(run)
            self.done.append(run.work.job)
            self._devices.give_back(run.gpus, run.attempt.key)
        if reports:
            self._reports = {name: [*runs] for name, runs in self._devices.attempts.items()}
        decision = decide(self.state())
        for placement in decision.placements:
            self._start(placement.work, lasts)
        placed = {placement.work.key for placement in decision.placements}
        self.waiting = [work for work in self.waiting if work.key not in placed]
        self.now += seconds
        return decision

    def state(self) -> State:
        """Return the state now."""
        attempts = {run.attempt.key: run.attempt.slots for run in self.runs}
        devices = [
            {"name": name, "kind": "H200", "attempts": self._reports.get(name, [])} for name in self.names
        ]
        box = Box(self.slots, devices, attempts=attempts)
        fitting: dict[Hashable, list[int]] = {}
        rooms: dict[Hashable, dict[int, Room]] = {}
        waiting = []
        for work in self.waiting:
            kept = frozenset(self.kept_from(work))
            wish = Wish(True, MemoryNeed(), work.slots, kept=kept)
            is_able = work.slots <= self.slots and box.has_enough(wish, runs=False)
            fitting[wish] = [BOX] if is_able else []
            if kept and (room := box.room(wish)) is not None:
                rooms[wish] = {BOX: room}
            waiting.append(replace(work, needs=wish, takes_devices=True))
        taken = sum(run.attempt.slots for run in self.runs)
        return State(
            now=self.now,
            waiting=waiting,
            machines=[machine(BOX, self.slots, free=self.slots - taken)],
            fitting=fitting,
            running=[run.attempt for run in self.runs],
            reservations=[row for row in self.rows if row.ends > self.now],
            rooms=rooms,
        )

    def kept_from(self, work: Work) -> set[str]:
        """Return the GPUs that are reserved for others while work would run."""
        rows = reserved_for_others(self.rows, work.person, work.project, work.seconds, self.now)
        return {gpu for row in rows for gpu in row.gpus}

    def _start(self, work: Work, lasts: float) -> None:
        self._started += 1
        active = [row for row in self.rows if row.begins <= self.now < row.ends]
        own = {gpu for row in active if row.is_for(work.person, work.project) for gpu in row.gpus}
        # It raises `NoFreeGpu` where the worker could not do as was decided.
        gpus = self._devices.take(work.slots, avoid=self.kept_from(work), prefer=own, attempt=self._started)
        attempt = running(
            work.job, key=self._started, person=work.person, slots=work.slots, started=self.now, machine=BOX
        )
        self.runs.append(GpuRun(work, attempt, gpus, self.now + min(lasts, work.seconds or lasts)))
