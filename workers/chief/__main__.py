"""`python -m workers.chief --project P --name N`: one search for scripts of KerasTuner."""

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import django

OPEN_TO_ALL = (
    "Anybody who reaches {host} may report to this search: KerasTuner's protocol asks nobody who he is and "
    "hides nothing. Keep it inside a network that you trust."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a search until it is over."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.main")
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    django.setup()
    from django.conf import settings as django_settings

    from jobs.contracts.formats.reading import Refused
    from jobs.errors import TrainyardError
    from jobs.queries.external_search import environment
    from workers.chief.opening import open_for
    from workers.chief.server import PortTaken, serve
    from workers.chief.settings import LOOPBACK, read_settings

    settings = read_settings(arguments)

    def say(text: str) -> None:
        print(text, flush=True)  # noqa: T201  for whoever started it

    try:
        search = open_for(settings)
        if settings.host not in LOOPBACK:
            say(OPEN_TO_ALL.format(host=settings.host))
        job = asyncio.run(
            serve(
                search.job_id,
                host=settings.host,
                port=settings.port or search.port,
                grace=settings.grace,
                folder=Path(django_settings.TRAINYARD_HOME) / "chiefs" / str(search.job_id),
                ready=lambda port: say(
                    f"Search {search.job_id} {'begins' if search.is_new else 'goes on'}. For each script, "
                    "with an id of its own:\n" + "\n".join(environment(settings.host, port))
                ),
            )
        )
    except (TrainyardError, Refused, PortTaken) as refusal:
        sys.exit(str(refusal))
    say(f"Search {job.pk} is {job.state}.")
    logging.shutdown()
    os._exit(0)  # a thread may still wait for a database that is away


if __name__ == "__main__":
    main()
