"""A TCP proxy before the web server, which breaks all connections once so many bytes were sent."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from functools import partial

BLOCK = 2**16


def break_off(end: socket.socket) -> None:
    """Reset a connection. A browser that sends a body does not notice one that is only closed."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # Wakes the thread that waits for bytes.
        end.shutdown(socket.SHUT_RDWR)
    end.close()


class CuttingProxy:
    """Forwards connections to the port of a server.

    Attributes:
        sent: bytes that clients have sent through it.
        cut_at: all connections are broken once `sent` reaches this; None: never.
        hold_at: a connection is held once it has sent this many bytes, until `release`; None: never. Other
            connections, such as that of the next page, are forwarded.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self.sent = 0
        self.cut_at: int | None = None
        self.hold_at: int | None = None
        self._may_continue = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            with contextlib.suppress(OSError):
                self._connect(client)

    @property
    def will_cut(self) -> bool:
        """Whether the connections are still to be broken."""
        return self.cut_at is not None

    def _connect(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._target))
        with self._lock:
            self._sockets |= {client, server}
        for source, target, counts in ((client, server, True), (server, client, False)):
            forward = partial(self._forward, source, target, counts=counts)
            threading.Thread(target=forward, daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, *, counts: bool) -> None:
        forwarded = 0
        with contextlib.suppress(OSError):
            while data := source.recv(BLOCK):
                forwarded += len(data)
                if counts and self.hold_at is not None and forwarded > self.hold_at:
                    self._may_continue.wait()
                target.sendall(data)
                if counts:
                    self._count(len(data))
        break_off(source)
        break_off(target)

    def _count(self, size: int) -> None:
        with self._lock:
            self.sent += size
            is_due = self.cut_at is not None and self.sent >= self.cut_at
            if is_due:
                self.cut_at = None
        if is_due:
            self.cut()

    def cut(self) -> None:
        """Break all connections."""
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for connection in sockets:
            break_off(connection)

    def hold(self, size: int) -> None:
        """Hold each connection once it has sent so many bytes, until `release`."""
        self._may_continue.clear()
        self.hold_at = size

    def release(self) -> None:
        """Forward everything again, and break the connections that were held."""
        self.hold_at = None
        self.cut()
        self._may_continue.set()

    def close(self) -> None:
        self._may_continue.set()
        self._listener.close()
        self.cut()


@contextlib.contextmanager
def cutting_proxy(port: int) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
