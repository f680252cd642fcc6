"""Runs `manage.py up`: starts all parts in order, restarts them when they die, and stops them in order."""

import asyncio
import itertools
import os
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jobs.messages.worker_end import seconds_to_end_in
from jobs.program import ROOT
from webapp.ops import orphans, ports
from webapp.ops.async_tools import cancel, run_in_daemon_thread
from webapp.ops.broker import Broker
from webapp.ops.console import Console
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.parts import (
    Options,
    ServingOptions,
    broker_part,
    scheduler_argv,
    serving_argv,
    web_argv,
    worker_argv,
)
from webapp.ops.readiness import Readiness
from webapp.ops.service import Part, Service
from webapp.ops.watchdog import Watchdog

# Seconds.
BROKER_WAIT = 30.0
DATABASE_WAIT = 60.0
MISSING_INTERVAL = 15
# A worker that is up looks for sandboxes and starts its consumer, and a model is loaded again.
QUIET_SECONDS = 2.0
# A web server that fails this often in a row has a fault that a restart does not remove.
MAX_WEB_START_FAILURES = 6
# SIGHUP: the terminal of `up` was closed.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Supervisor:
    """One `manage.py up` run. `prepare(web_url)` migrates and returns messages to show once ready."""

    home: Home
    options: Options
    broker: Broker
    artifacts: str
    console: Console
    database_error: Callable[[], str | None]
    prepare: Callable[[str], list[str]]
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    _services: list[Service] = field(default_factory=list)
    _watchdogs: list[asyncio.Task[None]] = field(default_factory=list)
    _signals: int = 0
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Run until a signal.

        Raises:
            OpsError: the installation cannot be started.
        """
        listener = ports.listen(self.options.host, self.options.port, flag="--port")
        serving_port = ports.free_port(self.options.host, self.options.serving_port, flag="--serving-port")
        for number in SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal)
        running = asyncio.create_task(self._run_parts(listener, serving_port))
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                # It only ends with an error, which this raises.
                running.result()
        finally:
            await cancel(running, stopped)
            self.home.remove_urls()
            await self._stop_all()
            listener.close()

    async def _run_parts(self, listener: socket.socket, serving_port: int) -> None:
        web = ports.url(self.options.host, ports.port_of(listener))
        serving = ports.url(self.options.host, serving_port)
        self.console.is_starting = True
        await self._start_broker()
        await self._wait_for_database()
        # In a thread, so that a signal during a long migration is answered.
        lines = await asyncio.to_thread(self.prepare, web)
        self._start_parts(listener, web, serving_port)
        readiness = Readiness(web=web, serving=serving, token_file=self.home.prediction_token_file)
        await self._wait_until_ready(readiness)
        self.home.write_urls({"web": web, "serving": serving, "pid": os.getpid()})
        self._announce(web, serving)
        for name, error in (await readiness.unready_models()).items():
            reason = f"it could not be loaded: {error}" if error else "it is still loading"
            self.console.message(f"Model {name} does not answer predictions yet: {reason}.", error=True)
        for line in lines:
            self.console.terminal_message(line)
        await asyncio.sleep(QUIET_SECONDS)
        self.console.is_starting = False
        # Until it is cancelled; each service restarts its part in a task of its own.
        await asyncio.Event().wait()

    async def _start_broker(self) -> None:
        if self.broker.argv is not None:
            self._start(broker_part(self.broker, self.home))
        if not await self.broker.wait(BROKER_WAIT):
            log = self.home.log / "broker.log"
            raise OpsError(f"The broker ({self.broker.origin}) does not answer; its log is {log}.")
        self.console.ready("broker", f"ready: {self.broker.origin}")

    def _announce(self, web: str, serving: str) -> None:
        """Write a line for each part, then the addresses."""
        addresses = {"web": f" at {web}", "serving": f" at {serving}"}
        for service in self._services:
            name = service.part.name
            if name != "broker":
                self.console.ready(name, f"ready{addresses.get(name, '')}")
        predict = f"{serving}/v1/models/MODEL:predict"
        self.console.message(f"Ready. Dashboard: {web} · predictions: {predict} · Ctrl-C stops.")

    async def _wait_for_database(self) -> None:
        """Wait, because a database server may start later."""
        deadline = asyncio.get_running_loop().time() + DATABASE_WAIT
        is_announced = False
        while error := await run_in_daemon_thread(self.database_error):
            if asyncio.get_running_loop().time() > deadline:
                raise OpsError(f"The database does not answer: {error}")
            # Once: a line for each try would fill the log.
            if not is_announced:
                self.console.message(f"Waiting for the database: {error}")
                is_announced = True
            await asyncio.sleep(2)

    def _start_parts(self, listener: socket.socket, web: str, serving_port: int) -> None:
        web_socket = self.home.health_socket("web")
        argv = web_argv(listener.fileno(), web_socket)
        health = (web_socket, "/healthz")
        self._start(Part("web", argv, grace=10, inherit=(listener.fileno(),), health=health))
        self._start(Part("scheduler", scheduler_argv(), grace=10))
        for number in range(1, self.options.workers + 1):
            argv = worker_argv("default", self.options.slots)
            self._start(Part(f"worker-{number}", argv, grace=seconds_to_end_in(self.environment)))
        serving_socket = self.home.health_socket("serve")
        serving_options = ServingOptions(
            host=self.options.host,
            port=serving_port,
            dashboard=web,
            artifacts=self.artifacts,
            token_file=self.home.serving_token_file,
            public_key_file=self.home.release_key_file,
            health_socket=serving_socket,
        )
        health = (serving_socket, "/v2/health/live")
        self._start(Part("serving", serving_argv(self.home, serving_options), grace=15, health=health))

    def _start(self, part: Part) -> None:
        service = Service(part, self._environment(part.name), self.console, cwd=ROOT)
        self._services.append(service)
        service.start()
        if part.health is not None:
            watchdog = Watchdog(service, *part.health, self.console)
            self._watchdogs.append(asyncio.create_task(watchdog.run(), name=f"watchdog of {part.name}"))

    def _environment(self, name: str) -> dict[str, str]:
        hosts = {*self.environment.get("TRAINYARD_ALLOWED_HOSTS", "").split(","), self.options.host}
        return {
            **self.environment,
            # Resolved: a part runs in the program's folder, where a relative path would be another one.
            "TRAINYARD_HOME": str(self.home.root),
            "TRAINYARD_REDIS_URL": self.broker.url,
            # Without wildcards, which are addresses to bind and never names of a host.
            "TRAINYARD_ALLOWED_HOSTS": ",".join(sorted(hosts - set(ports.WILDCARDS))),
            orphans.MARK: name,
            # Output to a pipe is otherwise written in blocks, long after its event.
            "PYTHONUNBUFFERED": "1",
        }

    async def _wait_until_ready(self, readiness: Readiness) -> None:
        ready = asyncio.create_task(readiness.wait())
        try:
            for second in itertools.count(1):
                if (await asyncio.wait({ready}, timeout=1))[0]:
                    break
                self._check_web_starts()
                if second % MISSING_INTERVAL == 0:
                    self.console.message(f"Not ready yet: {await readiness.missing() or 'almost'}.")
            ready.result()
        finally:
            await cancel(ready)

    def _check_web_starts(self) -> None:
        for service in self._services:
            if service.part.name == "web" and service.failures >= MAX_WEB_START_FAILURES:
                raise OpsError(
                    f"The web server failed to start {service.failures} times; "
                    f"see the log {self.home.log / 'web.log'}."
                )

    def _on_signal(self) -> None:
        self._signals += 1
        if self._signals == 1:
            self.console.is_starting = False
            self.console.message(
                "Stopping: running work is checkpointed first. Press Ctrl-C again to kill it at once."
            )
            self._stopping.set()
            return
        self.console.message("Killing everything.", error=True)
        for service in self._services:
            service.kill()

    async def _stop_all(self) -> None:
        """Stop the parts so that none loses one it depends on: the scheduler first, the broker last."""
        if self._watchdogs:
            await cancel(*self._watchdogs)
        order = ("scheduler", "worker", "serving", "web", "broker")
        for name in order:
            stage = [service for service in self._services if service.part.name.split("-")[0] == name]
            await asyncio.gather(*(service.stop() for service in stage))
        orphans.sweep(self.home)
        self.console.message("Stopped.")
