"""Assembles the prediction server from its parts, and runs their loops."""

import asyncio
import contextlib
import logging
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from jobs.messages.release import ReleasedVersion
from workers.serving.app import ServingApp
from workers.serving.auth import TokenAuthenticator
from workers.serving.bodies.codec import BodyCodec
from workers.serving.bodies.pool import BodyWorkers
from workers.serving.counting import RequestCounter
from workers.serving.direct import DirectPredictions
from workers.serving.eviction import evict_programs
from workers.serving.health import Health
from workers.serving.known_callers import KnownCallers
from workers.serving.metrics import Labels, Metrics
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.dashboard import Dashboard
from workers.serving.releases.endpoint import Endpoint
from workers.serving.releases.polling import Reporter, poll_releases
from workers.serving.releases.state import StateFile
from workers.serving.releases.verification import ReleaseVerifier
from workers.serving.request_context import RequestContext
from workers.serving.request_log import RequestLog
from workers.serving.server_gauges import add_server_gauges
from workers.serving.settings import Settings
from workers.serving.traffic import Traffic, next_run
from workers.serving.versions.artifacts import Artifacts
from workers.serving.versions.child_starter import ChildStarter
from workers.serving.versions.sandboxes import Sandboxes
from workers.serving.versions.seen_sizes import SeenSizesFolder
from workers.serving.versions.version import LoadedVersion, VersionContext

logger = logging.getLogger("trainyard.serving")

_LAST_REPORT_SECONDS = 2


class Router:
    """One prediction server: `start`, serve `app`, `stop`."""

    def __init__(self, settings: Settings, child_starter: ChildStarter, sandboxes: Sandboxes) -> None:
        home, limits = settings.home, settings.limits
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._dashboard = Dashboard(settings.dashboard, settings.token_file)
        metrics, self._traffic = Metrics(), Traffic(next_run(home / "run"))
        self._authenticator = self._new_authenticator(settings)
        self._health = Health(settings.unready_when, self._callers_problem)
        self._reporter = Reporter(
            self._dashboard,
            replica_name(home / "replica"),
            settings.instance,
            self._traffic,
            self._health,
        )
        artifacts = Artifacts(home / "artifacts", settings.artifacts, self._dashboard)
        versions = VersionContext(
            artifacts,
            child_starter,
            sandboxes,
            limits,
            metrics,
            self._traffic,
            SeenSizesFolder(home / "sizes"),
            self._reporter.changed,
        )
        self._catalog = self._new_catalog(settings, artifacts, versions)
        self._add_gauges(metrics)
        add_server_gauges(metrics, home, self._health)
        self._body_workers = BodyWorkers(limits.body_workers)
        self.request_log = RequestLog(settings.access_log)
        requests = RequestContext(
            self._catalog,
            RequestCounter(self._catalog, metrics, self._traffic),
            limits,
            self._authenticator,
            BodyCodec(self._body_workers),
            settings.hosts,
        )
        self.app = ServingApp(requests, metrics, self.request_log)
        self.predictions = DirectPredictions(requests)
        self._compiled = settings.compiled, limits.compile_cache_bytes
        self._loops: list[asyncio.Task[None]] = []

    def _new_catalog(self, settings: Settings, artifacts: Artifacts, versions: VersionContext) -> Catalog:
        def load(model: str, approved: ReleasedVersion) -> LoadedVersion:
            return LoadedVersion(model, approved, versions)

        return Catalog(
            verifier=ReleaseVerifier.from_file(settings.public_key_file),
            state_file=StateFile(settings.home / "state.json"),
            artifacts=artifacts,
            new_endpoint=lambda model, changed: Endpoint(
                model, load=load, changed=changed, drain_seconds=settings.limits.drain_seconds
            ),
            changed=self._reporter.changed,
            check_health=self._health.check,
        )

    def _new_authenticator(self, settings: Settings) -> TokenAuthenticator | None:
        if not settings.needs_token:
            return None
        callers = KnownCallers(settings.home / "callers", settings.token_grace_seconds)
        return TokenAuthenticator(self._dashboard, callers)

    def _callers_problem(self) -> str | None:
        return None if self._authenticator is None else self._authenticator.problem

    def _add_gauges(self, metrics: Metrics) -> None:
        metrics.add_gauge(
            "trainyard_serving_queue_rows",
            "Rows that wait.",
            lambda: [(labels, version.waiting_rows) for labels, version in self._versions()],
        )
        metrics.add_gauge(
            "trainyard_serving_child_pid",
            "Process that answers for a version.",
            lambda: [
                (labels, version.child_pid) for labels, version in self._versions() if version.child_pid
            ],
        )
        metrics.add_gauge("trainyard_serving_generation", "Generation that answers.", self._generations)

    def start(self) -> None:
        """Apply the saved releases, and start to poll the dashboard."""
        self._catalog.resume()
        loops: dict[str, Callable[[], Awaitable[None]]] = {
            "polling for releases": lambda: poll_releases(self._dashboard, self._catalog, self._health),
            "logging problems": self._health.log_problems,
            "reporting": lambda: self._reporter.run(self._catalog),
            "closing intervals of counts": self._reporter.close_intervals,
            "preparing body workers": self._body_workers.prepare,
            "evicting compiled programs": lambda: evict_programs(*self._compiled),
        }
        if self._authenticator is not None:
            loops["asking for known tokens"] = self._authenticator.keep_current
            loops["saving known callers"] = self._authenticator.keep_saved
        self._loops = [asyncio.create_task(run_with_restarts(name, loop)) for name, loop in loops.items()]

    async def stop(self) -> None:
        """End the loops and all children."""
        # The loops first: a release that arrives now would start children again.
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await self._catalog.close()
        await self._report_last()
        await self._body_workers.close()
        if self._authenticator is not None:
            await self._authenticator.close()
        await self._dashboard.close()

    async def _report_last(self) -> None:
        self._traffic.close_interval(time.time())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_REPORT_SECONDS):
                await self._reporter.send_last(self._catalog)

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


async def run_with_restarts(name: str, loop: Callable[[], Awaitable[None]], pause: float = 1.0) -> None:
    """Run a loop until it returns or is cancelled. After an unforeseen error it starts again.

    Args:
        name: for the log.
        loop: the loop.
        pause: seconds before it starts again.
    """
    while True:
        try:
            await loop()
        # Whatever fails, the server needs the loop until it ends: a release would never arrive without it.
        except Exception:
            logger.exception("%s failed and starts again", name)
            await asyncio.sleep(pause)
        else:
            return


def replica_name(path: Path) -> str:
    """Return this replica's name. It is created once and saved, so it survives a restart."""
    with contextlib.suppress(FileNotFoundError):
        if name := path.read_text().strip():
            return name
    name = f"{socket.gethostname()[:40]}-{secrets.token_hex(4)}"
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_text(name)
    temporary.replace(path)
    return name
