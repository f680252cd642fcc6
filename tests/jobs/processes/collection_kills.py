"""Kills a collection at every step in turn, and prints the state after the last kill. Run as a script."""

import json
import os
import shutil
import sys

import django

django.setup()

from django.db import transaction  # noqa: E402  needs the set-up

from jobs.actions.storage import collection, purge  # noqa: E402
from jobs.errors import NotFound  # noqa: E402
from jobs.models import Artifact, Deletion, Lease  # noqa: E402
from jobs.store import LocalStore, store  # noqa: E402
from tests.jobs.processes.kills import kill_at_every_step  # noqa: E402

WATCHED = (
    (LocalStore, "discard"),
    (LocalStore, "erase"),
    (os, "utime"),
    (shutil, "rmtree"),
    (transaction.Atomic, "__exit__"),
    (purge, "_remove_rows"),
)


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
    lost: list[int] = []

    def check(step: int) -> None:
        if len(readable(used)) < len(used):
            lost.append(step)

    kills = kill_at_every_step(
        collection.collect,
        WATCHED,
        # As if the lease of the killed run had expired.
        prepare=lambda: Lease.objects.all().delete(),
        check=check,
    )
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
