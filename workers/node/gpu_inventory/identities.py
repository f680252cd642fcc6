"""Finds out which processes on a GPU this worker has started, and the user and program of the others.

Command lines are never read: they may contain secrets.
"""

import functools
import os
import pwd
from pathlib import Path
from typing import NamedTuple

import psutil

FIRST_NAMESPACE = 0xEFFFFFFC
"""The kernel's number of the namespace of processes outside of all containers."""
LONGEST = 64
"""In characters: users and programs are named by others."""


class Identity(NamedTuple):
    """A process that others have started.

    Attributes:
        started: when, in seconds since 1970; 0 if it is unknown. With the pid it identifies the process.
        user: its user's name; empty if it is unknown, as for processes outside of a container.
        program: the name of its program; empty if it is unknown.
        same_user: whether it has the user of this worker.
    """

    started: float = 0.0
    user: str = ""
    program: str = ""
    same_user: bool = False


UNKNOWN = Identity()


def line_of(pid: int) -> list[int]:
    """Return a process and its ancestors, the process first; empty if this machine shows no such process."""
    line = []
    try:
        process: psutil.Process | None = psutil.Process(pid)
        while process is not None and process.pid not in line:
            line.append(process.pid)
            process = process.parent()
    except psutil.Error:  # it ended meanwhile
        pass
    return line


def identify(pid: int) -> Identity:
    """Return who runs a process. Reads /proc and the list of users: call it in a thread."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            started, uid = process.create_time(), process.uids().effective
        program = Path(f"/proc/{pid}/comm").read_text(errors="replace")
    except (psutil.Error, OSError):
        return UNKNOWN
    return Identity(started, printable(_user(uid)), printable(program.strip()), uid == os.geteuid())


def sees_all_processes() -> bool:
    """Return whether numbers of processes from the driver are those of this process's /proc."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino == FIRST_NAMESPACE
    except OSError:
        return False


def printable(text: str) -> str:
    """Return a name that others chose without characters that could mislead a reader."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)[:LONGEST]


# Users are few, and a directory service may take a while for each.
@functools.lru_cache(maxsize=1024)
def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
