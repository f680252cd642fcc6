"""Declares the state on which a placement is decided, and the decision."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

type Person = int | None
"""A person's key; None for the jobs that the installation creates itself."""


@dataclass(frozen=True, slots=True)
class Work:
    """A job, or a batch of trials in a search, that waits for slots.

    Attributes:
        key: its number in the list of waiting work.
        job: the job's key.
        person: who submitted the job.
        project: the job's project.
        priority: higher values come first.
        queued: since when it waits, in seconds.
        number: the first trial's number; 0 without trials.
        slots: how many slots it needs, all on one machine.
        pool: its pool.
        needs: equal for works that the same machines can run.
        seconds: the longest time that it may run; None without a limit.
        refusal: why it waits although slots may be free, such as packages that are being installed.
        most: how many attempts of its job may run at once; None without a limit.
        most_reason: the reason to wait at that number.
        near: the machines that have its checkpoints, which it prefers.
        near_reason: why it waits for one of them; empty if it takes any machine.
        note: a sentence on devices that are not free for it for another reason than slots; else empty.
        takes_devices: whether its run takes devices of machines that have some.
    """

    key: int
    job: int
    person: Person
    project: int | None
    priority: int
    queued: float
    number: int
    slots: int
    pool: str
    needs: Hashable
    seconds: float | None = None
    refusal: str = ""
    most: int | None = None
    most_reason: str = ""
    near: frozenset[int] = frozenset()
    near_reason: str = ""
    note: str = ""
    takes_devices: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """A worker that accepts work.

    Attributes:
        key: the worker's key.
        name: its name.
        pool: its pool.
        slots: how many slots it has.
        free: how many of them can be given out now.
        closed: why it takes nothing at the moment although work would fit, such as a full disk; else empty.
        note: a sentence on slots that are not free for another reason than a job; else empty.
    """

    key: int
    name: str
    pool: str
    slots: int
    free: int
    closed: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Room:
    """The devices of a machine for one kind of work, where not all of them are alike or free for it.

    Attributes:
        free: for how many slots it has such devices that are free.
        least: how many must be free for the work.
        frees: for how many slots running work frees such devices when it ends, by `Running.key`.
    """

    free: int
    least: int
    frees: Mapping[int, int] = field(default_factory=dict)

    def slots(self, free: int, placed: int = 0, leaving: Sequence["Running"] = ()) -> int:
        """Return how many of a machine's free slots the work can use.

        Args:
            free: the machine's free slots.
            placed: how many slots got devices since `free` of this object was counted.
            leaving: running work that has left by then; the machine's free slots have its slots already.
        """
        freed = sum(self.frees.get(attempt.key, 0) for attempt in leaving) if leaving else 0
        left = max(self.free - placed + freed, 0)
        return free if left >= self.least else min(free, left)


@dataclass(frozen=True, slots=True)
class Running:
    """Work that holds slots.

    Attributes:
        key: the attempt's key.
        job: the job's key.
        person: who submitted the job.
        project: the job's project.
        machine: the worker's key.
        slots: how many slots it holds.
        priority: the job's priority.
        started: when it started, in seconds.
        resumes: whether it can continue from a checkpoint.
        leaves_for: the job for which it was asked to free its slots; None if it was not.
    """

    key: int
    job: int
    person: Person
    project: int | None
    machine: int
    slots: int
    priority: int
    started: float
    resumes: bool = False
    leaves_for: int | None = None


@dataclass(frozen=True, slots=True)
class Reservation:
    """Slots that are kept for a person or a project for some time.

    Attributes:
        key: its number.
        pool: the pool.
        machine: the worker's name; empty for the whole pool.
        slots: how many slots; None for all. Those of reserved GPUs are counted.
        begins: the first second.
        ends: the second after the last one.
        person: for whom it is, if it is for a person.
        project: for which project it is, if it is for one.
        gpus: the names of GPUs of the machine; empty if any slots will do.
    """

    key: int
    pool: str
    machine: str
    slots: int | None
    begins: float
    ends: float
    person: int | None
    project: int | None
    gpus: tuple[str, ...] = ()

    def is_for(self, person: Person, project: int | None) -> bool:
        """Return whether jobs of this person in this project may use the slots."""
        if self.project is not None:
            return self.project == project
        return self.person is not None and self.person == person


@dataclass(frozen=True, slots=True)
class Limit:
    """The most slots that a person or a project may hold at once, and the name in sentences."""

    slots: int
    name: str


@dataclass(frozen=True)
class State:
    """All that a placement depends on.

    Attributes:
        now: the current time, in seconds.
        waiting: the work that waits.
        machines: the machines that accept work.
        fitting: the machines that can run work with these needs, by `Work.needs`; the first ones are named.
        running: the work that holds slots.
        reservations: those that have not ended.
        of_person: limits of persons.
        of_project: limits of projects.
        used: decayed slot-seconds of persons, by pool and person; see `shares`.
        preempting: the pools in which higher priorities preempt lower ones.
        rooms: the devices of machines for works with these needs, by `Work.needs` and machine. Where there is
            none, the free slots decide.
    """

    now: float
    waiting: Sequence[Work]
    machines: Sequence[Machine]
    fitting: Mapping[Hashable, Sequence[int]]
    running: Sequence[Running] = ()
    reservations: Sequence[Reservation] = ()
    of_person: Mapping[int, Limit] = field(default_factory=dict)
    of_project: Mapping[int, Limit] = field(default_factory=dict)
    used: Mapping[tuple[str, Person], float] = field(default_factory=dict)
    preempting: frozenset[str] = frozenset()
    rooms: Mapping[Hashable, Mapping[int, Room]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placement:
    """Work that gets slots on a machine."""

    work: Work
    machine: int


@dataclass(frozen=True, slots=True)
class Preemption:
    """Running work that writes a checkpoint and waits again, so that a job gets its slots."""

    running: Running
    work: Work


@dataclass
class Decision:
    """What follows from a state.

    Attributes:
        placements: in the order in which they were decided.
        reasons: why work waits, by `Work.key`.
        preemptions: running work that is asked to free its slots.
    """

    placements: list[Placement] = field(default_factory=list)
    reasons: dict[int, str] = field(default_factory=dict)
    preemptions: list[Preemption] = field(default_factory=list)
