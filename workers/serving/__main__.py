"""Command line for the prediction server: `python -m workers.serving`."""

import asyncio
import dataclasses
import faulthandler
import importlib
import logging
import os
import signal
import sys

import uvloop

from jobs import known_variables
from jobs.logs.foreign_output import capture, speak_json
from jobs.logs.lines import configure_process
from jobs.logs.start_errors import one_sentence, write_sentence
from jobs.private_files import restrict_new_files
from jobs.removed_settings import warn_of_removed
from workers.serving.claimed_home import claim_home
from workers.serving.settings import Settings, parse
from workers.serving.versions.child_process import ChildCommand
from workers.serving.versions.child_starter import ChildStarter

logger = logging.getLogger("trainyard.serving")


def main() -> int:
    """Run until a signal; return the exit status."""
    speak_json("serving")
    with one_sentence():
        known_variables.settle_or_exit()
        restrict_new_files()
        settings = parse(sys.argv[1:])
    configure_process("serving", os.environ)
    # The supervisor asks a server that does not answer for its stacks before it kills it.
    faulthandler.register(signal.SIGUSR2, file=capture("serving") or sys.stderr, all_threads=True)
    warn_of_removed()
    # It logs a line for each request to the dashboard.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    try:
        claimed = claim_home(settings.home)
        if claimed.instance > 1:
            logger.warning(
                "another prediction server has the home %s: this is number %d, in %s",
                *(settings.home, claimed.instance, claimed.folder),
            )
        settings = dataclasses.replace(
            settings,
            home=claimed.folder,
            instance=claimed.instance,
            address_file=settings.address_file and claimed.own_name(settings.address_file),
        )
        uvloop.run(_run(settings))
    except (OSError, ValueError) as error:
        write_sentence(f"the prediction server cannot start: {error}")
        return 2
    return 0


async def _run(settings: Settings) -> None:
    """Run the prediction server until a signal."""
    limits = settings.limits
    command = ChildCommand(settings.compiled, limits.max_batch, limits.child_threads, limits.max_programs)
    child_starter = ChildStarter(command, forks=settings.fork_children)
    child_starter.prepare()
    try:
        # Its imports delay a restart less while the fork server does its own, on another core.
        server = await asyncio.to_thread(importlib.import_module, "workers.serving.server")
        await server.serve(settings, command, child_starter)
    finally:
        await child_starter.close()


if __name__ == "__main__":
    sys.exit(main())
