"""Sends damaged headers, queries, bodies and frames to the ASGI application; it must answer each.

TRAINYARD_FUZZ_SECONDS is the time for each test; without it, a fixed number of messages is sent.
`tests/fuzz_installation.py` does the same to a running installation.
"""

import contextlib
import json
import os
import random
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from pytest_django import Settings

from jobs.actions.people import tokens
from tests import factories, fuzzing
from tests.people import People, make_people
from webapp.asgi import application
from webapp.live import readers

SEED = 20261124
MESSAGES = 50
SECONDS = float(os.environ.get("TRAINYARD_FUZZ_SECONDS", "0"))
METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE")
PATHS = (
    "/",
    "/healthz",
    "/accounts/login/",
    "/api/v1/jobs",
    "/api/v1/experiments/validate",
    "/docs/%00",
    "//x",
)
ANSWER = 30.0
"""Seconds; far more than an answer takes."""


def rounds() -> Iterator[random.Random]:
    """Give one generator per message, each with a seed of its own."""
    ends, count = time.monotonic() + SECONDS, 0
    while time.monotonic() < ends or (not SECONDS and count < MESSAGES):
        yield random.Random(SEED + count)
        count += 1


@pytest.fixture
def people(transactional_db: None, settings: Settings) -> People:
    settings.TRAINYARD_API_BURST = 1e9
    return make_people()


async def status_of(
    dice: random.Random,
    path: str,
    body: bytes,
    *headers: tuple[bytes, bytes],
    methods: tuple[str, ...] = METHODS,
) -> int:
    """Send one request and return the status of its complete answer."""
    scope = {
        "type": "http",
        "method": dice.choice(methods),
        "path": path,
        "query_string": fuzzing.raw_query(dice),
        "headers": [(b"host", b"localhost"), *headers],
    }
    talk: Any = cast(Any, ApplicationCommunicator)(application, scope)
    await talk.send_input({"type": "http.request", "body": body})
    status = int((await talk.receive_output(ANSWER))["status"])
    while (await talk.receive_output(ANSWER)).get("more_body"):
        pass
    await talk.send_input({"type": "http.disconnect"})
    await talk.wait(ANSWER)
    return status


async def test_no_header_query_or_body_causes_an_internal_error(people: People) -> None:
    _, raw = await sync_to_async(tokens.create)(people.owner, by=None, scopes=["read", "write"])
    for dice in rounds():
        sent = fuzzing.headers(dice)
        if dice.random() < 0.5:
            sent = [(b"authorization", f"Bearer {raw}".encode()), *sent]
        body = dice.choice([b"", b"{}", b"\xff", fuzzing.nested(dice)])
        path = dice.choice(PATHS)
        status = await status_of(dice, path, body, *sent)
        assert status < 500, f"{path} {sent} {body[:100]!r} → {status}"


async def test_no_changed_spec_causes_an_internal_error(people: People) -> None:
    _, raw = await sync_to_async(tokens.create)(people.owner, by=None, scopes=["read", "write"])
    headers = [(b"authorization", f"Bearer {raw}".encode()), (b"content-type", b"application/json")]
    for dice in rounds():
        body = {"project": "yard", "name": "fuzz", "spec": fuzzing.spec(factories.SPEC, dice)}
        sent = json.dumps(body).encode()
        status = await status_of(dice, "/api/v1/experiments/validate", sent, *headers, methods=("POST",))
        assert status < 500, f"{sent!r} → {status}"


async def test_a_socket_survives_damaged_frames(people: People) -> None:
    _, raw = await sync_to_async(tokens.create)(people.owner, by=None, scopes=["read"])
    scope = {
        "type": "websocket",
        "path": "/ws/v1/token",
        "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {raw}".encode())],
        "query_string": b"",
        "subprotocols": [],
    }
    talk: Any = cast(Any, ApplicationCommunicator)(application, scope)
    await talk.send_input({"type": "websocket.connect"})
    assert (await talk.receive_output(ANSWER))["type"] == "websocket.accept"
    for dice in rounds():
        sent = fuzzing.frame(dice.choice([1, 0, -1, 2**70]), dice)
        key = "text" if isinstance(sent, str) else "bytes"
        await talk.send_input({"type": "websocket.receive", key: sent})
    # It answers a good one after all of them.
    await talk.send_input({"type": "websocket.receive", "text": '{"op": "subscribe", "job": 424242}'})
    while "424242" not in (await talk.receive_output(ANSWER))["text"]:
        pass
    await talk.send_input({"type": "websocket.disconnect", "code": 1000})
    await talk.wait(ANSWER)


async def test_a_client_that_left_before_an_error_was_sent_holds_no_place(people: People) -> None:
    """The server raises an error of the connection then; the socket must not count as open after it."""
    _, raw = await sync_to_async(tokens.create)(people.owner, by=None, scopes=["read"])
    messages: list[dict[str, Any]] = [
        {"type": "websocket.connect"},
        {"type": "websocket.receive", "text": "damaged"},
    ]
    messages += [{"type": "websocket.disconnect", "code": 1006}]

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "websocket.send":
            raise OSError("the client has left")

    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {raw}".encode())]
    scope = {"type": "websocket", "path": "/ws/v1/token", "headers": headers, "query_string": b""}
    with contextlib.suppress(OSError):
        await cast(Any, application)(scope, receive, send)
    assert not readers._open
