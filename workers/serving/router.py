"""Assembles the prediction server from its parts and runs it under uvicorn."""

import asyncio
import contextlib
import json
import secrets
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn

from jobs.contracts.release import ReleasedVersion
from workers.serving.app import ServingApp
from workers.serving.auth import TokenAuthenticator
from workers.serving.metrics import Labels, Metrics
from workers.serving.releases.artifacts import Artifacts
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.dashboard import Dashboard
from workers.serving.releases.endpoint import Endpoint
from workers.serving.releases.polling import Reporter, poll_releases
from workers.serving.releases.state import StateFile
from workers.serving.releases.verification import ReleaseVerifier
from workers.serving.settings import Settings
from workers.serving.versions.child_process import ChildCommand
from workers.serving.versions.spare_child import SpareChild
from workers.serving.versions.version import LoadedVersion, VersionContext

_SHUTDOWN_SECONDS = 10


class Router:
    """One prediction server: `start`, serve `app`, `stop`."""

    def __init__(self, settings: Settings) -> None:
        home, limits = settings.home, settings.limits
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._dashboard = Dashboard(settings.dashboard, settings.token_file)
        self._reporter = Reporter(self._dashboard, replica_name(home / "replica"))
        metrics = Metrics()
        artifacts = Artifacts(home / "artifacts", settings.artifacts, self._dashboard)
        self._spare_child = SpareChild(
            ChildCommand(home / "compiled", limits.max_batch, limits.child_threads)
        )
        context = VersionContext(artifacts, self._spare_child, limits, metrics, self._reporter.changed)

        def load(model: str, approved: ReleasedVersion) -> LoadedVersion:
            return LoadedVersion(model, approved, context)

        self._catalog = Catalog(
            verifier=ReleaseVerifier.from_text(settings.public_key_file.read_bytes()),
            state_file=StateFile(home / "state.json"),
            artifacts=artifacts,
            new_endpoint=lambda model, changed: Endpoint(
                model, load=load, changed=changed, drain_seconds=limits.drain_seconds
            ),
            changed=self._reporter.changed,
        )
        metrics.add_gauge("trainyard_serving_queue_rows", "Rows that wait.", self._queue_rows)
        metrics.add_gauge("trainyard_serving_child_pid", "Process that answers for a version.", self._pids)
        metrics.add_gauge("trainyard_serving_generation", "Generation that answers.", self._generations)
        authenticator = TokenAuthenticator(self._dashboard) if settings.needs_token else None
        self.app = ServingApp(self._catalog, metrics, limits, authenticator)
        self._loops: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Apply the saved releases, and start to poll the dashboard."""
        self._catalog.resume()
        self._spare_child.prepare()
        self._loops = [
            asyncio.create_task(poll_releases(self._dashboard, self._catalog)),
            asyncio.create_task(self._reporter.run(self._catalog)),
        ]

    async def stop(self) -> None:
        """End the loops and all children."""
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await self._catalog.close()
        await self._spare_child.close()
        await self._dashboard.close()

    def _queue_rows(self) -> list[tuple[Labels, float]]:
        return [(labels, version.waiting_rows) for labels, version in self._versions()]

    def _pids(self) -> list[tuple[Labels, float]]:
        return [(labels, version.child_pid) for labels, version in self._versions() if version.child_pid]

    def _versions(self) -> list[tuple[Labels, LoadedVersion]]:
        return [
            ((("model_name", model), ("version", str(version.approved.number))), version)
            for model, endpoint in self._catalog.endpoints.items()
            for version in endpoint.available()
        ]

    def _generations(self) -> list[tuple[Labels, float]]:
        return [
            ((("model_name", model),), endpoint.serving.release.generation)
            for model, endpoint in self._catalog.endpoints.items()
            if endpoint.serving is not None
        ]


class _Server(uvicorn.Server):
    """Writes its address once it listens, and ends the children before the process after a signal."""

    def __init__(self, config: uvicorn.Config, address_file: Path | None) -> None:
        super().__init__(config)
        self._address_file = address_file

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._address_file is not None and sockets:
            host, port = sockets[0].getsockname()[:2]
            write_address(self._address_file, host, port)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own handler raises the signal again, which would end this process before its children
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


async def serve(settings: Settings) -> None:
    """Run one prediction server until SIGTERM or SIGINT.

    Raises:
        OSError: the port is in use, or a required file is missing.
        ValueError: the public key is invalid.
    """
    listener = _listen(settings.host, settings.port)
    router = Router(settings)
    config = uvicorn.Config(
        router.app,
        lifespan="off",
        http="httptools",
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        backlog=2048,
    )
    router.start()
    try:
        await _Server(config, settings.address_file).serve(sockets=[listener])
    finally:
        await router.stop()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.set_inheritable(False)
    return listener


def write_address(path: Path, host: str, port: int) -> None:
    """Write the address file atomically."""
    shown = f"[{host}]" if ":" in host else host
    content: dict[str, Any] = {"host": host, "port": port, "url": f"http://{shown}:{port}"}
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_text(json.dumps(content))
    temporary.replace(path)


def replica_name(path: Path) -> str:
    """Return the name of this replica. It is created once and saved, so it survives a restart."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        name = f"{socket.gethostname()[:40]}-{secrets.token_hex(4)}"
        path.write_text(name)
        return name
