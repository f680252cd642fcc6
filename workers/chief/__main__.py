"""Command line for the chief: `python -m workers.chief --project P --name N`."""

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import django

from jobs import database_use, known_variables, program
from jobs.logs import absent_installation

NO_AUTHENTICATION = (
    "Anyone who can reach {host} may report to this search: KerasTuner's protocol has no authentication and "
    "no encryption. Use it only inside a trusted network."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a search until it has ended."""
    known_variables.settle_or_exit()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.main")
    os.environ[program.KEYLESS_VARIABLE] = "1"
    absent_installation.keep_absent(["chief"])
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    django.setup()
    # These modules import models, which need `django.setup()` first.
    from django.conf import settings as django_settings

    from jobs.actions.own_installation import require_own_installation
    from jobs.errors import TrainyardError
    from jobs.queries.compatibility import Incompatible
    from jobs.queries.search.external_search import chief_environment
    from jobs.spec.formats.reading import FormatError
    from workers.chief.search_setup import find_or_create_search
    from workers.chief.server import PortInUse, serve
    from workers.chief.settings import LOOPBACK, read_settings

    settings = read_settings(arguments)

    def show(text: str) -> None:
        print(text, flush=True)  # noqa: T201  output for the user who started the chief

    if (sentence := absent_installation.problem("chief")) is not None:
        sys.exit(sentence)
    try:
        database_use.share(django_settings.DATABASES["default"], Path(django_settings.TRAINYARD_HOME))
        require_own_installation(signs=False)
        search = find_or_create_search(settings)
        if settings.host not in LOOPBACK:
            show(NO_AUTHENTICATION.format(host=settings.host))
        job = asyncio.run(
            serve(
                search.job_id,
                host=settings.host,
                # Scripts that still run reconnect to the address of the previous chief.
                port=settings.port or search.port,
                grace=settings.grace,
                folder=Path(django_settings.TRAINYARD_HOME) / "chiefs" / str(search.job_id),
                ready=lambda port: show(
                    f"Search {search.job_id} {'starts' if search.is_new else 'resumes'}. For each script, "
                    "with its own id:\n" + "\n".join(chief_environment(settings.host, port))
                ),
            )
        )
    except (TrainyardError, FormatError, PortInUse, Incompatible) as refusal:
        sys.exit(str(refusal))
    show(f"Search {job.pk} is {job.state}.")
    logging.shutdown()
    # A normal exit joins all threads, and one of them may still wait for an unreachable database.
    os._exit(0)


if __name__ == "__main__":
    main()
