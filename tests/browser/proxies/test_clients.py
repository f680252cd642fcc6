"""Programs that use REST behind the shipped configurations of proxies: event streams and large bodies."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx2
import pytest

from jobs.actions.people import tokens
from jobs.actions.runs import events
from jobs.models import Artifact, Job
from tests.browser.proxies.front_door import USUAL_BODY_SIZE, behind_caddy, behind_nginx, program
from tests.factories import make_job
from tests.people import People
from webapp.live import readers

Proxy = Callable[[str, Path], AbstractContextManager[str]]
LINES = 5
BODY_BYTES = 48 * 2**20


@pytest.fixture
def job(people: People) -> Job:
    return make_job(by=people.member, project=people.project, kind="train", state="running")


@pytest.fixture
def client(people: People) -> Iterator[httpx2.Client]:
    _, token = tokens.create(people.member, by=people.member, scopes=["read", "write"], name="program")
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(verify=False, trust_env=False, headers=headers, timeout=60) as opened:
        yield opened


def log_line(job: Job, text: str) -> None:
    events.append(job.pk, [events.event("log", job, level="info", source="runner", line=text)])


def read_lines(
    client: httpx2.Client, address: str, job: Job, last: str, count: int, then: Callable[[str], object]
) -> list[tuple[str, str]]:
    """Return the cursors and texts of log lines of an event stream; `then` is called before each."""
    headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
    found: list[tuple[str, str]] = []
    with client.stream("GET", f"{address}/api/v1/jobs/{job.pk}/events", headers=headers) as response:
        assert response.status_code == 200
        cursor = ""
        for line in response.iter_lines():
            name, _, value = line.partition(": ")
            if name == "" and value == "hello":
                then("hello")
            if name == "id":
                cursor = value
            if name == "data" and "line" in json.loads(value):
                found.append((cursor, json.loads(value)["line"]))
                if len(found) == count:
                    break
                then(value)
    return found


@pytest.mark.parametrize("proxy", [behind_nginx, behind_caddy])
def test_each_event_arrives_at_once_and_a_stream_continues_after_its_last_event(
    client: httpx2.Client, server: str, job: Job, tmp_path: Path, proxy: Proxy
) -> None:
    written = iter(range(1, 2 * LINES + 1))

    def write_next(_: str) -> None:
        # Each is written once the one before has arrived: with a proxy that collects events, none would.
        if (number := next(written, None)) is not None:
            threading.Thread(target=log_line, args=(job, f"line {number}")).start()

    with proxy(server, tmp_path) as address:
        begin = time.monotonic()
        first = read_lines(client, address, job, "", LINES, write_next)
        assert time.monotonic() - begin < 15
        second = read_lines(client, address, job, first[-1][0], LINES, write_next)
    assert [text for _, text in first + second] == [f"line {n}" for n in range(1, 2 * LINES + 1)]


@pytest.mark.parametrize("proxy", [behind_nginx, behind_caddy])
def test_a_stream_ends_at_the_server_when_its_client_leaves(
    client: httpx2.Client, server: str, job: Job, tmp_path: Path, proxy: Proxy
) -> None:
    headers = {"Accept": "text/event-stream"}
    with proxy(server, tmp_path) as address:
        for _ in range(readers.MAX_PER_PERSON + 5):
            with client.stream("GET", f"{address}/api/v1/jobs/{job.pk}/events", headers=headers) as response:
                # Too many streams of one person that stay open are refused.
                assert response.status_code == 200, response.read()
                next(response.iter_lines())
            time.sleep(0.1)  # the proxy notices the end of the connection


@pytest.mark.parametrize("proxy", [behind_nginx, behind_caddy])
def test_a_large_body_is_not_collected_by_the_proxy(
    client: httpx2.Client, server: str, people: People, tmp_path: Path, proxy: Proxy
) -> None:
    row = b"1234567,7654321\n"

    def blocks() -> Iterator[bytes]:
        yield b"id,price\n"
        block = row * (2**20 // len(row))
        for _ in range(BODY_BYTES // len(block)):
            yield block

    file = tmp_path / "orders.csv"
    with file.open("wb") as opened:
        opened.writelines(blocks())
    with proxy(server, tmp_path) as address, file.open("rb") as content:
        response = client.post(
            f"{address}/api/v1/datasets",
            data={"project": people.project.slug, "slug": "orders"},
            files={"file": ("orders.csv", content)},
        )
        assert response.status_code == 201, response.text
        # nginx collects bodies in files here.
        assert not [path for path in tmp_path.glob("body/*") if path.is_file()]
    assert Artifact.objects.filter(bytes=file.stat().st_size).exists()


def send_with_curl(file: Path, address: str, authorization: str) -> "subprocess.CompletedProcess[str]":
    """Send a file; unlike the client of the other tests, curl reads the answer while it sends."""
    return subprocess.run(
        [
            *(program("curl"), "--silent", "--show-error", "--insecure", "--noproxy", "*"),
            # With HTTP/2, curl 7.88 drops an answer whose stream the proxy resets, as Caddy does.
            *("--http1.1", "--max-time", "60", "--header", f"Authorization: {authorization}"),
            *("--form", f"file=@{file}", f"{address}/api/v1/datasets"),
        ],
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("proxy", [behind_nginx, behind_caddy])
def test_a_body_beyond_the_limit_gets_the_sentence_of_trainyard(
    client: httpx2.Client, server: str, tmp_path: Path, proxy: Proxy
) -> None:
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        # More than TRAINYARD_MAX_UPLOAD_BYTES, and less than the limit of nginx. It takes no space.
        file.truncate(3 * 2**29)
    with proxy(server, tmp_path) as address:
        # Caddy cuts a connection half a second after the answer, and a client that still sends may lose it.
        for _ in range(6 if proxy is behind_caddy else 1):
            done = send_with_curl(large, address, client.headers["Authorization"])
            if done.stdout:
                break
    assert done.stdout, f"curl ended with {done.returncode}: {done.stderr}"
    document = json.loads(done.stdout)
    assert document["status"] == 413
    assert "larger than the limit of 1,073,741,824 bytes" in document["detail"]


def test_a_refusal_of_the_shipped_configuration_names_the_setting_of_nginx(
    client: httpx2.Client, server: str, tmp_path: Path
) -> None:
    with behind_nginx(server, tmp_path, USUAL_BODY_SIZE) as address:
        response = client.post(f"{address}/api/v1/datasets", files={"file": ("a.csv", b"x" * 2**21)})
    assert response.status_code == 413
    assert response.headers["content-type"].startswith("application/problem+json")
    assert "client_max_body_size" in response.json()["detail"]
