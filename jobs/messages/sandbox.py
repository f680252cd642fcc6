"""Declares the sandbox for user code: its levels, their guarantees, and a run's record.

`LEVELS` and `GUARANTEES` are the only source for these facts: `docs/sandbox.md` has the same table, and a
test compares them. `workers/confinement/sandbox` starts such runs.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from jobs.spec.base import Frozen

MIB = 2**20
THREADS_PER_PROCESS = 64
"""The kernel counts threads and not processes. Libraries start one for each core."""


class Level(StrEnum):
    """How a run is separated from the rest of the machine."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    PROCESS = "process"

    @property
    def strength(self) -> int:
        """A higher number is a stronger level."""
        return -LEVELS_IN_ORDER.index(self)

    def reaches(self, minimum: "Level") -> bool:
        """Return whether this level is at least as strong as `minimum`."""
        return self.strength >= minimum.strength


LEVELS_IN_ORDER = tuple(Level)
"""The strongest first."""
DEFAULT_MINIMUM = Level.LANDLOCK
FORMER_LEVEL = "namespaces"
"""A level in earlier releases, with the guarantees of bubblewrap, which has replaced it."""
type RecordedLevel = Level | Literal["namespaces"]
"""The level in a stored record: an earlier release's level is kept as it was."""
INSTALL_BUBBLEWRAP = "install the package bubblewrap, such as by `apt install bubblewrap`"


def present_level(recorded: str) -> Level:
    """Return the level that gives the guarantees of a recorded one.

    Raises:
        ValueError: no release had such a level.
    """
    return Level.BUBBLEWRAP if recorded == FORMER_LEVEL else Level(recorded)


class LevelInfo(NamedTuple):
    """Texts about a level for people."""

    label: str
    summary: str


LEVELS: Mapping[Level, LevelInfo] = {
    Level.BUBBLEWRAP: LevelInfo(
        "bubblewrap",
        "The program bubblewrap gives the run its own view of files, network, processes and IPC.",
    ),
    Level.LANDLOCK: LevelInfo(
        "Landlock and seccomp",
        "The run is in the view of the machine; the kernel refuses access to the rest.",
    ),
    Level.PROCESS: LevelInfo(
        "process", "A process group with limits. Only a user of its own keeps it from files of others."
    ),
}


class Enforcement(StrEnum):
    """What makes a guarantee hold."""

    KERNEL = "kernel"
    OWN_USER = "own user"
    NETWORK_RULES = "Landlock 4"
    SIGNAL_RULES = "own user or Landlock 6"
    WATCHED = "watched"
    NO = "no"


ENFORCEMENTS: Mapping[Enforcement, str] = {
    Enforcement.KERNEL: "the kernel refuses it at once",
    Enforcement.OWN_USER: (
        "only if the worker runs as root, so that the run has a user id of its own; files that are open to "
        "all users of the machine stay open"
    ),
    Enforcement.NETWORK_RULES: "only with Landlock of version 4 or later (Linux 6.7)",
    Enforcement.SIGNAL_RULES: "with a user id of its own, or Landlock of version 6 or later (Linux 6.12)",
    Enforcement.WATCHED: "the worker measures it several times a second and ends the run",
    Enforcement.NO: "not guaranteed",
}


class Guarantee(StrEnum):
    """One thing that code in a sandbox cannot do."""

    READ = "read"
    WRITE = "write"
    NETWORK = "network"
    PORTS = "ports"
    SIGNAL = "signal"
    MEMORY_OF_OTHERS = "memory_of_others"
    SEE_PROCESSES = "see_processes"
    PRIVILEGES = "privileges"
    CALLS = "calls"
    ENVIRONMENT = "environment"
    DESCRIPTORS = "descriptors"
    SURVIVE = "survive"
    OUTLIVE = "outlive"
    LIMITS = "limits"
    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"
    OUTPUT = "output"


class GuaranteeInfo(NamedTuple):
    """A guarantee for people, and what makes it hold at each level, the strongest level first."""

    text: str
    by_level: tuple[Enforcement, Enforcement, Enforcement]

    def at(self, level: Level) -> Enforcement:
        """Return what makes it hold at a level."""
        return self.by_level[LEVELS_IN_ORDER.index(level)]


_KERNEL, _OWN, _WATCHED, _NO = Enforcement.KERNEL, Enforcement.OWN_USER, Enforcement.WATCHED, Enforcement.NO
_EVERYWHERE = (_KERNEL,) * 3
_WATCHED_EVERYWHERE = (_WATCHED,) * 3
_PORTS, _SIGNALS = Enforcement.NETWORK_RULES, Enforcement.SIGNAL_RULES

