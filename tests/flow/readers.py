"""Readers of live events that reconnect and continue from their cursor."""

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx2
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

Event = dict[str, Any]


class Reader(threading.Thread):
    """Reads a root job's events until `until(cursor)`; it reconnects after interruptions and keeps errors."""

    def __init__(self, url: str, headers: dict[str, str], job: int) -> None:
        super().__init__(daemon=True)
        self.url, self.headers, self.job = url, headers, job
        self.cursors: list[int] = []
        self.interruptions = 0
        self.errors: list[Event] = []
        self._arrived = threading.Condition()
        self._over = threading.Event()

    @property
    def cursor(self) -> int:
        """The last cursor seen."""
        return self.cursors[-1] if self.cursors else 0

    def run(self) -> None:
        while not self._over.is_set():
            try:
                self.read()
            except (OSError, WebSocketException, httpx2.HTTPError):
                self.interruptions += not self.over
                self._over.wait(0.1)  # the server restarts

    def read(self) -> None:
        """Read until the connection is interrupted or the reader is over."""
        raise NotImplementedError

    def hang_up(self) -> None:
        """End a read that waits for the server."""

    def see(self, *cursors: int) -> None:
        """Record received cursors."""
        with self._arrived:
            self.cursors += cursors
            self._arrived.notify_all()

    @property
    def over(self) -> bool:
        """Whether it was asked to end."""
        return self._over.is_set()

    def wait_until(self, last: int, seconds: float = 240) -> None:
        """Wait until the event `last` has come, and end the reader."""
        self.wait_for(lambda: self.cursor >= last, seconds)
        self.end()

    def wait_for(self, condition: Callable[[], bool], seconds: float = 240) -> None:
        """Wait for something this reader sees."""
        with self._arrived:
            assert self._arrived.wait_for(condition, seconds), (self.cursor, self.interruptions, self.errors)

    def end(self) -> None:
        """Stop reading."""
        self._over.set()
        self.hang_up()
        self.join(10)


class SocketReader(Reader):
    """Through the WebSocket for scripts."""

    def read(self) -> None:
        address = self.url.replace("http", "ws", 1) + "/ws/v1/token"
        with connect(address, additional_headers=self.headers, open_timeout=20) as connection:
            connection.send(json.dumps({"op": "subscribe", "job": self.job, "after": self.cursor or None}))
            while not self.over:
                try:
                    frame = json.loads(connection.recv(timeout=0.5))
                except TimeoutError:
                    continue
                if frame["type"] == "events":
                    self.see(*(item["cursor"] for item in frame["items"]))
                elif frame["type"] == "error":
                    self.errors.append(frame)
                    return  # subscribe again


class StreamReader(Reader):
    """Through server-sent events."""

    _socket: socket.socket | None = None

    def read(self) -> None:
        headers = {**self.headers, "Accept": "text/event-stream", "Last-Event-ID": str(self.cursor)}
        address = f"{self.url}/api/v1/jobs/{self.job}/events"
        with httpx2.stream("GET", address, headers=headers, timeout=httpx2.Timeout(20, read=20)) as answer:
            answer.raise_for_status()
            self._socket = answer.extensions["network_stream"].get_extra_info("socket")
            for line in answer.iter_lines():
                if line.startswith("id: "):
                    self.see(int(line.removeprefix("id: ")))
                if self.over:
                    return

    def hang_up(self) -> None:
        # The server sends nothing for 15 s if there are no events.
        if self._socket is not None:
            with suppress(OSError):  # it is closed already
                self._socket.shutdown(socket.SHUT_RDWR)
