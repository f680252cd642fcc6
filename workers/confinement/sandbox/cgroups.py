"""Limits memory and processes of a sandbox by a control group (cgroup v2), where one is delegated."""

import contextlib
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from jobs.messages.sandbox import Limits

VARIABLE = "TRAINYARD_SANDBOX_CGROUP"
"""The folder of a delegated control group without processes, in which each sandbox gets a group."""
_NEEDED = ("memory", "pids")
_PREFIX = "sandbox-"
MIN_AGE = 60.0
"""Seconds after which an empty group is one that a dead worker left. A younger one may still be in use."""


class NoCgroup(Exception):
    """Control groups cannot be used. The text is the reason."""


def delegated(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the delegated control group, with its controllers enabled for groups below it.

    Raises:
        NoCgroup: there is none, or it cannot be used.
    """
    if not (name := environment.get(VARIABLE)):
        raise NoCgroup(f"{VARIABLE} is not set")
    folder = Path(name)
    try:
        offered = (folder / "cgroup.controllers").read_text().split()
        if missing := [controller for controller in _NEEDED if controller not in offered]:
            raise NoCgroup(f"{folder} has no controller for {' and '.join(missing)}")
        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{controller}" for controller in _NEEDED))
    except OSError as error:
        raise NoCgroup(f"{folder}: {error.strerror}") from error
    return folder


def create(parent: Path, limits: Limits) -> Path:
    """Create the control group for a sandbox.

    Raises:
        NoCgroup: the kernel refused.
    """
    folder = parent / f"{_PREFIX}{secrets.token_hex(8)}"
    try:
        folder.mkdir()
        (folder / "memory.max").write_text(str(limits.memory_of_all))
        # The controller counts threads.
        (folder / "pids.max").write_text(str(limits.threads))
        with contextlib.suppress(OSError):  # without swap
            (folder / "memory.swap.max").write_text("0")
    except OSError as error:
        with contextlib.suppress(OSError):
            folder.rmdir()
        raise NoCgroup(f"{folder}: {error.strerror}") from error
    return folder


def remove_left(parent: Path) -> int:
    """Remove the groups without processes that dead workers have left; return their number."""
    removed, too_young = 0, time.time() - MIN_AGE
    for folder in parent.glob(f"{_PREFIX}*"):
        # The kernel refuses to remove a group that has processes.
        with contextlib.suppress(OSError):
            if folder.stat().st_mtime < too_young:
                folder.rmdir()
                removed += 1
    return removed
