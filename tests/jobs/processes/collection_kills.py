"""Kills a collection at every step in turn, and prints the state after the last kill. Run as a script."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from typing import Any

import django

django.setup()

from django.db import connections, transaction  # noqa: E402  needs the set-up

from jobs.actions.storage import collection, purge  # noqa: E402
from jobs.errors import NotFound  # noqa: E402
from jobs.models import Artifact, Deletion, Lease  # noqa: E402
from jobs.store import LocalStore, store  # noqa: E402

MAX_STEPS = 500


def die_at(step: int) -> None:
    """Kill this process before or after the call number `step` of a function that changes something."""
    passed = 0

    def count() -> None:
        nonlocal passed
        passed += 1
        if passed > step:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            count()
            result = function(*args, **kwargs)
            count()
            return result

        return call

    for owner, name in (
        (LocalStore, "discard"),
        (LocalStore, "erase"),
        (os, "utime"),
        (shutil, "rmtree"),
        (transaction.Atomic, "__exit__"),
        (purge, "_remove_rows"),
    ):
        setattr(owner, name, watched(getattr(owner, name)))


def in_child(action: Callable[[], Any]) -> int:
    """Run an action in a fork; return the signal that ended it, or 0."""
    connections.close_all()
    pid = os.fork()
    if pid == 0:
        action()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def readable(digests: list[str]) -> list[str]:
    """Return the digests whose file the store finds."""
    present = []
    for digest in digests:
        try:
            store().path(digest)
        except NotFound:
            continue
        present.append(digest)
    return present


def main(used: list[str]) -> None:
    """Kill runs until one reaches its end, and print a line of JSON."""
    kills, lost = 0, []
    for step in range(MAX_STEPS):

        def run(step: int = step) -> None:
            die_at(step)
            collection.collect()

        Lease.objects.all().delete()  # as if the lease of the killed run had expired
        if in_child(run) == 0:
            break
        kills += 1
        if len(readable(used)) < len(used):
            lost.append(step)
    left = {
        "rows": sorted(Artifact.objects.values_list("pk", flat=True)),
        "files": sorted(entry.digest for entry in store().files()),
        "trash": sorted(entry.digest for entry in store().trash()),
        "deletions": Deletion.objects.count(),
        "folders": sorted(path.name for path in store().checkpoint_root.iterdir()),
    }
    sys.stdout.write(json.dumps({"kills": kills, "lost": lost, **left}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
