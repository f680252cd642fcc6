"""Starts a real broker for message tests."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from webapp.ops.broker import choose
from webapp.ops.home import Home

START_SECONDS = 60.0


@contextmanager
def running_broker(folder: Path) -> Iterator[str]:
    """Start a broker on its own socket below `folder`, and yield its URL."""
    home = Home(folder)
    home.create()
    broker = choose({"TRAINYARD_BROKER": os.environ.get("TRAINYARD_BROKER", "auto")}, home)
    assert broker.argv is not None
    server = subprocess.Popen(broker.argv, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(broker.url):
            assert server.poll() is None, "the broker ended"
            assert time.monotonic() < deadline, "the broker does not answer"
            time.sleep(0.05)
        yield broker.url
    finally:
        server.kill()
        server.wait()


def _answers(url: str) -> bool:
    try:
        with redis.Redis.from_url(url, socket_timeout=2) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
