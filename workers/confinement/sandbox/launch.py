"""Starts a command in a sandbox."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

from jobs.messages.sandbox import (
    Level,
    LevelState,
    Limits,
    SandboxRecord,
    SandboxRequest,
    choose_level,
    refusal,
)
from workers.confinement.sandbox import bubblewrap, cgroups, landlock, view
from workers.confinement.sandbox.plan import Plan
from workers.confinement.sandbox.process import SandboxProcess, Started
from workers.system.kernel import CAP_SYS_ADMIN, effective_capabilities

_RUN = "import sys; sys.path.insert(0, sys.argv[1]); from workers.confinement.sandbox.stages import main; main(int(sys.argv[2]), sys.argv[3])"  # noqa: E501  one argument of Python
# Seconds between SIGXCPU, which names the limit, and SIGKILL.
CPU_GRACE = 5
SHARED_MEMORY_SHARE = 4
"""The memory of /dev/shm is a quarter of that of the sandbox, and counts as its memory."""
USER_NAME = "sandbox"

type Stream = int | IO[bytes] | None


class Owner(NamedTuple):
    """One run's exclusive user, and its group. A worker that is root claims one for each run."""

    uid: int
    gid: int


class SandboxRefused(Exception):
    """The machine offers no level that is strong enough. The text is the reason."""


class Streams(NamedTuple):
    """The standard streams for a command, as `subprocess.Popen` takes them, and further open files."""

    stdin: Stream = subprocess.DEVNULL
    stdout: Stream = None
    stderr: Stream = None
    keep: tuple[int, ...] = ()


_INHERITED = Streams()
type Starter = Callable[[Plan, Streams], Started]
"""Carries out a plan: the process that it returns is the one outside of the sandbox."""


def spawn(plan: Plan, streams: Streams) -> Started:
    """Carry out a plan in a new interpreter. It is killed when the *thread* that started it ends."""
    with tempfile.TemporaryFile() as file:
        plan.write(file.fileno())
        return subprocess.Popen(  # noqa: S603  all parts are this program's own
            [*_entering(), str(file.fileno()), "outer"],
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr,
            pass_fds=(file.fileno(), *streams.keep),
            env={},
            cwd="/",
            start_new_session=True,
        )


def _entering() -> list[str]:
    """Return the command line that calls `stages.main`, without its arguments."""
    return [os.path.realpath(sys.executable), "-I", "-S", "-c", _RUN, str(view.CODE_ROOT)]


def launch(
    request: SandboxRequest,
    command: Sequence[str],
    states: Sequence[LevelState],
    *,
    owner: Owner | None = None,
    streams: Streams = _INHERITED,
    scratch: Path | None = None,
    start: Starter = spawn,
) -> SandboxProcess:
    """Start a command at the strongest level that the machine offers.

    Args:
        request: its sandbox.
        command: the program and its arguments.
        states: this machine's levels, see `levels.find_levels`.
        owner: its user, if the worker is root. The writable folders must be open to it.
        streams: its streams.
        scratch: the folder in which its temporary folder is made, so that it can be deleted after a crash of
            the worker; by default the system's.
        start: starts the process; `spawn` by default.

    Raises:
        SandboxRefused: no offered level reaches the request's minimum.
        ValueError: the worker is root and there is no owner, or it is not and there is one.
        OSError: a requested folder does not exist, or no process could be started.
    """
    level = choose_level(states, request.minimum)
    if level is None:
        raise SandboxRefused(refusal(states, request.minimum))
    missing = tuple(state for state in states if state.level != level and state.reaches(level))
    return launch_at(
        level, request, command, owner=owner, streams=streams, scratch=scratch, missing=missing, start=start
    )


def launch_at(
    level: Level,
    request: SandboxRequest,
    command: Sequence[str],
    *,
    owner: Owner | None = None,
    streams: Streams = _INHERITED,
    scratch: Path | None = None,
    missing: tuple[LevelState, ...] = (),
    start: Starter = spawn,
) -> SandboxProcess:
    """Start a command at one level, whether or not the machine offers others. See `launch`."""
    if (owner is None) == (os.geteuid() == 0):
        raise ValueError("a worker that is root needs a user for each run, and no other worker can have one")
    for path in (*request.readable, *request.writable, *request.devices, request.folder):
        os.stat(path)  # noqa: PTH116  only whether it exists
    with ExitStack() as undo:
        temporary = Path(tempfile.mkdtemp(prefix="trainyard-run-", dir=scratch))
        undo.callback(shutil.rmtree, temporary, ignore_errors=True)
        home = temporary / "home"
        home.mkdir(mode=0o700)
        if owner is not None:
            for folder in (temporary, home):
                os.chown(folder, *owner)
        group = _control_group(request.limits)
        if group is not None:
            undo.callback(group.rmdir)
        plan = _plan(level, request, command, owner, temporary, streams, group)
        started = start(plan, streams)
        undo.pop_all()
    return SandboxProcess(started, _record(plan, request, missing), temporary, group)


