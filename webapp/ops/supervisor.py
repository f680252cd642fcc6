"""The supervisor: starts every part in order, keeps them alive, and ends them in the opposite order."""

import asyncio
import itertools
import os
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from webapp.ops import orphans, ports
from webapp.ops.background import cancel, in_daemon
from webapp.ops.broker import Broker
from webapp.ops.console import Console
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.parts import (
    ROOT,
    Options,
    Serving,
    broker_part,
    scheduler_argv,
    serving_argv,
    web_argv,
    worker_argv,
)
from webapp.ops.readiness import Readiness
from webapp.ops.service import Part, Service

BROKER_WAIT = 30.0
DATABASE_WAIT = 60.0
MISSING_EVERY = 15  # seconds between two lines on what is not ready yet
HOPELESS = 6  # starts in a row after which a web server that never answered is given up
WORKER_GRACE = 45.0  # a running step, its checkpoint and the hand-back fit in
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Supervisor:
    """One run of `manage.py up`. `prepare(web_url)` migrates and returns lines to show when ready."""

    home: Home
    options: Options
    broker: Broker
    artifacts: str
    console: Console
    database_trouble: Callable[[], str | None]
    prepare: Callable[[str], list[str]]
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    _services: list[Service] = field(default_factory=list)
    _signals: int = 0
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> int:
        """Run until a signal or a part without which nothing works; return the exit status."""
        listener = ports.listen(self.options.host, self.options.port, flag="--port")
        serving_port = ports.free_port(self.options.host, self.options.serving_port, flag="--serving-port")
        self._catch_signals()
        life = asyncio.create_task(self._live(listener, serving_port))
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({life, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if life.done():
                life.result()  # it only ends by failing
            return 0
        finally:
            await cancel(life, stopped)
            self.home.forget_urls()
            await self._stop_all()
            listener.close()

    async def _live(self, listener: socket.socket, serving_port: int) -> None:
        web = ports.url(self.options.host, ports.port_of(listener))
        serving = ports.url(self.options.host, serving_port)
        await self._start_broker()
        await self._wait_for_database()
        lines = await asyncio.to_thread(self.prepare, web)
        self._start_parts(listener, web, serving_port)
        await self._until_ready(Readiness(web=web, serving=serving))
        self.home.write_urls({"web": web, "serving": serving, "pid": os.getpid()})
        predict = f"{serving}/v1/models/MODEL:predict"
        self.console.say(f"Ready. Dashboard: {web} · predictions: {predict} · Ctrl-C stops.")
        for line in lines:
            self.console.show(line)
        await asyncio.Event().wait()

    async def _start_broker(self) -> None:
        if self.broker.argv is not None:
            self._start(broker_part(self.broker, self.home))
        if not await self.broker.wait(BROKER_WAIT):
            log = self.home.log / "broker.log"
            raise OpsError(f"The broker ({self.broker.origin}) does not answer; its log is {log}.")

    async def _wait_for_database(self) -> None:
        """A database server may start later than we do."""
        deadline = asyncio.get_running_loop().time() + DATABASE_WAIT
        while trouble := await in_daemon(self.database_trouble):
            if asyncio.get_running_loop().time() > deadline:
                raise OpsError(f"The database does not answer: {trouble}")
            self.console.say(f"Waiting for the database: {trouble}")
            await asyncio.sleep(2)

    def _start_parts(self, listener: socket.socket, web: str, serving_port: int) -> None:
        self._start(Part("web", web_argv(listener.fileno()), grace=10, inherit=(listener.fileno(),)))
        self._start(Part("scheduler", scheduler_argv(), grace=10))
        for number in range(1, self.options.workers + 1):
            argv = worker_argv("default", self.options.slots)
            self._start(Part(f"worker-{number}", argv, grace=WORKER_GRACE))
        place = Serving(
            host=self.options.host,
            port=serving_port,
            dashboard=web,
            artifacts=self.artifacts,
            token_file=self.home.serving_token_file,
            public_key_file=self.home.release_key_file,
        )
        self._start(Part("serving", serving_argv(self.home, place), grace=15))

    def _start(self, part: Part) -> None:
        service = Service(part, self._environment(part.name), self.console, cwd=ROOT)
        self._services.append(service)
        service.start()

    def _environment(self, name: str) -> dict[str, str]:
        hosts = {*self.environment.get("TRAINYARD_ALLOWED_HOSTS", "").split(","), self.options.host}
        return {
            **self.environment,
            "TRAINYARD_HOME": str(self.home.root),
            "TRAINYARD_REDIS_URL": self.broker.url,
            "TRAINYARD_ALLOWED_HOSTS": ",".join(sorted(hosts - set(ports.WILDCARDS))),
            orphans.MARK: name,
            "PYTHONUNBUFFERED": "1",
        }

    async def _until_ready(self, readiness: Readiness) -> None:
        ready = asyncio.create_task(readiness.wait())
        try:
            for second in itertools.count(1):
                if (await asyncio.wait({ready}, timeout=1))[0]:
                    break
                self._give_up_on_a_hopeless_web()
                if second % MISSING_EVERY == 0:
                    self.console.say(f"Not ready yet: {await readiness.missing() or 'almost'}.")
            ready.result()
        finally:
            await cancel(ready)

    def _give_up_on_a_hopeless_web(self) -> None:
        for service in self._services:
            if service.part.name == "web" and service.failing >= HOPELESS:
                raise OpsError(
                    f"The web server ended {service.failing} times at its start; "
                    f"the reason is in {self.home.log / 'web.log'}."
                )

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._on_signal)

    def _on_signal(self) -> None:
        self._signals += 1
        if self._signals == 1:
            self.console.say("Stopping: running work is checkpointed first. Ctrl-C again kills at once.")
            self._stopping.set()
            return
        self.console.say("Killing everything.", trouble=True)
        for service in self._services:
            service.kill()

    async def _stop_all(self) -> None:
        """End the parts so that none misses one it needs: the scheduler first, the broker last."""
        order = ("scheduler", "worker", "serving", "web", "broker")
        for name in order:
            stage = [service for service in self._services if service.part.name.split("-")[0] == name]
            await asyncio.gather(*(service.stop() for service in stage))
        orphans.sweep(self.home)
        self.console.say("Stopped.")
