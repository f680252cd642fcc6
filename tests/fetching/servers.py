"""Servers on loopback that send files in honest and in hostile ways."""

import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

type Answer = Callable[["Exchange"], None]


class Exchange:
    """One request to a server.

    Attributes:
        head: the bytes of the request.
        stopping: set when the server ends, for answers that wait.
    """

    def __init__(self, connection: socket.socket, head: bytes, stopping: threading.Event) -> None:
        self.connection, self.head, self.stopping = connection, head, stopping

    @property
    def path(self) -> str:
        """Return the request's path."""
        return self.head.split(b" ")[1].decode()

    def send(self, *parts: bytes) -> None:
        """Send bytes."""
        for part in parts:
            self.connection.sendall(part)


class Server:
    """A server with one answer, which records request heads."""

    def __init__(self, answer: Answer, context: ssl.SSLContext | None = None) -> None:
        self.answer, self._context = answer, context
        self.heads: list[bytes] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # The client may go away at any time.
        with suppress(OSError):
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            with connection:
                head = b""
                while b"\r\n\r\n" not in head and (part := connection.recv(65536)):
                    head += part
                self.heads.append(head)
                self.answer(Exchange(connection, head, self._stopping))

    def stop(self) -> None:
        """End the server and the answers that wait."""
        self._stopping.set()
        # A blocked accept does not notice that its socket was closed.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)


@contextmanager
def serving(answer: Answer, context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Run a server during the block."""
    server = Server(answer, context)
    try:
        yield server
    finally:
        server.stop()


def file(content: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> Answer:
    """Return the answer with a file."""

    def answer(exchange: Exchange) -> None:
        announced = len(content) if length is None else length
        lines = (f"HTTP/1.1 {status}", f"Content-Length: {announced}", *headers, "", "")
        exchange.send("\r\n".join(lines).encode(), content)

    return answer


def redirect(target: str) -> Answer:
    """Return the answer that redirects to an address."""
    return file(b"", f"Location: {target}", status="302 Found")


def endless(exchange: Exchange) -> None:
    """Send data without an end and without a length."""
    exchange.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while not exchange.stopping.is_set():
        exchange.send(b"a,b\n" * 16_384)


def stalling(start: bytes) -> Answer:
    """Return the answer that stops after some bytes."""

    def answer(exchange: Exchange) -> None:
        exchange.send(start)
        exchange.stopping.wait(60)

    return answer


def certificate(folder: Path, host: str = "localhost") -> ssl.SSLContext:
    """Make a certificate in `folder/server.pem` that signs itself, and return the context of its server."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signed_certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    public = signed_certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.pem").write_bytes(public)
    (folder / "key.pem").write_bytes(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "key.pem")
    return context