GUARANTEES: Mapping[Guarantee, GuaranteeInfo] = {
    Guarantee.READ: GuaranteeInfo(
        "reads no files but those of the request and of the system: no artifacts of other projects, no keys, "
        "no database",
        (_KERNEL, _KERNEL, _OWN),
    ),
    Guarantee.WRITE: GuaranteeInfo(
        "writes only into the folders that the request opens for it", (_KERNEL, _KERNEL, _OWN)
    ),
    Guarantee.NETWORK: GuaranteeInfo(
        "without network: connects to no host, not to the dashboard or the broker of this machine either",
        (_KERNEL, _KERNEL, _NO),
    ),
    Guarantee.PORTS: GuaranteeInfo(
        "with network: connects by TCP only to the ports of the request, on this machine too, and listens at "
        "no port that it chooses",
        (_PORTS, _PORTS, _NO),
    ),
    Guarantee.SIGNAL: GuaranteeInfo("sends no signals to other processes", (_KERNEL, _SIGNALS, _OWN)),
    Guarantee.MEMORY_OF_OTHERS: GuaranteeInfo(
        "neither traces other processes nor reads their memory or environment",
        (_KERNEL, _KERNEL, _OWN),
    ),
    Guarantee.SEE_PROCESSES: GuaranteeInfo("does not see which other processes exist", (_KERNEL, _NO, _NO)),
    Guarantee.PRIVILEGES: GuaranteeInfo(
        "gains no privileges: becomes no other user, and set-user-ID programs have no effect", _EVERYWHERE
    ),
    Guarantee.CALLS: GuaranteeInfo(
        "uses no rarely used parts of the kernel, such as BPF, keys, io_uring and namespaces",
        (_KERNEL, _KERNEL, _NO),
    ),
    Guarantee.ENVIRONMENT: GuaranteeInfo("has only the environment variables of the request", _EVERYWHERE),
    Guarantee.DESCRIPTORS: GuaranteeInfo("has no open files of the worker but its own streams", _EVERYWHERE),
    Guarantee.SURVIVE: GuaranteeInfo(
        "all its processes end with it, also those that left its session", (_KERNEL, _SIGNALS, _OWN)
    ),
    Guarantee.OUTLIVE: GuaranteeInfo("all its processes end when the worker dies", (_KERNEL, _SIGNALS, _OWN)),
    Guarantee.LIMITS: GuaranteeInfo(
        "keeps the limits of each process: memory, size of a file, open files, CPU time; no core files",
        _EVERYWHERE,
    ),
    Guarantee.MEMORY: GuaranteeInfo("the memory of all its processes together", _WATCHED_EVERYWHERE),
    Guarantee.PROCESSES: GuaranteeInfo(
        "the number of its processes; the kernel limits threads where it counts them for this run alone",
        _WATCHED_EVERYWHERE,
    ),
    Guarantee.DISK: GuaranteeInfo(
        "the disk space of its files, also of deleted ones that are still open", _WATCHED_EVERYWHERE
    ),
    Guarantee.OUTPUT: GuaranteeInfo("the bytes that it prints", _WATCHED_EVERYWHERE),
}


class Limits(Frozen):
    """The limits of a sandbox. The fields `*_of_all` are watched, the others are set in the kernel."""

    memory_of_all: int = Field(ge=1, description="bytes of memory of all processes together")
    processes_of_all: int = Field(ge=1, description="number of processes at one time")
    disk_of_all: int = Field(ge=1, description="bytes in the writable and temporary folders")
    output_of_all: int = Field(ge=1, description="bytes on standard output and standard error")
    file_bytes: int = Field(ge=1, description="size of each file")
    open_files: int = Field(default=1024, ge=16, description="of each process")
    cpu_seconds: int = Field(ge=1, description="CPU time of each process")
    process_memory: int | None = Field(
        default=None, ge=1, description="bytes that each process may allocate; `memory_of_all` without it"
    )

    @property
    def threads(self) -> int:
        """The most threads in all processes, which the kernel counts for a user or a user namespace."""
        return self.processes_of_all * THREADS_PER_PROCESS


