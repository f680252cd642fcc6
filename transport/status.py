"""A small HTTP listener for parts that have no server: it answers probes and scrapes from a thread.

The thread waits for connections and uses no time without any. It is not the part's own loop, so it also
answers when that one hangs.
"""

import contextlib
import ipaddress
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qs

log = logging.getLogger(__name__)

REQUEST_SECONDS = 5.0
MAX_HEAD_BYTES = 16 * 2**10
MAX_CONNECTIONS = 16
JSON = "application/json"


@dataclass(frozen=True)
class StatusRequest:
    """A request.

    Attributes:
        path: without the query.
        query: the values of each parameter.
        headers: by lower-case names.
    """

    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]

    @property
    def host(self) -> str:
        """The name or address in the header `Host`, without a port."""
        text = self.headers.get("host", "")
        if text.startswith("["):
            return text[1:].partition("]")[0]
        return text.partition(":")[0]


@dataclass(frozen=True)
class StatusResponse:
    """A response."""

    status: int
    body: bytes
    media_type: str = JSON


Answer = Callable[[StatusRequest], StatusResponse]


def json_response(code: int, /, **fields: object) -> StatusResponse:
    """Return a response with an object."""
    return StatusResponse(code, json.dumps(fields).encode() + b"\n")


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`, with brackets round an IPv6 address. Port 0 chooses a free one.

    Raises:
        ValueError: the text is no such address.
    """
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not bare or (":" in bare and bare == host) or not (port.isascii() and port.isdecimal()):
        raise ValueError(f"{text!r} is no address: give HOST:PORT, such as 127.0.0.1:9100")
    if int(port) > 65535:
        raise ValueError(f"{text!r} is no address: ports go from 0 to 65535")
    return bare, int(port)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address. An unknown name counts as reachable."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class StatusListener:
    """Answers GET and HEAD at one address, each connection once.

    Args:
        host, port: the address.
        routes: the answer of each path.

    Raises:
        OSError: the address cannot be bound.
    """

    def __init__(self, host: str, port: int, routes: Mapping[str, Answer]) -> None:
        self._routes = routes
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(address)
        self._socket.listen(MAX_CONNECTIONS)
        self._places = threading.Semaphore(MAX_CONNECTIONS)

    @property
    def port(self) -> int:
        """The port, also if it was chosen by the system."""
        return int(self._socket.getsockname()[1])

    def start(self) -> None:
        """Begin to answer."""
        threading.Thread(target=self._serve, name="status", daemon=True).start()

    def close(self) -> None:
        """Answer no further connection."""
        # Wakes the thread that waits for a connection, unlike `close` alone.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                # Closed; or too many files are open, which may pass.
                if self._socket.fileno() == -1:
                    return
                time.sleep(1)
                continue
            if not self._places.acquire(blocking=False):
                connection.close()
                continue
            try:
                threading.Thread(target=self._answer, args=(connection,), name="status", daemon=True).start()
            except RuntimeError:  # no further thread can be started
                self._places.release()
                connection.close()

    def _answer(self, connection: socket.socket) -> None:
        try:
            with connection, contextlib.suppress(OSError):
                deadline = time.monotonic() + REQUEST_SECONDS
                is_head, response = self._response(_read_head(connection, deadline))
                connection.settimeout(REQUEST_SECONDS)
                connection.sendall(_encode(response, with_body=not is_head))
        finally:
            self._places.release()

    def _response(self, head: bytes) -> tuple[bool, StatusResponse]:
        try:
            method, request = _parse(head)
        except ValueError:
            return False, json_response(400, detail="The request is malformed.")
        answer = self._routes.get(request.path)
        if answer is None:
            paths = ", ".join(sorted(self._routes))
            return False, json_response(404, detail=f"There are only: {paths}.")
        if method not in ("GET", "HEAD"):
            return False, json_response(405, detail="Use GET.")
        try:
            return method == "HEAD", answer(request)
        # Whatever fails, the part continues, and the monitor gets an answer.
        except Exception:
            log.exception("%s failed", request.path)
            return method == "HEAD", json_response(500, detail="Internal error. It has been logged.")


def _read_head(connection: socket.socket, deadline: float) -> bytes:
    """Read until the end of the head. A head that is too long or too late is cut off, and so malformed."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < MAX_HEAD_BYTES:
        if (rest := deadline - time.monotonic()) <= 0:
            break
        connection.settimeout(rest)
        if not (data := connection.recv(4096)):
            break
        head += data
    return head


def _parse(head: bytes) -> tuple[str, StatusRequest]:
    text, end, _ = head.partition(b"\r\n\r\n")
    if not end:
        raise ValueError("the head has no end")
    first, *lines = text.decode("latin-1").split("\r\n")
    method, target, version = first.split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("another protocol")
    pairs = [line.partition(":") for line in lines]
    path, _, query = target.partition("?")
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return method, StatusRequest(path, parse_qs(query, keep_blank_values=True), headers)


def _encode(response: StatusResponse, *, with_body: bool) -> bytes:
    status = HTTPStatus(response.status)
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Type: {response.media_type}",
        f"Content-Length: {len(response.body)}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if response.status == HTTPStatus.UNAUTHORIZED:
        lines.append('WWW-Authenticate: Bearer realm="trainyard"')
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    return head + response.body if with_body else head
