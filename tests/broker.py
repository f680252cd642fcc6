"""A real broker for tests of what travels through one."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from webapp.ops.broker import choose
from webapp.ops.home import Home


@contextmanager
def running_broker(folder: Path) -> Iterator[str]:
    """Start a broker on a socket of its own below `folder`; give its URL."""
    home = Home(folder)
    home.create()
    broker = choose({"TRAINYARD_BROKER": os.environ.get("TRAINYARD_BROKER", "auto")}, home)
    assert broker.argv is not None
    server = subprocess.Popen(broker.argv, stdout=subprocess.DEVNULL)
    try:
        assert asyncio.run(broker.wait(10))
        yield broker.url
    finally:
        server.kill()
        server.wait()
