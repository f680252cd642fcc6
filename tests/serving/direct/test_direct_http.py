"""Requests for predictions that repeat the head of an earlier one are answered like others, but directly."""

import asyncio
import json
import re

import numpy as np
import pytest

from tests.serving.direct.conftest import Serving

ONE = {"instances": [[1, 2, 3, 4]]}


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
