"""Requests for predictions that repeat the head of an earlier one are answered like others, but directly."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
import uvicorn
from uvicorn.server import ServerState

from jobs.messages.release import ReleasedVersion
from jobs.spec.signature import Signature, TensorSpec
from transport.http import close_slow
from workers.model_process.errors import NotFound, ServingError
from workers.model_process.frames import Frame
from workers.serving import auth
from workers.serving.access import Access
from workers.serving.app import ServingApp
from workers.serving.asgi import Headers
from workers.serving.auth import TokenAuthenticator
from workers.serving.bodies.codec import BodyCodec
from workers.serving.bodies.pool import BodyWorkers
from workers.serving.counting import RequestCounter
from workers.serving.direct import DirectPredictions
from workers.serving.direct_http import DirectHttpProtocol
from workers.serving.metrics import Metrics
from workers.serving.protocols.target import Target
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.endpoint import PickedVersion
from workers.serving.settings import Limits
from workers.serving.traffic import Traffic
from workers.serving.versions.batcher import Answer, Batcher, BatchLimits, Outputs, WorkItem
from workers.serving.versions.child_process import Answered, ChildFailed
from workers.serving.versions.version import LoadedVersion

Arrays = Sequence[npt.NDArray[Any]]
ONE = {"instances": [[1, 2, 3, 4]]}
LENGTH = len(json.dumps(ONE))
SIGNATURE = Signature(
    inputs=(TensorSpec(name="x", dtype="float32", shape=(4,)),),
    outputs=(TensorSpec(name="y", dtype="float32", shape=(4,)),),
)


class Child:
    """Doubles its inputs; while `is_holding`, only when the test calls `answer`."""

    is_compiling = False

    def __init__(self) -> None:
        self.is_holding = False
        self.failure: ChildFailed | None = None
        self.held: list[tuple[Answered, Arrays]] = []
        self.sent = asyncio.Event()

    def predict(self, tensors: Arrays, answered: Answered) -> None:
        self.held.append((answered, tensors))
        self.sent.set()
        if not self.is_holding:
            asyncio.get_running_loop().call_soon(self.answer)

    def answer(self) -> None:
        answered, tensors = self.held.pop(0)
        answered(self.failure or Frame({}, [tensors[0] * 2]))

    def kill(self) -> None:
        raise AssertionError


class Version:
    """A version as the application uses it, with a real queue."""

    table = None

    def __init__(self, child: Child) -> None:
        self.approved = ReleasedVersion(number=3, digest="ab", bytes=0, signature={})
        self.headers: Headers = [(b"x-trainyard-model-version", b"3")]
        self.batcher = Batcher(BatchLimits(max_batch=4, queue_rows=16))
        self.batcher.attach(child)

    @property
    def waiting_rows(self) -> int:
        return self.batcher.waiting_rows

    def signature_now(self) -> Signature:
        return SIGNATURE

    async def predict(self, arrays: Arrays, _request: object, _deadline: float) -> Outputs:
        future: asyncio.Future[Outputs] = asyncio.get_running_loop().create_future()
        self.batcher.submit(arrays, future)
        return await future

    def submit(self, arrays: Arrays, answer: Answer) -> WorkItem:
        return self.batcher.submit(arrays, answer)

    def cancel(self, item: WorkItem, error: ServingError) -> None:
        self.batcher.cancel(item, error)


class Models:
    """A catalog with the model `m`."""

    def __init__(self, child: Child) -> None:
        self.endpoints = {"m": Version(child)}

    def pick(self, target: Target) -> PickedVersion:
        if target.model not in self.endpoints:
            raise NotFound("Servable not found")
        return PickedVersion(cast(LoadedVersion, self.endpoints[target.model]), target.label or "production")

    def columns_size(self, model: str) -> int:
        endpoint = self.endpoints.get(model)
        return 0 if endpoint is None or endpoint.table is None else endpoint.table.size


class Serving:
    """A listening server, and the number of requests that it answered directly."""

    def __init__(self, limits: Limits, authenticator: TokenAuthenticator | None) -> None:
        self.child, self.metrics, self.direct = Child(), Metrics(), 0
        catalog, traffic = cast(Catalog, Models(self.child)), Traffic(1)
        self.workers = BodyWorkers(1)
        bodies, hosts = BodyCodec(self.workers), ("localhost",)
        app = ServingApp(catalog, self.metrics, traffic, limits, authenticator, bodies, hosts)
        counter = RequestCounter(catalog, self.metrics, traffic)
        serving = self

        class Protocol(DirectHttpProtocol):
            predictions = DirectPredictions(catalog, counter, limits, authenticator, bodies, hosts)

            def _predict(self, *arguments: Any) -> None:
                serving.direct += 1
                super()._predict(*arguments)

        self.state = ServerState()
        config = uvicorn.Config(app, http=Protocol, lifespan="off", access_log=False, log_config=None)
        self.protocol = lambda: Protocol(config, self.state, {})

    @property
    def connections(self) -> list[DirectHttpProtocol]:
        return cast(list[DirectHttpProtocol], list(self.state.connections))

    def counted(self, status: str) -> int:
        found = re.search(rf'request_count.*status="{status}".* (\d+)\n', self.metrics.text().decode())
        return int(found[1]) if found else 0


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, content: bytes) -> tuple[bytes, bytes]:
        self.writer.write(content)
        return await self.response()

    async def response(self) -> tuple[bytes, bytes]:
        async with asyncio.timeout(30):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"\r\ncontent-length: ")[1].split(b"\r\n")[0])
            return head, await self.reader.readexactly(length)


def request(body: object = ONE, path: str = "/v1/models/m:predict", **headers: str) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Host": "localhost", **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"POST {path} HTTP/1.1\r\n{lines}Content-Length: {len(content)}\r\n\r\n".encode() + content


@pytest.fixture
def limits() -> Limits:
    return Limits()


@pytest.fixture
def authenticator() -> TokenAuthenticator | None:
    return None


@pytest.fixture
async def serving(limits: Limits, authenticator: TokenAuthenticator | None) -> AsyncIterator[Serving]:
    serving = Serving(limits, authenticator)
    server = await asyncio.get_running_loop().create_server(serving.protocol, "127.0.0.1", 0)
    serving.port = server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    yield serving
    server.close()
    for connection in list(serving.state.connections):
        connection.transport.abort()
    await serving.workers.close()


@pytest.fixture
async def client(serving: Serving) -> Client:
    reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)  # type: ignore[attr-defined]
    return Client(reader, writer)


def without_date(response: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    return re.sub(rb"date: [^\r]*\r\n", b"", response[0]), response[1]


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
    found = [json.loads((await client.response())[1])["predictions"][0][0] for _ in range(2)]
    assert found == [2, 14]


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
    found = [json.loads((await client.response())[1])["predictions"][0][0] for _ in range(3)]
    assert found == [2, 4, 6]
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
