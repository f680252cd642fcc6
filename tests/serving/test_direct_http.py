"""Prediction requests that repeat an earlier head are answered like others, but directly."""

import asyncio
import json
from collections.abc import AsyncIterator, Collection

import numpy as np
import pytest

from transport.http import close_slow
from workers.serving import auth
from workers.serving.access import Access
from workers.serving.auth import TokenAuthenticator
from workers.serving.known_callers import KnownCallers
from workers.serving.settings import Limits
from workers.serving.versions.child_process import ChildFailed

from .in_process import ONE, Client, Serving, connect, listening, request, without_date

LENGTH = len(json.dumps(ONE))


@pytest.fixture
def limits() -> Limits:
    return Limits()


@pytest.fixture
def authenticator() -> TokenAuthenticator | None:
    return None


@pytest.fixture
async def serving(limits: Limits, authenticator: TokenAuthenticator | None) -> AsyncIterator[Serving]:
    async with listening(Serving(limits, authenticator)) as serving:
        yield serving


@pytest.fixture
async def client(serving: Serving) -> Client:
    return await connect(serving)


@pytest.mark.parametrize(
    ("body", "path", "status"),
    [
        pytest.param(ONE, "/v1/models/m:predict", 200, id="rows"),
        pytest.param({"inputs": [[1, 2, 3, 4]]}, "/v1/models/m:predict", 200, id="columns"),
        pytest.param(ONE, "/v1/models/m/labels/old:predict", 200, id="a label"),
        pytest.param({"instances": [[1]]}, "/v1/models/m:predict", 400, id="a shape that does not fit"),
        pytest.param(b"{", "/v1/models/m:predict", 400, id="no JSON"),
        pytest.param(b"", "/v1/models/m:predict", 400, id="nothing"),
        pytest.param(ONE, "/v1/models/other:predict", 404, id="an unknown model"),
        pytest.param({"instances": [[1, 2, 3, 4]] * 50}, "/v1/models/m:predict", 200, id="several batches"),
    ],
)
async def test_a_direct_answer_is_the_same_as_the_one_before(
    serving: Serving, client: Client, body: object, path: str, status: int
) -> None:
    usual = await client.ask(request(body, path))
    assert serving.direct == 0
    direct = await client.ask(request(body, path))
    assert serving.direct == 1
    assert usual[0].startswith(b"HTTP/1.1 %d " % status)
    assert without_date(usual) == without_date(direct)


def infer(
    rows: int = 2, *, answer_binary: bool = True, size: int | None = None, length: int | None = None
) -> bytes:
    """Return an infer request with one raw tensor; `size` and `length` replace the right ones."""
    x = np.arange(rows * 4, dtype="<f4").reshape(rows, 4)
    parameters = {"binary_data_size": x.nbytes if size is None else size}
    tensor = {"name": "x", "shape": x.shape, "datatype": "FP32", "parameters": parameters}
    head = json.dumps({"id": "7", "inputs": [tensor], "parameters": {"binary_data_output": answer_binary}})
    content = head.encode() + x.tobytes()
    return request(
        content,
        "/v2/models/m/infer",
        Inference_Header_Content_Length=str(len(head) if length is None else length),
    )


OIP = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}


@pytest.mark.parametrize(
    ("content", "status"),
    [
        pytest.param(request(OIP, "/v2/models/m/infer"), 200, id="JSON"),
        pytest.param(infer(), 200, id="raw tensors"),
        pytest.param(infer(answer_binary=False), 200, id="an answer in JSON"),
        pytest.param(infer(10_000), 200, id="a body that arrives in parts"),
        pytest.param(infer(size=31), 400, id="a size that does not fit"),
        pytest.param(infer(length=9000), 400, id="a length beyond the body"),
        pytest.param(request({"inputs": []}, "/v2/models/m/infer"), 400, id="no tensor"),
        pytest.param(request(OIP, "/v2/models/other/infer"), 404, id="an unknown model"),
    ],
)
async def test_a_direct_answer_to_an_infer_request_is_the_same_as_the_one_before(
    serving: Serving, client: Client, content: bytes, status: int
) -> None:
    usual = await client.ask(content)
    assert serving.direct == 0
    direct = await client.ask(content)
    assert serving.direct == 1
    assert usual[0].startswith(b"HTTP/1.1 %d " % status)
    assert without_date(usual) == without_date(direct)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(infer(length=70_000), id="long JSON"),
        pytest.param(infer(length=-1), id="an invalid length"),
        pytest.param(infer(20_000), id="a large body"),
        pytest.param(infer().replace(b"/infer", b"/ready"), id="another operation"),
    ],
)
async def test_unusual_infer_requests_are_left_to_the_application(
    serving: Serving, client: Client, content: bytes
) -> None:
    for _ in range(2):
        await client.ask(content)
    assert serving.direct == 0


async def test_a_body_of_another_length_is_answered_directly(serving: Serving, client: Client) -> None:
    for count in (1, 2, 3):
        rows = [[count, 0, 0, 0]] * count
        _, body = await client.ask(request({"instances": rows}))
        assert json.loads(body) == {"predictions": [[2.0 * count, 0, 0, 0]] * count}
    assert serving.direct == 2


