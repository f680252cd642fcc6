"""Finds out which sandboxes a node offers to runs with user code."""

import os
import shutil
import sys
import threading
from dataclasses import replace

from jobs.messages.sandbox import Level, LevelState
from workers.confinement.isolation.access import Isolation
from workers.confinement.isolation.check import IsolationState, parents_of
from workers.confinement.sandbox.launch import Owner
from workers.confinement.sandbox.levels import find_levels
from workers.node.node_folder import NodeFolder
from workers.node.runner_isolation import folders_of, isolate
from workers.node.settings import NodeSettings

LOW_PRIORITY = 10


def find(settings: NodeSettings, folder: NodeFolder, isolation: Isolation | None) -> tuple[LevelState, ...]:
    """Return all levels, the strongest first, by trying them. It takes seconds: call it in a thread.

    Args:
        settings: the node's.
        folder: the node's.
        isolation: gives runners their own users.
    """
    folder.runners.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.geteuid() != 0:
        return find_levels(parent=folder.runners, allowed=settings.sandbox_levels)
    if isolation is None:
        return none_offered("the worker is root, and its runners have no users of their own")
    try:
        # At the levels in the view of the machine, runs have to reach their folders.
        replace(isolation, parents=parents_of(folders_of(settings, folder))).open_parents()
        user = isolation.users.claim()
    except OSError as error:
        return none_offered(str(error))
    try:
        owner = Owner(user.uid, isolation.users.group)
        return find_levels(lambda: owner, parent=folder.runners, allowed=settings.sandbox_levels)
    finally:
        user.end_processes()
        user.release()


def check(settings: NodeSettings) -> tuple[IsolationState, tuple[LevelState, ...]]:
    """Return how a node with these settings would isolate its runners, and its sandbox levels."""
    folder = NodeFolder.claim_numbered(settings.home, f"check-{os.getpid()}")
    try:
        isolation, state = isolate(settings, folder)
        return state, find(settings, folder, isolation)
    finally:
        shutil.rmtree(folder.root, ignore_errors=True)


def yield_to_others() -> None:
    """Give this thread, and the processes that it starts, less of a busy CPU: runs may start meanwhile."""
    # Linux has a priority for each thread; elsewhere it would be that of the whole process.
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW_PRIORITY)


def none_offered(reason: str) -> tuple[LevelState, ...]:
    """Return the levels for a machine that offers none."""
    return tuple(LevelState(level=level, offered=False, reason=reason) for level in Level)
