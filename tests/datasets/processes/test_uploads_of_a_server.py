"""A real web server that receives an upload: it is killed in the middle, and its memory is measured."""

import base64
import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from django.conf import settings
from django.db import connection

from jobs import upload_files
from jobs.actions.people import tokens
from jobs.models import DatasetVersion
from tests.people import People, make_people

ROOT = Path(__file__).resolve().parents[3]
MIB = 2**20
MAX_GROWTH = 64 * MIB
PART_TYPE = "application/offset+octet-stream"
HTTP = httpx2.Client(trust_env=False, timeout=120, limits=httpx2.Limits(max_keepalive_connections=0))
"""Shared: each new client loads all CA certificates, which takes 40 ms of CPU."""


def database_url() -> str:
    parameters = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{parameters['NAME']}"
    login = f"{parameters['USER']}:{parameters['PASSWORD']}@{parameters['HOST']}:{parameters['PORT'] or 5432}"
    return f"postgresql://{login}/{parameters['NAME']}"


class Server:
    """A web server on the test database."""

    def __init__(self) -> None:
        with closing(socket.socket()) as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = int(listener.getsockname()[1])
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "webapp.settings.test",
            "TRAINYARD_DATABASE_URL": database_url(),
        }
        command = [sys.executable, "-m", "uvicorn", "webapp.asgi:application", "--port", str(self.port)]
        flags = ["--lifespan", "off", "--log-level", "warning", "--ws", "websockets-sansio"]
        self.process = subprocess.Popen([*command, *flags], cwd=ROOT, env=environment)
        self.address = f"http://127.0.0.1:{self.port}"

    def wait(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self.process.poll() is None
            try:
                if HTTP.get(f"{self.address}/healthz").is_success:
                    return
            except httpx2.TransportError:
                time.sleep(0.1)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def peak_bytes(self) -> int:
        """Return the largest memory that the process has had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024


@pytest.fixture
def people(transactional_db: None) -> People:
    return make_people()


@pytest.fixture
def start() -> Iterator[Callable[[], Server]]:
    servers: list[Server] = []

    def begin() -> Server:
        servers.append(Server())
        servers[-1].wait()
        return servers[-1]

    yield begin
    for server in servers:
        server.kill()


@pytest.fixture
def headers(people: People) -> dict[str, str]:
    secret = tokens.create(people.member, by=None, scopes=("read", "write"))[1]
    return {"Authorization": f"Bearer {secret}", "Tus-Resumable": "1.0.0"}


def begin_upload(server: Server, headers: dict[str, str], length: int) -> str:
    named = {"filename": "a.csv", "project": "yard"}
    metadata = ",".join(f"{key} {base64.b64encode(text.encode()).decode()}" for key, text in named.items())
    sent = {**headers, "Upload-Length": str(length), "Upload-Metadata": metadata}
    answer = HTTP.post(f"{server.address}/api/v1/uploads", headers=sent)
    assert answer.status_code == 201, answer.text
    return answer.headers["Location"]


def send(server: Server, place: str, headers: dict[str, str], offset: int, blocks: Iterator[bytes]) -> None:
    sent = {**headers, "Upload-Offset": str(offset), "Content-Type": PART_TYPE}
    answer = httpx2.patch(server.address + place, headers=sent, content=blocks, trust_env=False, timeout=120)
    assert answer.status_code == 204, answer.text


def make_version(server: Server, place: str, headers: dict[str, str]) -> None:
    form = {"project": (None, "yard"), "slug": (None, "s"), "upload": (None, place.rsplit("/", 1)[-1])}
    address = f"{server.address}/api/v1/datasets"
    answer = HTTP.post(address, headers=headers, files=form)
    assert answer.status_code == 201, answer.text


def test_an_upload_continues_after_its_server_was_killed(
    start: Callable[[], Server], headers: dict[str, str]
) -> None:
    content = os.urandom(16) + b"a,b\n" * (8 * MIB // 4)
    content = b"a,b\n" + content.replace(b"\0", b"x")
    first = start()
    place = begin_upload(first, headers, len(content))
    path = upload_files.path_of(place.rsplit("/", 1)[-1])
    # The server gets the first 5 MiB of a part, and is killed while it waits for the rest.
    with socket.create_connection(("127.0.0.1", first.port)) as line:
        head = [f"PATCH {place} HTTP/1.1", f"Host: 127.0.0.1:{first.port}", f"Content-Length: {len(content)}"]
        more = {**headers, "Upload-Offset": "0", "Content-Type": PART_TYPE}
        head += [f"{name}: {value}" for name, value in more.items()]
        line.sendall(("\r\n".join(head) + "\r\n\r\n").encode() + content[: 5 * MIB])
        deadline = time.monotonic() + 60
        while not path.exists() or path.stat().st_size < 3 * MIB:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        first.kill()
    second = start()
    answer = httpx2.head(second.address + place, headers=headers, trust_env=False)
    offset = int(answer.headers["Upload-Offset"])
    assert 3 * MIB <= offset <= 5 * MIB
    send(second, place, headers, offset, iter([content[offset:]]))
    make_version(second, place, headers)
    version = DatasetVersion.objects.get(dataset__slug="s")
    assert version.upload is not None
    assert version.upload.digest == hashlib.sha256(content).hexdigest()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_a_large_upload_needs_little_memory_of_the_server(
    start: Callable[[], Server], headers: dict[str, str]
) -> None:
    length = 256 * MIB
    server = start()
    small = begin_upload(server, headers, 4)
    send(server, small, headers, 0, iter([b"a\n1\n"]))
    before = server.peak_bytes()
    place = begin_upload(server, headers, length)
    row = b"1,2\n" * (MIB // 4)
    send(server, place, headers, 0, (row for _ in range(length // MIB)))
    make_version(server, place, headers)
    assert server.peak_bytes() - before < MAX_GROWTH
    version = DatasetVersion.objects.get(dataset__slug="s")
    assert version.upload is not None
    assert version.upload.bytes == length
    (Path(settings.TRAINYARD_ARTIFACTS) / version.upload.digest[:2] / version.upload.digest).unlink()