async def test_direct_answers_are_counted(serving: Serving, client: Client) -> None:
    for body in (ONE, ONE, b"{", b"{"):
        await client.ask(request(body))
    await asyncio.sleep(0)
    assert (serving.direct, serving.counted("OK"), serving.counted("400")) == (3, 2, 2)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(request(X_Request_Timeout_Ms="5000"), id="a deadline"),
        pytest.param(request(Expect="100-continue"), id="an expectation"),
        pytest.param(request(Content_Encoding="identity"), id="an encoding"),
        pytest.param(request(path="/v1/models/m:classify"), id="another operation"),
        pytest.param(request(path="/v1/models/m/labels/%C3%A9:predict"), id="a label beyond ASCII"),
        pytest.param(request(Host="other"), id="a host that is not allowed"),
        pytest.param(request({"instances": [[1.0, 2, 3, 4]] * 5000}), id="a large body"),
        pytest.param(b"GET /v1/models/m HTTP/1.1\r\nHost: localhost\r\n\r\n", id="no prediction"),
    ],
)
async def test_unusual_requests_are_left_to_the_application(
    serving: Serving, client: Client, content: bytes
) -> None:
    if b"Expect" in content:
        client.writer.write(content)
        await client.reader.readuntil(b"\r\n\r\n")
        await client.response()
    else:
        await client.ask(content)
    client.writer.write(content)
    await client.reader.readuntil(b"\r\n\r\n")
    assert serving.direct == 0


async def test_a_head_in_two_parts_and_an_older_version_are_left_to_the_application(
    serving: Serving, client: Client
) -> None:
    await client.ask(request())
    client.writer.write(request()[:10])
    while not any(one._is_incomplete for one in serving.connections):
        await asyncio.sleep(0)
    head, _ = await client.ask(request()[10:])
    assert head.startswith(b"HTTP/1.1 200 ")
    await client.ask(request().replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert serving.direct == 0


async def send_parts(serving: Serving, client: Client, *cuts: int) -> bytes:
    """Send a request with the known head up to each cut, one after the other; return the rest."""
    content = request()
    begin = 0
    for end in (len(content) + cut for cut in cuts):
        client.writer.write(content[begin:end])
        begin = end
        while sum(len(data) for one in serving.connections for data in one._parts) < end:
            await asyncio.sleep(0)
    return content[begin:]


@pytest.mark.parametrize("cuts", [(-5,), (-LENGTH,), (-LENGTH, -3)])
async def test_a_body_in_parts_is_answered_directly(
    serving: Serving, client: Client, cuts: tuple[int, ...]
) -> None:
    usual = await client.ask(request())
    direct = await client.ask(await send_parts(serving, client, *cuts))
    assert serving.direct == 1
    assert without_date(usual) == without_date(direct)


async def test_the_head_is_known_before_the_first_body_has_arrived(serving: Serving, client: Client) -> None:
    client.writer.write(request()[:-5])
    while not any(one._known for one in serving.connections):
        await asyncio.sleep(0)
    await client.ask(request()[-5:])
    assert serving.direct == 0
    await client.ask(request())
    assert serving.direct == 1


async def test_a_body_that_takes_long_is_left_to_the_application(serving: Serving, client: Client) -> None:
    await client.ask(request())
    rest = await send_parts(serving, client, -5)
    close_slow(serving.connections)
    assert [one._is_incomplete for one in serving.connections] == [True]
    head, _ = await client.ask(rest)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert serving.direct == 0


async def test_a_request_behind_a_body_in_parts_is_answered_after_it(
    serving: Serving, client: Client
) -> None:
    await client.ask(request())
    rest = await send_parts(serving, client, -5)
    client.writer.write(rest + request({"instances": [[7, 0, 0, 0]]}))
    first_values = [json.loads((await client.response())[1])["predictions"][0][0] for _ in range(2)]
    assert first_values == [2, 14]


async def test_a_server_that_shuts_down_reads_a_body_in_parts_to_its_end(
    serving: Serving, client: Client
) -> None:
    await client.ask(request())
    rest = await send_parts(serving, client, -5)
    for connection in serving.connections:
        connection.shutdown()
    head, _ = await client.ask(rest)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close\r\n" in head


async def test_a_client_that_leaves_inside_a_body_is_forgotten(serving: Serving, client: Client) -> None:
    await client.ask(request())
    await send_parts(serving, client, -5)
    client.writer.transport.abort()
    async with asyncio.timeout(30):
        while serving.connections:
            await asyncio.sleep(0.01)


async def test_requests_that_are_sent_ahead_are_answered_in_order(serving: Serving, client: Client) -> None:
    await client.ask(request())
    serving.child.is_holding = True
    serving.child.sent.clear()
    client.writer.write(request({"instances": [[1, 0, 0, 0]]}))
    await serving.child.sent.wait()
    for value in (2, 3):
        client.writer.write(request({"instances": [[value, 0, 0, 0]]}))
        await client.writer.drain()
    serving.child.is_holding = False
    serving.child.answer()
    first_values = [json.loads((await client.response())[1])["predictions"][0][0] for _ in range(3)]
    assert first_values == [2, 4, 6]
    assert serving.direct >= 1


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
    monkeypatch.setattr("workers.serving.protocols.tensorflow_serving.encode_predict", lambda *_, **__: 1 / 0)
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

    async def known_access(self, digests: Collection[str], used: Collection[str]) -> dict[str, Access]:
        raise NotImplementedError


class TestWithTokens:
    @pytest.fixture
    def dashboard(self) -> Dashboard:
        return Dashboard()

    @pytest.fixture
    def authenticator(self, dashboard: Dashboard) -> TokenAuthenticator:
        return TokenAuthenticator(dashboard, KnownCallers(None, 3600))

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


@pytest.mark.parametrize("path", ["/v1/models/m:predict", "/v2/health/live"])
async def test_http_1_0_without_a_host_is_answered(serving: Serving, client: Client, path: str) -> None:
    content = json.dumps(ONE).encode()
    method = "POST" if path.endswith(":predict") else "GET"
    sent = content if method == "POST" else b""
    client.writer.write(f"{method} {path} HTTP/1.0\r\nContent-Length: {len(sent)}\r\n\r\n".encode() + sent)
    head, _ = await client.response()
    assert head.startswith(b"HTTP/1.1 200 ")
