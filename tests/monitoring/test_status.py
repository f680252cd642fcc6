"""The probes and metrics of scheduler and workers, at an address of their own."""

import asyncio
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobs.monitoring import exposition
from jobs.monitoring.exposition import Exposition
from jobs.monitoring.scheduler import HANGING_SECONDS, READY_SECONDS, SchedulerState
from jobs.monitoring.scrape_access import ScrapeAccess
from jobs.monitoring.status import BadStatusAddress, Checks, routes, start_listener
from transport import status as status_module
from transport.status import StatusListener, StatusRequest, parse_address
from workers.node import status as node_status
from workers.node.status import NodeStatus


class Access(ScrapeAccess):
    """Knows one token."""

    def status(self, authorization: str) -> int:
        return 200 if authorization == "Bearer ty_monitor" else 401


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask neither database nor broker."""
    monkeypatch.setattr(exposition, "MEASURES", {"database": lambda: 0.002, "broker": lambda: None})
    monkeypatch.setattr(exposition._services, "_read_at", float("-inf"))


@pytest.fixture
def state() -> SchedulerState:
    state = SchedulerState()
    state.turn()
    state.finish(is_leader=True)
    return state


type Listen = Callable[..., str]


@pytest.fixture
def listen(state: SchedulerState) -> Iterator[Listen]:
    listeners: list[StatusListener] = []

    def start(*, needs_token: bool = False) -> str:
        answers = routes(state.checks, Exposition(state.families), Access(), needs_token=needs_token)
        listener = StatusListener("127.0.0.1", 0, answers)
        listeners.append(listener)
        listener.start()
        return f"http://127.0.0.1:{listener.port}"

    yield start
    for listener in listeners:
        listener.close()


def get(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_scheduler_whose_loop_turns_is_live_and_ready(listen: Listen, state: SchedulerState) -> None:
    url = listen()
    assert get(f"{url}/livez")[0] == 200
    assert get(f"{url}/readyz") == (200, '{"status": "ready"}\n')
    text = get(f"{url}/metrics")[1]
    assert "trainyard_scheduler_leader 1.0" in text
    assert "trainyard_scheduler_pass_seconds_count 1.0" in text
    assert "trainyard_database_latency_seconds 0.002" in text
    assert "trainyard_broker_up 0.0" in text
    assert 'trainyard_disk_free_bytes{folder="home"}' in text


def test_a_scheduler_whose_loop_hangs_is_not_live(listen: Listen, state: SchedulerState) -> None:
    state.turned = time.monotonic() - HANGING_SECONDS - 1
    status, body = get(f"{listen()}/livez")
    assert status == 503
    assert json.loads(body)["reason"] == "the scheduler's loop has not turned for 121 s"
    assert get(f"{listen()}/readyz")[0] == 503


def test_a_scheduler_without_the_database_is_live_but_not_ready(
    listen: Listen, state: SchedulerState
) -> None:
    state.succeeded = time.monotonic() - READY_SECONDS
    url = listen()
    assert get(f"{url}/livez")[0] == 200
    assert get(f"{url}/readyz") == (503, '{"status": "not ready", "missing": ["database"]}\n')
    assert get(f"{url}/readyz?without=database")[0] == 200
    assert get(f"{url}/readyz?without=nothing")[0] == 422


def test_probes_need_no_token_and_no_host_and_metrics_do(listen: Listen) -> None:
    url = listen(needs_token=True)
    assert get(f"{url}/livez", Host="evil.example")[0] == 200
    assert get(f"{url}/metrics")[0] == 401
    assert get(f"{url}/metrics", Authorization="Bearer ty_monitor")[0] == 200


def test_metrics_without_a_token_are_for_loopback_names_alone(listen: Listen) -> None:
    url = listen()
    assert get(f"{url}/metrics", Host="evil.example:9100")[0] == 403
    assert get(f"{url}/metrics", Host="localhost:9100")[0] == 200


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /other HTTP/1.1\r\n\r\n", 404),
        (b"POST /livez HTTP/1.1\r\n\r\n", 405),
        (b"GET /livez HTTP/1.0\r\n\r\n", 200),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
        (b"GET /livez\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 400),
    ],
)
def test_any_bytes_get_an_answer(listen: Listen, sent: bytes, status: int) -> None:
    port = int(listen().rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(sent)
        assert client.recv(12) == f"HTTP/1.1 {status}".encode()


def test_a_slow_client_takes_one_place_and_not_for_long(
    listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_module, "REQUEST_SECONDS", 0.2)
    url = listen()
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=20) as client:
        client.sendall(b"GET /livez")
        assert get(f"{url}/livez")[0] == 200
        assert b" 400 " in client.recv(100) or client.recv(100) == b""


@pytest.mark.parametrize("text", ["9100", "localhost", ":9100", "host:port", "::1:9100", "a:70000", "a:-1"])
def test_an_address_that_is_none_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(BadStatusAddress, match=r"--status-address \(or TRAINYARD_STATUS_ADDRESS\)"):
        start_listener(text, Checks(lambda: None, list), Exposition)


def test_addresses_have_hosts_and_ports() -> None:
    assert parse_address("0.0.0.0:9100") == ("0.0.0.0", 9100)
    assert parse_address("[::1]:0") == ("::1", 0)


def test_without_an_address_nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINYARD_STATUS_ADDRESS", raising=False)
    threads = threading.active_count()
    assert start_listener(None, Checks(lambda: None, list), Exposition) is None
    assert threading.active_count() == threads


def test_a_busy_address_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(BadStatusAddress, match=address):
            start_listener(address, Checks(lambda: None, list), Exposition)


class Membership:
    """A registered worker."""

    slots, lease_seconds, no_room, refusal = 2, 15.0, None, None
    seconds_unconfirmed = 1.0
    devices: tuple[dict[str, Any], ...] = (
        {
            "name": "gpu:1",
            "memory_bytes": 24_000_000_000,
            "memory_used": 22_000_000_000,
            "others_bytes": 2_100,
            "load": 0.5,
            "temperature": 61.0,
            "power_watts": 300.5,
        },
    )

    def __init__(self) -> None:
        self.attempts = self.consumer = self
        self.attempt_ids, self.started, self.seconds_silent, self.restarts = [7], 3, 0.5, 1

    def event_lag(self) -> float:
        return 4.0


async def ask(node: NodeStatus, path: str) -> tuple[int, Any]:
    checks = Checks(node._hanging, node._missing)
    answers = routes(checks, Exposition(node._families), Access(), needs_token=False)
    request = StatusRequest(path, {}, {"host": "127.0.0.1"})
    answer = await asyncio.to_thread(answers[path], request)
    return answer.status, answer.body.decode()


async def test_a_worker_is_ready_once_it_is_registered_and_confirmed() -> None:
    node = NodeStatus()
    assert (await ask(node, "/livez"))[0] == 200
    assert "registration" in (await ask(node, "/readyz"))[1]
    membership: Any = Membership()
    node.membership = membership
    assert (await ask(node, "/readyz"))[0] == 200
    text = (await ask(node, "/metrics"))[1]
    assert "trainyard_worker_attempts 1.0" in text
    assert "trainyard_worker_event_lag_seconds 4.0" in text
    assert 'trainyard_worker_gpu_memory_others_bytes{gpu="gpu:1"} 2100.0' in text
    assert "trainyard_worker_attempts_started_total 3.0" in text
    for name, value, missing in (
        ("seconds_unconfirmed", 16.0, "database"),
        ("no_room", "the disk is full", "disk"),
        ("refusal", "no driver", "devices"),
    ):
        setattr(membership, name, value)
        assert missing in (await ask(node, "/readyz"))[1]
    node.is_draining = True
    assert "draining" in (await ask(node, "/readyz"))[1]
    assert (await ask(node, "/livez"))[0] == 200


async def test_a_worker_whose_loop_hangs_is_not_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_status, "ANSWER_SECONDS", 0.05)
    node = NodeStatus()
    asked = asyncio.create_task(ask(node, "/livez"))
    await asyncio.sleep(0)
    time.sleep(0.5)
    status, body = await asked
    assert status == 503
    assert "event loop has not answered" in body
