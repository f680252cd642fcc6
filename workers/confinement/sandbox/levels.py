"""Finds the sandbox levels that this machine really offers, by running a small program at each."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Container, Mapping
from contextlib import ExitStack
from pathlib import Path

from jobs.messages.sandbox import (
    FORMER_LEVEL,
    INSTALL_BUBBLEWRAP,
    MIB,
    Level,
    LevelState,
    Limits,
    SandboxRequest,
)
from workers.confinement.sandbox.bubblewrap import find as find_bubblewrap
from workers.confinement.sandbox.launch import Owner, Streams, launch_at
from workers.system.kernel import effective_capabilities

# Seconds. A program at one level takes a fifth of a second on an idle machine. A worker's finding is valid
# until it starts again; on a busy machine, 30 s were too few.
TIMEOUT = 120.0
CAP_SYS_PTRACE = 19
VARIABLE = "TRAINYARD_SANDBOX_LEVELS"
"""The only levels that a worker tries, such as `landlock,process`; all by default."""
_LIMITS = Limits(
    memory_of_all=512 * MIB, processes_of_all=4, disk_of_all=MIB, output_of_all=MIB, file_bytes=MIB,
    cpu_seconds=10,
)  # fmt: skip
_PROGRAM = """
import json, os, socket, sys
private, port, folder = sys.argv[1:]
def possible(action):
    try:
        action()
    except OSError:
        return False
    return True
def write(path):
    with open(path, "w") as file:
        file.write("x")
possible(lambda: write(private + ".new"))
print(json.dumps({
    "write": possible(lambda: write(os.path.join(folder, "probe"))),
    "read": possible(lambda: open(private).close()),
    "network": possible(lambda: socket.create_connection(("127.0.0.1", int(port)), timeout=5).close()),
    "user": os.getuid(),
}))
"""


class _Missing(Exception):
    """A level is not offered. The text is the reason."""


def find_levels(
    claim: Callable[[], Owner] | None = None,
    python: str = sys.executable,
    *,
    parent: Path | None = None,
    allowed: Container[Level] = tuple(Level),
) -> tuple[LevelState, ...]:
    """Return all levels, the strongest first, and whether this machine offers each.

    Args:
        claim: returns a user that has no processes. A worker that is root needs it.
        python: the interpreter that runs use.
        parent: the folder in which runs have theirs: they must be able to reach it.
        allowed: the levels that the operator allows.
    """
    owner = None if claim is None else claim()
    return tuple(
        _find(level, owner, python, parent)
        if level in allowed
        else LevelState(level=level, offered=False, reason=f"{VARIABLE} leaves it out")
        for level in Level
    )


def allowed_levels(environment: Mapping[str, str] = os.environ) -> tuple[Level, ...]:
    """Return the levels that the operator allows: all, unless a variable names some.

    Raises:
        ValueError: it names something else.
    """
    words = environment.get(VARIABLE, "").replace(",", " ").split()
    if not words:
        return tuple(Level)
    try:
        return tuple(map(Level, words))
    except ValueError:
        message = f"{VARIABLE}={environment[VARIABLE]!r}: name levels, of {', '.join(Level)}"
        if FORMER_LEVEL in words:
            message += f"; in place of {FORMER_LEVEL}, {INSTALL_BUBBLEWRAP}"
        raise ValueError(message) from None


def _find(level: Level, owner: Owner | None, python: str, parent: Path | None) -> LevelState:
    try:
        _try(level, owner, python, parent)
    except subprocess.TimeoutExpired:
        reason = f"a program took more than {TIMEOUT:.0f} s to end; start the worker again"
        return LevelState(level=level, offered=False, reason=reason)
    except (_Missing, OSError, NotImplementedError, ValueError) as error:
        return LevelState(level=level, offered=False, reason=str(error))
    return LevelState(level=level, offered=True)


def _try(level: Level, owner: Owner | None, python: str, parent: Path | None) -> None:
    """Run a program that must be able to work, and must not be able to leave.

    Raises:
        _Missing: the program could not work, or could leave.
        OSError: it could not be started.
    """
    if owner is not None and not effective_capabilities() >> CAP_SYS_PTRACE & 1:
        raise _Missing(
            "the worker is root without CAP_SYS_PTRACE, so it could not measure runs of other users"
        )
    if level is Level.BUBBLEWRAP and find_bubblewrap() is None:
        raise _Missing(f"bubblewrap is not installed; {INSTALL_BUBBLEWRAP}")
    with ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="trainyard-probe-", dir=parent)
        folder = Path(stack.enter_context(temporary))
        folder.chmod(0o711)
        writable, private = folder / "own", folder / "private"
        writable.mkdir(mode=0o700)
        if owner is not None:
            os.chown(writable, *owner)
        private.write_text("secret")
        private.chmod(0o600)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listener.getsockname()[1]
        program = [python, "-I", "-S", "-c", _PROGRAM, str(private), str(port), str(writable)]
        facts = _run(level, owner, writable, program)
        # A folder of the same name in the sandbox may be its own.
        facts["outside"] = (folder / "private.new").exists()
    _judge(level, owner, facts)


def _judge(level: Level, owner: Owner | None, facts: dict[str, int]) -> None:
    if not facts["write"]:
        raise _Missing("a program could not write into its own folder")
    if owner is not None and facts["user"] != owner.uid:
        raise _Missing("a program had another user than its own")
    # At the level `process`, only a user of its own keeps it from the files of others.
    separated = level is not Level.PROCESS
    if (separated or owner is not None) and (facts["read"] or facts["outside"]):
        raise _Missing("a program could read or write a file of the worker")
    if separated and facts["network"]:
        raise _Missing("a program could connect to a port of this machine")


def _run(level: Level, owner: Owner | None, folder: Path, command: list[str]) -> dict[str, int]:
    request = SandboxRequest(writable=(str(folder),), folder=str(folder), limits=_LIMITS)
    streams = Streams(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    scratch = folder.parent
    with launch_at(level, request, command, owner=owner, streams=streams, scratch=scratch) as process:
        status = process.wait(TIMEOUT)
        assert process.stdout is not None  # noqa: S101  it is a pipe
        assert process.stderr is not None  # noqa: S101
        output, errors = process.stdout.read(), process.stderr.read().decode(errors="replace")
    if status != 0:
        raise _Missing((errors.strip().splitlines() or [f"a program ended with status {status}"])[-1][:300])
    facts: dict[str, int] = json.loads(output)
    return facts
