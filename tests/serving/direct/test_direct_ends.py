"""Direct answers that are late, fail, or are for a client that has left; and their tokens."""

import asyncio
import json

import pytest

from tests.serving.direct.conftest import Serving
from tests.serving.direct.test_direct_http import Client, request, without_date
from workers.serving import auth
from workers.serving.access import Access
from workers.serving.auth import TokenAuthenticator
from workers.serving.settings import Limits
from workers.serving.versions.child_process import ChildFailed


@pytest.fixture
async def client(serving: Serving) -> Client:
    reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)  # type: ignore[attr-defined]
    return Client(reader, writer)


async def sent_directly(serving: Serving, client: Client) -> None:
    """Have one request answered, and send the same again, which waits for the child."""
    await client.ask(request())
    serving.child.is_holding = True
    serving.child.sent.clear()
    client.writer.write(request())
    async with asyncio.timeout(30):
        await serving.child.sent.wait()
    assert serving.direct == 1


async def test_a_client_that_leaves_is_counted_and_the_server_goes_on(
    serving: Serving, client: Client
) -> None:
    await sent_directly(serving, client)
    client.writer.transport.abort()
    async with asyncio.timeout(30):
        while not serving.counted("499"):
            await asyncio.sleep(0.01)
    serving.child.answer()
    assert not serving.state.connections


@pytest.mark.parametrize("limits", [Limits(request_seconds=0.2)])
async def test_a_request_whose_time_has_passed_is_answered_so(serving: Serving, client: Client) -> None:
    await sent_directly(serving, client)
    head, body = await client.response()
    assert head.startswith(b"HTTP/1.1 504 ")
    assert json.loads(body) == {"error": "Deadline exceeded"}


async def test_a_batch_that_fails_is_answered_with_its_reason(serving: Serving, client: Client) -> None:
    await sent_directly(serving, client)
    serving.child.failure = ChildFailed("The model cannot compute this", kind="input")
    serving.child.answer()
    head, body = await client.response()
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body) == {"error": "The model cannot compute this"}


async def test_a_server_that_shuts_down_answers_first_and_then_closes(
    serving: Serving, client: Client
) -> None:
    await sent_directly(serving, client)
    for connection in list(serving.state.connections):
        connection.shutdown()
    serving.child.answer()
    head, _ = await client.response()
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close\r\n" in head
    assert await client.reader.read() == b""


@pytest.mark.parametrize("limits", [Limits(max_batch=4)])
async def test_a_large_answer_is_encoded_by_a_worker(
    serving: Serving, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = await client.ask(request())
    monkeypatch.setattr("workers.serving.bodies.codec._SMALL_OUTPUT_BYTES", 1)
    direct = await client.ask(request())
    assert serving.direct == 1
    assert without_date(usual) == without_date(direct)


async def test_an_unforeseen_error_is_answered_and_logged(
    serving: Serving, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await client.ask(request())
    monkeypatch.setattr("workers.serving.direct.encode_predict", lambda *_, **__: 1 / 0)
    head, body = await client.ask(request())
    assert head.startswith(b"HTTP/1.1 500 ")
    assert json.loads(body) == {"error": "Internal error"}
    assert "ZeroDivisionError" in caplog.text
    monkeypatch.undo()
    assert (await client.ask(request()))[0].startswith(b"HTTP/1.1 200 ")


class Dashboard:
    """Knows one token."""

    access: Access | None = Access(frozenset({"m"}))

    async def access_of(self, token: str) -> Access | None:
        return self.access if token == "ty_known" else None


class TestWithTokens:
    @pytest.fixture
    def dashboard(self) -> Dashboard:
        return Dashboard()

    @pytest.fixture
    def authenticator(self, dashboard: Dashboard) -> TokenAuthenticator:
        return TokenAuthenticator(dashboard)

    async def test_a_known_token_is_answered_directly(self, serving: Serving, client: Client) -> None:
        for _ in range(2):
            head, _ = await client.ask(request(Authorization="Bearer ty_known"))
            assert head.startswith(b"HTTP/1.1 200 ")
        assert serving.direct == 1

    @pytest.mark.parametrize("header", ["Bearer ty_other", "Basic ty_known", "Bearer wrong"])
    async def test_another_token_is_refused_each_time(
        self, serving: Serving, client: Client, header: str
    ) -> None:
        for _ in range(3):
            head, _ = await client.ask(request(Authorization=header))
            assert head.startswith(b"HTTP/1.1 401 ")
        assert serving.direct == 0

    async def test_a_token_is_checked_again_when_the_answer_is_old(
        self, serving: Serving, client: Client, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await client.ask(request(Authorization="Bearer ty_known"))
        dashboard.access = None
        monkeypatch.setattr(auth, "_CACHE_SECONDS", 0.0)
        head, _ = await client.ask(request(Authorization="Bearer ty_known"))
        assert head.startswith(b"HTTP/1.1 401 ")
        assert serving.direct == 0

    @pytest.mark.parametrize(
        "access",
        [
            pytest.param(Access(frozenset({"m"}), warning="replace it"), id="a warning"),
            pytest.param(Access(frozenset({"other"})), id="another model"),
            pytest.param(Access(None), id="not for predictions"),
            pytest.param(Access(frozenset({"m"}), expires=1.0), id="expired"),
        ],
    )
    async def test_a_token_with_anything_unusual_is_left_to_the_application(
        self, serving: Serving, client: Client, dashboard: Dashboard, access: Access
    ) -> None:
        dashboard.access = access
        heads = [(await client.ask(request(Authorization="Bearer ty_known")))[0] for _ in range(3)]
        assert serving.direct == 0
        assert len({head.split(b"\r\n")[0] for head in heads}) == 1
