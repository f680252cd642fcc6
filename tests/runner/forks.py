"""Runners forked as on a node: those that tests start by the dozen share the imports of one fork server."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from jobs.contracts.fork import LARGEST, ForkRequest
from workers.runner.environment import Environment

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 180.0


class Forked:
    """A runner that was forked: as much of a `Popen` as tests ask of one."""

    def __init__(self, server: "ForkServer", pid: int, stdin: IO[bytes]) -> None:
        self.pid = pid
        self.stdin = stdin
        self._server = server

    def wait(self, timeout: float = PATIENCE) -> int:
        """Return its exit status, once the server tells it."""
        return self._server.status_of(self.pid, timeout)

    def poll(self) -> int | None:
        """Return its exit status, None while nobody has asked for it or it runs."""
        return self._server.ended.get(self.pid)

    def send_signal(self, number: int) -> None:
        """Send a signal to one that runs."""
        os.kill(self.pid, number)


class ForkServer:
    """The real one, spoken to without an event loop."""

    def __init__(self, connection: socket.socket) -> None:
        self.ended: dict[int, int] = {}
        self._connection = connection
        self._hear("ready", PATIENCE)

    def fork(self, environment: Mapping[str, str], output: IO[bytes], events: int) -> Forked:
        """Return a new runner, which shares nothing but the imports with those before it."""
        theirs, ours = os.pipe()
        request = ForkRequest(folder=str(ROOT), environment=dict(environment), module="workers.runner")
        streams = [theirs, output.fileno(), output.fileno(), events]
        socket.send_fds(self._connection, [request.model_dump_json().encode()], streams)
        os.close(theirs)
        return Forked(self, self._hear("forked", PATIENCE), os.fdopen(ours, "wb"))

    def status_of(self, pid: int, timeout: float) -> int:
        """Wait for the end of a runner."""
        while pid not in self.ended:
            self._hear("ended", timeout)
        return self.ended[pid]

    def _hear(self, kind: str, timeout: float) -> int:
        """Return what the next message of a kind says; note the ends that are told before it."""
        self._connection.settimeout(timeout)
        while True:
            said = json.loads(self._connection.recv(LARGEST) or b'{"failed": "it is gone"}')
            assert "failed" not in said, said
            if "ended" in said:
                self.ended[said["ended"]] = said["status"]
            if kind in said:
                return int(said[kind])


@contextmanager
def fork_server(folder: Path) -> Iterator[ForkServer]:
    """Give one that has its imports; with it die the runners that it has forked."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "workers.runner.forkserver", "--socket", str(theirs.fileno())]
    environment = json.dumps(Environment(threads=1)._asdict())
    with ours, theirs, (folder / "forkserver.log").open("wb") as output:
        process = subprocess.Popen(
            [*command, "--parent", str(os.getpid()), "--environment", environment],
            cwd=ROOT, stdout=output, stderr=output, pass_fds=(theirs.fileno(),),
        )  # fmt: skip
        theirs.close()
        try:
            yield ForkServer(ours)
        finally:
            process.kill()
            process.wait()
