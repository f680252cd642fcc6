"""A listening server in the tests' process. Its model doubles its inputs, unless a test gives another one."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy.typing as npt
import uvicorn
from uvicorn.server import ServerState

from jobs.messages.release import ReleasedVersion
from jobs.spec.signature import Signature, TensorSpec
from workers.model_process.errors import NotFound, ServingError
from workers.model_process.frames import Frame
from workers.serving.app import ServingApp
from workers.serving.auth import TokenAuthenticator
from workers.serving.bodies.codec import BodyCodec
from workers.serving.bodies.pool import BodyWorkers
from workers.serving.counting import RequestCounter
from workers.serving.direct import DirectPredictions
from workers.serving.direct_http import DirectHttpProtocol
from workers.serving.metrics import Metrics
from workers.serving.protocols.protocol import Protocol
from workers.serving.protocols.table import PROTOCOLS
from workers.serving.protocols.target import Target
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.endpoint import PickedVersion
from workers.serving.request_context import RequestContext
from workers.serving.response import Headers
from workers.serving.settings import Limits
from workers.serving.table import ServedTable
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


class Served(NamedTuple):
    """The model that is served, the pipeline in front of it, and its class labels."""

    signature: Signature
    compute: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
    table: ServedTable | None = None
    class_labels: tuple[str, ...] = ()


DOUBLING = Served(SIGNATURE, lambda x: x * 2)


class Child:
    """Computes the model; while `is_holding`, only when the test calls `answer`."""

    is_compiling = False

    def __init__(self, served: Served) -> None:
        self.served = served
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
        answered(self.failure or Frame({}, [self.served.compute(tensors[0])]))

    def kill(self) -> None:
        raise AssertionError


class Version:
    """A version as the application uses it, with a real queue."""

    def __init__(self, child: Child) -> None:
        self.served, self.table = child.served, child.served.table
        self.approved = ReleasedVersion(
            number=3, digest="ab", bytes=0, signature={}, class_labels=child.served.class_labels
        )
        self.headers: Headers = [(b"x-trainyard-model-version", b"3")]
        self.batcher = Batcher(BatchLimits(max_batch=4, queue_rows=16))
        self.batcher.attach(child)

    @property
    def waiting_rows(self) -> int:
        return self.batcher.waiting_rows

    def signature_now(self) -> Signature:
        return self.served.signature

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
    """A listening server, and how many requests it answered directly."""

    port: int

    def __init__(
        self,
        limits: Limits,
        authenticator: TokenAuthenticator | None = None,
        protocols: Sequence[Protocol] = PROTOCOLS,
        served: Served = DOUBLING,
    ) -> None:
        self.child, self.metrics, self.direct = Child(served), Metrics(), 0
        catalog, traffic = cast(Catalog, Models(self.child)), Traffic(1)
        self.workers = BodyWorkers(1)
        counter, bodies = RequestCounter(catalog, self.metrics, traffic), BodyCodec(self.workers)
        context = RequestContext(catalog, counter, limits, authenticator, bodies, ("localhost",), protocols)
        app = ServingApp(context, self.metrics)
        serving = self

        class HttpProtocol(DirectHttpProtocol):
            predictions = DirectPredictions(context)

            def _predict(self, *arguments: Any) -> None:
                serving.direct += 1
                super()._predict(*arguments)

        self.state = ServerState()
        config = uvicorn.Config(app, http=HttpProtocol, lifespan="off", access_log=False, log_config=None)
        self.protocol = lambda: HttpProtocol(config, self.state, {})

    @property
    def connections(self) -> list[DirectHttpProtocol]:
        return cast(list[DirectHttpProtocol], list(self.state.connections))

    def counted(self, status: str) -> int:
        count = re.search(rf'request_count.*status="{status}".* (\d+)\n', self.metrics.text().decode())
        return int(count[1]) if count else 0


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
    fields = {"Host": "localhost", **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {path} HTTP/1.1\r\n{lines}Content-Length: {len(content)}\r\n\r\n".encode() + content


@contextlib.asynccontextmanager
async def listening(serving: Serving) -> AsyncIterator[Serving]:
    """Accept connections for a server until the block ends."""
    server = await asyncio.get_running_loop().create_server(serving.protocol, "127.0.0.1", 0)
    serving.port = server.sockets[0].getsockname()[1]
    yield serving
    server.close()
    for connection in list(serving.state.connections):
        connection.transport.abort()
    await serving.workers.close()


async def connect(serving: Serving) -> Client:
    """Return a client with one connection to a server."""
    return Client(*await asyncio.open_connection("127.0.0.1", serving.port))


def without_date(response: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    return re.sub(rb"date: [^\r]*\r\n", b"", response[0]), response[1]
