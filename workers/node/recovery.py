"""Notices that the database answers others, but not this process, which then has to be replaced.

An outage is no reason to end: the runs of this process wait for it. But its own threads, files or memory may
be what fails. So while no heartbeat succeeds, another process tries the database from time to time.
"""

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from django.db import connection

from workers.supervise.timing import Timing
from workers.system.environment import CODE_ROOT

log = logging.getLogger(__name__)

PROOFS = 3
"""How often in a row another process must have reached the database."""


class CannotRecover(Exception):
    """The database answers other processes, but not this one."""


class RecoveryWatch:
    """Ends the node with an error if it alone cannot reach the database.

    Args:
        timing: the intervals and limits.
        probe: returns whether another process reaches the database in time.
    """

    def __init__(self, timing: Timing, probe: Callable[[float], Awaitable[bool]] | None = None) -> None:
        self._timing = timing
        self._probe = probe or probe_database
        self._succeeded = time.monotonic()

    def succeeded(self) -> None:
        """Note that a call of this process has succeeded."""
        self._succeeded = time.monotonic()

    @property
    def seconds_silent(self) -> float:
        """Seconds since a call succeeded."""
        return time.monotonic() - self._succeeded

    async def run(self) -> None:
        """Watch until cancelled.

        Raises:
            CannotRecover: see there.
        """
        proofs = 0
        while True:
            await asyncio.sleep(self._timing.probe)
            silent = self.seconds_silent
            if silent < self._timing.unanswered:
                proofs = 0
                continue
            proofs = proofs + 1 if await self._probe(self._timing.renew_patience) else 0
            if proofs:
                log.error("the database answers another process, but for %.0f s not this one", silent)
            # A heartbeat may have succeeded during the last try.
            if proofs >= PROOFS and self.seconds_silent >= self._timing.unanswered:
                raise CannotRecover(
                    f"The database has answered this worker for {silent:.0f} s no more, but it answers other "
                    "processes. The worker ends, so that its service manager starts it again."
                )


async def probe_database(timeout: float) -> bool:
    """Return whether another process reaches the database within `timeout` seconds."""
    request = json.dumps({"parameters": _parameters(), "timeout": timeout}).encode()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "workers.node.database_probe", str(os.getpid())),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=CODE_ROOT,
        )
    except OSError as error:
        # Whatever is missing here, files, processes or memory, the calls of this process may lack too.
        log.warning("the database could not be tried from another process: %s", error)
        return True
    try:
        # Its imports take a while, on a busy machine.
        await asyncio.wait_for(process.communicate(request), 10 * timeout)
    except TimeoutError:
        process.kill()
        await process.wait()
    return process.returncode == 0


def _parameters() -> dict[str, Any]:
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return {"engine": "sqlite", "name": str(settings["NAME"])}
    names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    given = {name: settings[key] for name, key in names.items() if settings[key]}
    # The time to connect is that of the caller.
    options = {name: text for name, text in settings["OPTIONS"].items() if isinstance(text, str)}
    options.pop("connect_timeout", None)
    return {"engine": "postgresql", "connection": {**options, **given}}
