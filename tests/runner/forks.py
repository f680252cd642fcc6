"""Forks runners from a fork server, so that tests with many runners share its imports."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from jobs.messages.fork import MAX_DATAGRAM, ForkRequest
from workers.runner.environment import Environment

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 180.0


class ForkedRunner:
    """A forked runner with those `Popen` methods that the tests use."""

    def __init__(self, server: "ForkServer", pid: int, stdin: IO[bytes]) -> None:
        self.pid = pid
        self.stdin = stdin
        self._server = server

    def wait(self, timeout: float = TIMEOUT) -> int:
        """Wait for its end and return its exit status."""
        return self._server.status_of(self.pid, timeout)

    def poll(self) -> int | None:
        """Return its exit status if `wait` has seen it, else None."""
        return self._server.ended.get(self.pid)

    def send_signal(self, number: int) -> None:
        """Send a signal to the runner."""
        os.kill(self.pid, number)


class ForkServer:
    """A client for the real fork server without an event loop."""

    def __init__(self, connection: socket.socket) -> None:
        self.ended: dict[int, int] = {}
        self._connection = connection
        self._receive("ready", TIMEOUT)

    def fork(self, environment: Mapping[str, str], output: IO[bytes], events: int) -> ForkedRunner:
        """Fork a new runner."""
        theirs, ours = os.pipe()
        request = ForkRequest(folder=str(ROOT), environment=dict(environment), module="workers.runner")
        streams = [theirs, output.fileno(), output.fileno(), events]
        socket.send_fds(self._connection, [request.model_dump_json().encode()], streams)
        os.close(theirs)
        return ForkedRunner(self, self._receive("forked", TIMEOUT), os.fdopen(ours, "wb"))

    def status_of(self, pid: int, timeout: float) -> int:
        """Wait for a runner's end and return its exit status."""
        while pid not in self.ended:
            self._receive("ended", timeout)
        return self.ended[pid]

    def _receive(self, kind: str, timeout: float) -> int:
        """Return the value in a kind's next message, and record the ends reported before it."""
        self._connection.settimeout(timeout)
        while True:
            message = json.loads(self._connection.recv(MAX_DATAGRAM) or b'{"failed": "it is gone"}')
            assert "failed" not in message, message
            if "ended" in message:
                self.ended[message["ended"]] = message["status"]
            if kind in message:
                return int(message[kind])


@contextmanager
def fork_server(folder: Path) -> Iterator[ForkServer]:
    """Provide a ready fork server; its runners die with it."""
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
