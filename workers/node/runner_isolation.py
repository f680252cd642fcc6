"""Finds out how a node can isolate its runners, at its start or for `manage.py worker --check`."""

from jobs.store import store
from workers.confinement.isolation.access import Isolation
from workers.confinement.isolation.check import Folders, IsolationState, find_isolation
from workers.node.node_folder import USER_LOCKS, NodeFolder
from workers.node.settings import NodeSettings
from workers.system.environment import runner_environment

COMPILE_CACHES = "compile-cache"


def isolate(settings: NodeSettings, folder: NodeFolder) -> tuple[Isolation | None, IsolationState]:
    """Return how a node's runners are isolated, by trying it. It starts processes: call it in a thread."""
    folder.runners.mkdir(mode=0o700, parents=True, exist_ok=True)
    return find_isolation(
        folders_of(settings, folder), settings.runner_uids, runner_environment(folder.runners)
    )


def folders_of(settings: NodeSettings, folder: NodeFolder) -> Folders:
    """Return a node's folders."""
    checkpoints = store().checkpoint_root
    return Folders(
        home=settings.home,
        store=checkpoints.parent,
        locks=settings.home / USER_LOCKS,
        runners=folder.runners,
        shared=(folder.attempts, checkpoints, settings.home / COMPILE_CACHES),
    )
