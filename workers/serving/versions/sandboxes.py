"""Starts children for versions that need user code. Other servers import nothing for it."""

import asyncio
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from workers.serving.versions.child_process import ChildProcess
from workers.serving.versions.sandboxed_model import SandboxedModel, SandboxSettings

if TYPE_CHECKING:
    from workers.serving.versions.sandbox_starter import SandboxStarter

_STARTER = "workers.serving.versions.sandbox_starter"


class Sandboxes:
    """Starts children in sandboxes."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._settings = settings
        self._starter: SandboxStarter | None = None

    async def start(self, version: SandboxedModel) -> tuple[ChildProcess, Path]:
        """Return a new child without a model, and the path to its model file, which it can read.

        Raises:
            OSError: this machine offers no sandbox that is strong enough, or it could not be started.
        """
        if self._starter is None:
            module = await asyncio.to_thread(importlib.import_module, _STARTER)
            # Another version may have been faster.
            self._starter = self._starter or module.SandboxStarter(self._settings)
        return await self._starter.start(version)

    async def close(self) -> None:
        """Remove what starts children. They must all have ended."""
        if self._starter is not None:
            await self._starter.close()