class SandboxRequest(Frozen):
    """The sandbox that a run needs. All paths are absolute, and the same inside as outside.

    Attributes:
        minimum: the weakest level at which the run may start.
        readable: files and folders that it reads, beside the system's and Python's.
        writable: folders that it reads and changes.
        folder: the working folder, in one of them.
        devices: device files that it uses, such as a GPU's.
        network: whether it may connect to other hosts.
        ports: with network, the only TCP ports that it may connect to; empty for all.
        tcp_only: with network, it may use nothing but TCP, so it cannot look up names either.
        environment: all its variables, apart from those that name its home and its temporary folder.
        limits: the run's limits.
    """

    minimum: Level = DEFAULT_MINIMUM
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    folder: str
    devices: tuple[str, ...] = ()
    network: bool = False
    ports: tuple[int, ...] = (80, 443)
    tcp_only: bool = False
    environment: Mapping[str, str] = Field(default_factory=dict)
    limits: Limits

    @field_validator("readable", "writable", "devices", "folder")
    @classmethod
    def _check_paths(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        for path in (value,) if isinstance(value, str) else value:
            parts = PurePosixPath(path)
            if not parts.is_absolute() or ".." in parts.parts or len(parts.parts) < 2 or "\0" in path:
                raise ValueError(f'{path!r}: give an absolute path below "/", without ".."')
        return value

    @field_validator("ports")
    @classmethod
    def _check_ports(cls, ports: tuple[int, ...]) -> tuple[int, ...]:
        for port in ports:
            if not 0 < port < 2**16:
                raise ValueError(f"{port} is not a port: give numbers from 1 to 65535")
        return ports

    @field_validator("environment")
    @classmethod
    def _check_environment(cls, environment: Mapping[str, str]) -> Mapping[str, str]:
        for name, value in environment.items():
            if not name or "=" in name or "\0" in name + value:
                raise ValueError(f"{name!r} cannot be an environment variable")
        return environment

    @model_validator(mode="after")
    def _check_folder(self) -> Self:
        folder = PurePosixPath(self.folder)
        if not any(folder.is_relative_to(outer) for outer in (*self.readable, *self.writable)):
            raise ValueError(f"the working folder {self.folder!r} is in no readable or writable folder")
        # An earlier run could have replaced it by a link to a file that this one must not read.
        for path in self.readable:
            if any(PurePosixPath(path).is_relative_to(outer) for outer in self.writable):
                raise ValueError(f"{path!r} is in a writable folder: it cannot be read-only")
        # For the same reason: an earlier run could replace the inner one by a link.
        for path in self.writable:
            if any(PurePosixPath(outer) in PurePosixPath(path).parents for outer in self.writable):
                raise ValueError(f"{path!r} is in another writable folder: name only the outer one")
        return self


class LevelState(Frozen):
    """Whether a machine offers a level, and why not."""

    level: RecordedLevel
    offered: bool
    reason: str = Field(default="", description="why it is not offered; empty if it is")

    def reaches(self, minimum: Level) -> bool:
        """Return whether its level is at least as strong as `minimum`; an earlier release's is not."""
        return isinstance(self.level, Level) and self.level.reaches(minimum)


class SandboxRecord(Frozen):
    """The sandbox that a run really had.

    Attributes:
        level: its level.
        network: whether it could connect to other hosts.
        devices: the device files of GPUs that it could use.
        ports: the TCP ports that it could connect to; empty if it had no network, or could use all.
        uid: the user id of this run alone; None if it had that of the worker.
        landlock: the version of Landlock that confined it; 0 for none.
        seccomp: whether a filter of kernel calls was set.
        cgroup: whether a control group limited memory and processes, beside the watch of the worker.
        limits: its limits.
        missing: the stronger levels that the machine did not offer.
    """

    level: RecordedLevel
    network: bool
    devices: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    uid: int | None = None
    landlock: int = 0
    seccomp: bool = False
    cgroup: bool = False
    limits: Limits
    missing: tuple[LevelState, ...] = ()

    def holds(self, guarantee: Guarantee) -> bool:
        """Return whether a guarantee held for this run."""
        enforcement = GUARANTEES[guarantee].at(present_level(self.level))
        if guarantee is Guarantee.NETWORK and self.network:
            return False
        # Without network there is no port to connect to.
        if guarantee is Guarantee.PORTS and not self.network:
            return self.holds(Guarantee.NETWORK)
        return {
            Enforcement.KERNEL: True,
            Enforcement.WATCHED: True,
            Enforcement.OWN_USER: self.uid is not None,
            Enforcement.NETWORK_RULES: self.landlock >= 4 and bool(self.ports),
            Enforcement.SIGNAL_RULES: self.uid is not None or self.landlock >= 6,
            Enforcement.NO: False,
        }[enforcement]


class Breach(StrEnum):
    """The limit at which the worker ended a run."""

    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"
    OUTPUT = "output"


class Ended(Frozen):
    """Why the worker ended a run, with a sentence for people."""

    breach: Breach
    used: int = Field(description="bytes, or number of processes")
    limit: int
    message: str


def choose_level(states: Iterable[LevelState], minimum: Level) -> Level | None:
    """Return the strongest offered level, or None if none reaches the minimum."""
    offered = [Level(state.level) for state in states if state.offered and state.reaches(minimum)]
    return max(offered, key=lambda level: level.strength, default=None)


def refusal(states: Iterable[LevelState], minimum: Level) -> str:
    """Return why a run does not start where no offered level reaches the minimum."""
    reasons = [
        f"{state.level}: {state.reason}" for state in states if state.reaches(minimum) and not state.offered
    ]
    return (
        f"code of users needs the sandbox level {minimum} or a stronger one, and this worker offers none "
        f"({'; '.join(reasons)})"
    )
