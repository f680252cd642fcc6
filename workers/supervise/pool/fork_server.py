"""Starts a fork server for runners. `workers.runner.forkserver` is its other side.

When the server dies, the kernel kills the runners that it forked, and each of them is reported as killed.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from jobs.messages.fork import ForkRequest
from workers.confinement.forking.client import EXIT_REPORT_TIMEOUT, Child, ForkServer
from workers.runner.environment import Environment
from workers.supervise.pool.launcher import RunnerDescriptors, RunnerStart
from workers.system.pid_file import remove_pid_file, write_pid_file


class RunnerForkServer(ForkServer):
    """A `Launcher` for runners with one `Environment`. Create it with `start`."""

    folder: Path
    _module: str

    @classmethod
    async def start(
        cls, folder: Path, environment: Environment, *, variables: Mapping[str, str], module: str
    ) -> Self:
        """Start a server with its files in `folder` and wait until its imports are done.

        Raises:
            OSError: it could not be started, or its imports failed or took too long.
        """
        command = [sys.executable, "-m", "workers.runner.forkserver"]
        server = await cls.spawn(
            [*command, "--environment", json.dumps(environment._asdict())],
            variables=variables,
            cwd=folder,
            output=folder / "output.log",
        )
        server.folder, server._module = folder, module
        try:
            write_pid_file(folder, server.pid)
        except OSError:
            await asyncio.shield(server.end())
            raise
        await server.imported()
        return server

    async def launch(self, start: RunnerStart, descriptors: RunnerDescriptors) -> Child:
        """Fork a runner. A server that does not answer is killed."""
        request = ForkRequest(
            folder=str(start.folder),
            environment=dict(start.environment),
            module=self._module,
            confinement=start.confinement,
        )
        sent = (descriptors.stdin, descriptors.stdout, descriptors.stderr, descriptors.events)
        return await self.fork(request.model_dump_json().encode(), sent)

    async def end(self) -> None:
        """Kill the server, and with it the runners that it forked."""
        await super().end()
        if self._children:
            await asyncio.wait(list(self._children.values()), timeout=EXIT_REPORT_TIMEOUT)
        remove_pid_file(self.folder)
