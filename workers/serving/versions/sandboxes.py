"""Starts the children of versions that need code of users. Other servers import nothing for it."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from workers.forking.client import ForkServer
from workers.serving.versions.child_process import ChildCommand, ChildProcess
from workers.serving.versions.sandboxed_model import SandboxedModel

if TYPE_CHECKING:
    from workers.serving.versions.sandbox_starter import SandboxStarter

_STARTER = "workers.serving.versions.sandbox_starter"


class Sandboxes:
    """Starts children in sandboxes.

    Args:
        home: the folder of the server's state.
        command: the settings of ordinary children.
        memory_bytes: of each version, all its processes together.
        environments: the folder of the environments with packages of code.
        fork_server: returns the fork server of ordinary children; None if there is none.
    """

    def __init__(
        self,
        home: Path,
        command: ChildCommand,
        memory_bytes: int,
        environments: Path,
        fork_server: Callable[[], Awaitable[ForkServer | None]],
    ) -> None:
        self._settings = home, command, memory_bytes, environments, fork_server
        self._starter: SandboxStarter | None = None

    async def start(self, version: SandboxedModel) -> tuple[ChildProcess, Path]:
        """Return a new child without a model, and the path of its model file, which it can read.

        Raises:
            OSError: this machine offers no sandbox that is strong enough, or it could not be started.
        """
        if self._starter is None:
            module = await asyncio.to_thread(importlib.import_module, _STARTER)
            # Another version may have been faster.
            self._starter = self._starter or module.SandboxStarter(*self._settings)
        return await self._starter.start(version)

    async def close(self) -> None:
        """Remove what starts children. All of them must have ended."""
        if self._starter is not None:
            await self._starter.close()
