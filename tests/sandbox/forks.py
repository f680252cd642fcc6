"""Starts sandboxes as forks of `fork_server`."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self

from tests.sandbox.fork_server import COMMAND
from workers.confinement.forking.client import ForkServer
from workers.confinement.forking.sandbox_forks import SandboxForks
from workers.confinement.sandbox.view import CODE_ROOT


class Forks:
    """A fork server, with an event loop in a thread. Sandboxes are started by `starter`.

    Args:
    options: for its command line.
    """

    def __init__(self, *options: str) -> None:
        self._options = options
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.server, self.starter = self.run(self._start())
        return self

    async def _start(self) -> tuple[ForkServer, SandboxForks]:
        variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CODE_ROOT)}
        command = [*COMMAND, *self._options]
        server = await ForkServer.spawn(command, variables=variables, cwd=Path("/"))
        await server.imported()
        return server, SandboxForks(server)

    def __exit__(self, *_: object) -> None:
        self.run(self.server.end())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def run[T](self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the event loop of the fork server's client."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
