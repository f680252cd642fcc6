"""Keeps the compile cache for model children within its limit."""

import asyncio
import logging
import math
from pathlib import Path

from workers.system import compile_cache

logger = logging.getLogger("trainyard.serving")

_SECONDS = 3600.0


async def evict_programs(folder: Path, limit: int, *, pause: float = _SECONDS) -> None:
    """Delete the least recently used programs beyond `limit` bytes, now and regularly, until cancelled.

    A program's age does not matter: a child reads it when it loads a version, which may be months ago.
    """
    while True:
        try:
            await asyncio.to_thread(compile_cache.evict, folder, limit, unused_seconds=math.inf)
        except FileNotFoundError:
            # Nothing has been compiled yet.
            pass
        # The folder is only a cache, so the server does not depend on it.
        except OSError as error:
            logger.warning("old compiled programs could not be deleted: %s", error)
        await asyncio.sleep(pause)
