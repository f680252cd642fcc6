"""Runs one fetch: `python -m jobs.fetching FETCH FENCE`. No address and no secret is an argument."""

import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import django

MOST_MEMORY = 2 * 2**30
"""Bytes that the process may allocate in memory: a server may send an endless head or error message."""


def main(arguments: Sequence[str]) -> None:
    """Run a fetch that the scheduler has claimed."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.main")
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    # A core file would contain the credential.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    django.setup()
    # These modules import models, which need `django.setup()` first.
    from django.conf import settings

    from jobs import database_use
    from jobs.actions.data.fetch_attempts import Claimed
    from jobs.errors import DatabaseReplaced
    from jobs.fetching.download import run

    try:
        database_use.share(settings.DATABASES["default"], Path(settings.TRAINYARD_HOME))
    except DatabaseReplaced as error:
        sys.exit(error.message)
    fetch, fence = arguments
    run(Claimed(int(fetch), int(fence)))


if __name__ == "__main__":
    main(sys.argv[1:])
