"""Large bodies are parsed and encoded in worker processes, with the same results as small ones."""

import json
import time
from collections.abc import AsyncIterator
from typing import Any, cast

import numpy as np
import psutil
import pytest

from jobs.messages.release import ReleasedVersion
from jobs.spec.signature import Signature, TensorSpec
from workers.model_process.errors import (
    BadRequest,
    NotFound,
)
from workers.serving.app import ServingApp
from workers.serving.asgi import Receive, Request
from workers.serving.bodies.codec import BodyCodec
from workers.serving.bodies.memory import FREE_BYTES
from workers.serving.bodies.pool import BodyWorkers
from workers.serving.counting import RequestCounter
from workers.serving.metrics import Metrics
from workers.serving.protocols import oip_infer, oip_outputs, tfs_predict
from workers.serving.protocols.open_inference import INFER
from workers.serving.protocols.protocol import AnsweringVersion
from workers.serving.protocols.target import Target
from workers.serving.protocols.tensorflow_serving import PREDICT
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.endpoint import PickedVersion
from workers.serving.request_context import RequestContext
from workers.serving.settings import Limits
from workers.serving.traffic import Traffic
from workers.serving.versions.version import LoadedVersion

ONE = Signature(
    inputs=(TensorSpec(name="x", dtype="float32", shape=(4,)),),
    outputs=(TensorSpec(name="y", dtype="float32", shape=(4,)),),
)
VALUES = np.random.default_rng(0).random((20_000, 4), np.float32)
ROWS = json.dumps({"instances": VALUES.tolist()}).encode()


@pytest.fixture
async def workers() -> AsyncIterator[BodyWorkers]:
    workers = BodyWorkers(1)
    yield workers
    await workers.close()


@pytest.fixture
def codec(workers: BodyWorkers) -> BodyCodec:
    return BodyCodec(workers)


def processes() -> list[psutil.Process]:
    children = psutil.Process().children()
    return [child for child in children if "workers.serving.bodies" in " ".join(child.cmdline())]


class _Version:
    table = None

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self.approved = ReleasedVersion(number=1, digest="", bytes=0, signature={})

    def signature_now(self) -> Signature:
        return self._signature


def serving_app(catalog: Catalog, codec: BodyCodec) -> ServingApp:
    metrics = Metrics()
    counter = RequestCounter(catalog, metrics, Traffic(1))
    return ServingApp(RequestContext(catalog, counter, Limits(), None, codec), metrics)


class _SwappingCatalog:
    """A catalog in which another version serves at each pick."""

    def __init__(self, *signatures: Signature) -> None:
        self._coming = iter(signatures)

    def pick(self, target: Target) -> Any:
        return PickedVersion(cast(LoadedVersion, _Version(next(self._coming))), str(target.model))


async def test_a_body_is_parsed_again_if_another_version_serves_by_then(codec: BodyCodec) -> None:
    other = ONE.model_copy(update={"outputs": (TensorSpec(name="z", dtype="float32", shape=()),)})
    catalog = cast(Catalog, _SwappingCatalog(ONE, other, other))
    app = serving_app(catalog, codec)
    parsed: list[Signature] = []

    async def parse(_: object, signature: Signature) -> int:
        parsed.append(signature)
        return len(parsed)

    request = Request({"method": "POST", "raw_path": b"/", "headers": []}, cast(Receive, None))
    _, signature, call = await app._parse_body(request, Target("m"), parse)
    assert (parsed, signature, call) == ([ONE, other], other, 2)


class _EmptyCatalog:
    """A catalog without models."""

    endpoints = ()

    def pick(self, target: Target) -> Any:
        raise NotFound(target.model)


async def test_the_memory_of_a_body_is_free_again_after_the_answer(codec: BodyCodec) -> None:
    app = serving_app(cast(Catalog, _EmptyCatalog()), codec)
    held: list[int] = []
    body = [bytes(2**20), b"a"]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        held.append(app._memory._used)
        return {"type": "http.request", "body": body.pop(0), "more_body": bool(body)}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"method": "POST", "raw_path": b"/v1/models/nope:predict", "headers": []}
    await app(scope, receive, send)
    assert sent[0]["status"] == 404
    assert (held, app._memory._used) == ([0, 2**20 - FREE_BYTES], 0)


def soon(seconds: float = 60.0) -> float:
    return time.monotonic() + seconds


async def test_a_small_body_needs_no_worker(codec: BodyCodec) -> None:
    call = await codec.parse(PREDICT, b'{"instances": [[1, 2, 3, 4]]}', None, ONE, soon())
    assert call.arrays[0].tolist() == [[1, 2, 3, 4]]
    assert processes() == []


async def test_a_large_body_is_parsed_by_a_worker(codec: BodyCodec) -> None:
    call = await codec.parse(PREDICT, bytearray(ROWS), None, ONE, soon())
    np.testing.assert_array_equal(call.arrays[0], VALUES)
    assert call.rows
    assert len(processes()) == 1


async def test_an_error_of_a_large_body_is_the_same_as_of_a_small_one(codec: BodyCodec) -> None:
    with pytest.raises(BadRequest, match="JSON Value: true Type: True is not of expected type: float"):
        await codec.parse(PREDICT, ROWS[:-2] + b", [true, 1, 1, 1]]}", None, ONE, soon())


async def test_a_long_string_among_numbers_is_refused_before_numpy_copies_it(codec: BodyCodec) -> None:
    text = b'"' + b"a" * 1_000_000 + b'"'
    body = b'{"instances": [[' + text + b"," + b",".join([b"1"] * 100_000) + b"]]}"
    with pytest.raises(BadRequest, match="is not of expected type: float"):
        await codec.parse(PREDICT, body, None, ONE, soon())


async def test_large_answers_are_encoded_by_a_worker(codec: BodyCodec) -> None:
    version = AnsweringVersion("m", 3, ONE, ())
    by_row = tfs_predict.PredictCall([], rows=True)
    answer = await codec.encode(PREDICT, by_row, [VALUES], version, soon())
    assert bytes(answer.body) == tfs_predict.encode_predict([VALUES], ONE, rows=True)
    call = oip_infer.InferCall([], [oip_outputs.RequestedOutput(0, False)], "an id")
    answer = await codec.encode(INFER, call, [VALUES], version, soon())
    assert bytes(answer.body) == oip_infer.encode_infer(call, [VALUES], "m", 3, ONE).body
    assert len(processes()) == 1


async def test_the_open_inference_protocol_is_parsed_by_a_worker(codec: BodyCodec) -> None:
    tensor = {"name": "x", "datatype": "FP32", "shape": VALUES.shape, "data": VALUES.tolist()}
    asked = [{"name": "y", "parameters": {"binary_data": True}}]
    body = json.dumps({"id": "an id", "inputs": [tensor], "outputs": asked}).encode()
    call = await codec.parse(INFER, body, None, ONE, soon())
    np.testing.assert_array_equal(call.arrays[0], VALUES)
    assert (call.outputs, call.id) == ([oip_outputs.RequestedOutput(0, True)], "an id")


async def test_raw_tensors_need_no_worker(codec: BodyCodec) -> None:
    tensor = {"name": "x", "datatype": "FP32", "shape": VALUES.shape}
    head = json.dumps({"inputs": [{**tensor, "parameters": {"binary_data_size": VALUES.nbytes}}]}).encode()
    call = await codec.parse(INFER, head + VALUES.tobytes(), str(len(head)), ONE, soon())
    np.testing.assert_array_equal(call.arrays[0], VALUES)
    assert processes() == []