def _bubblewrap() -> str:
    program = bubblewrap.find()
    if program is None:
        raise FileNotFoundError("bubblewrap is not installed")
    return program


def _plan(
    level: Level,
    request: SandboxRequest,
    command: Sequence[str],
    owner: Owner | None,
    temporary: Path,
    streams: Streams,
    group: Path | None,
) -> Plan:
    """Return the steps for the started process."""
    own_root = level is Level.BUBBLEWRAP
    version = landlock.version() if level is not Level.PROCESS else 0
    if level is Level.LANDLOCK and not version:
        raise NotImplementedError("the kernel has no Landlock")
    paths = (request.readable, request.writable, str(temporary), request.devices)
    privileged = owner is not None and bool(effective_capabilities() >> CAP_SYS_ADMIN & 1)
    shared_memory = max(1, request.limits.memory_of_all // SHARED_MEMORY_SHARE)
    bubblewrap_program = (
        bubblewrap.command_line(
            _bubblewrap(), view.mounts(*paths), _entering(),
            network=request.network, privileged=privileged, shared_memory=shared_memory,
        )
        if own_root
        else ()
    )  # fmt: skip
    return Plan(
        level=level,
        command=list(command),
        folder=request.folder,
        environment=_environment(request.environment, view.TEMPORARY[0] if own_root else str(temporary)),
        parent=os.getpid(),
        uid=None if owner is None else owner.uid,
        gid=None if owner is None else owner.gid,
        privileged=privileged,
        program=bubblewrap_program,
        network=request.network,
        ports=list(request.ports) if request.network and request.ports else None,
        landlock=view.landlock_rules(*paths) if level is Level.LANDLOCK else None,
        landlock_version=version if level is Level.LANDLOCK or request.network else 0,
        domain=version if own_root and owner is None else 0,
        seccomp=None if level is Level.PROCESS else _filter(level, request, owner, version),
        limits=_limits(request.limits, gpus=bool(request.devices)),
        threads=request.limits.threads
        if owner is not None or (own_root and _counts_in_namespace())
        else None,
        cgroup=None if group is None else str(group),
        keep=list(streams.keep),
    )


def _counts_in_namespace() -> bool:
    """Return whether the kernel counts threads for each user namespace (Linux 5.14), not for a user alone."""
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return release is not None and tuple(map(int, release.groups())) >= (5, 14)


def _filter(level: Level, request: SandboxRequest, owner: Owner | None, version: int) -> dict[str, bool]:
    """Return the fields for `seccomp.Options`."""
    in_view_of_machine = level is Level.LANDLOCK
    return {
        # A network of its own has only the loopback interface.
        "internet": request.network or not in_view_of_machine,
        # Landlock does not restrict sockets that have a path, such as that of a broker or a database.
        "local": not in_view_of_machine,
        "keep_group": in_view_of_machine and owner is None,
        "shared_user": in_view_of_machine and owner is None,
        "truncate": not in_view_of_machine or version >= 3,
        "datagrams": not (request.network and request.tcp_only),
    }


def _environment(requested: Mapping[str, str], temporary: str) -> dict[str, str]:
    fixed = {"HOME": f"{temporary}/home", "TMPDIR": temporary, "USER": USER_NAME, "LOGNAME": USER_NAME}
    return {"PATH": os.defpath, **requested, **fixed}


def _limits(limits: Limits, *, gpus: bool) -> list[tuple[str, int, int]]:
    memory = limits.process_memory or limits.memory_of_all
    return [
        # The data segment, not the address space, of which JAX reserves far more than it uses. The driver of
        # a GPU reserves more than the machine has, maybe as writable: there, only the watch limits memory.
        *([] if gpus else [("RLIMIT_DATA", memory, memory)]),
        ("RLIMIT_FSIZE", limits.file_bytes, limits.file_bytes),
        ("RLIMIT_NOFILE", limits.open_files, limits.open_files),
        ("RLIMIT_CPU", limits.cpu_seconds, limits.cpu_seconds + CPU_GRACE),
        ("RLIMIT_CORE", 0, 0),
        ("RLIMIT_MSGQUEUE", 0, 0),
        ("RLIMIT_RTPRIO", 0, 0),
    ]


def _record(plan: Plan, request: SandboxRequest, missing: tuple[LevelState, ...]) -> SandboxRecord:
    return SandboxRecord(
        level=Level(plan.level),
        network=plan.network,
        devices=request.devices,
        ports=tuple(plan.ports or ()),
        uid=plan.uid,
        landlock=plan.landlock_version,
        seccomp=plan.seccomp is not None,
        cgroup=plan.cgroup is not None,
        limits=request.limits,
        missing=missing,
    )


def _control_group(limits: Limits) -> Path | None:
    try:
        return cgroups.create(cgroups.delegated(), limits)
    # The watch of the worker limits memory and processes in any case.
    except cgroups.NoCgroup:
        return None
