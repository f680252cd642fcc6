"""No request ends a child, whatever its shapes, types and sizes, and whatever layers the model has."""

import json
from typing import Any

import httpx2
import pytest

from jobs.messages.release import Release
from tests.serving.fakes import FakeDashboard, ServerProcess, until
from tests.serving.requests_fuzz import Fuzzer, FuzzRequest, Shape

# For each kind of model. A fixed number, so that every run sends the same requests.
REQUESTS = 80

# Inputs, and a request that the model can answer.
MODELS: dict[str, tuple[dict[str, tuple[Shape, str]], Any]] = {
    "telling-1": ({"x": ((4,), "FP32")}, [[1, 2, 3, 4]]),
    "two_sided": ({"a": ((2,), "FP32"), "b": ((), "INT64")}, [{"a": [1, 2], "b": 3}]),
    "recurrent": ({"words": ((None,), "INT32")}, [[1, 2, 3]]),
    "convolution_1d": ({"x": ((None, 2), "FP32")}, [[[1, 2]] * 9]),
    "convolution_2d": ({"x": ((None, None, 1), "FP32")}, [[[[1]] * 9] * 9]),
    "attention": ({"x": ((None, 4), "FP32")}, [[[1, 2, 3, 4]] * 3]),
    "normalized": ({"x": ((6,), "FP32")}, [[1, 2, 3, 4, 5, 6]]),
    "folded": ({"x": ((None, 4), "FP32")}, [[[1, 2, 3, 4]] * 2]),
}


def publish(dashboard: FakeDashboard, name: str, file: bytes) -> None:
    version = dashboard.add(1, file)
    dashboard.publish(Release(model=name, generation=1, production=1, versions=(version,), issued_at="x"))
    dashboard.serves(name, 1)


def unpublish(dashboard: FakeDashboard, name: str) -> None:
    dashboard.publish(Release(model=name, generation=2, production=None, versions=(), issued_at="x"))
    dashboard.serves(name, 2)


@pytest.mark.parametrize("kind", MODELS)
def test_random_requests_get_an_answer_or_a_reason(
    dashboard: FakeDashboard,
    server: ServerProcess,
    client: httpx2.Client,
    model_files: dict[str, bytes],
    kind: str,
) -> None:
    name, (inputs, good) = f"fuzz-{kind}", MODELS[kind]
    publish(dashboard, name, model_files[kind])
    child = until(lambda: server.child_of(name))
    fuzzer = Fuzzer(12, name, inputs)
    statuses: dict[int, int] = {}
    for number in range(REQUESTS):
        # A failed request must not affect the next one.
        if number % 10 == 0:
            request = FuzzRequest(f"/v1/models/{name}:predict", json.dumps({"instances": good}).encode(), {})
        else:
            request = fuzzer.request()
        answer = client.post(request.path, content=request.body, headers=request.headers)
        statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
        assert answer.status_code in (200, 400, 413), (request, answer.text)
        if answer.status_code != 200:
            check_message(answer.json()["error"])
    assert statuses[200] >= REQUESTS // 10
    assert statuses[400] > 0
    assert server.child_of(name) == child
    assert client.post(f"/v1/models/{name}:predict", json={"instances": good}).status_code == 200
    unpublish(dashboard, name)


def check_message(message: str) -> None:
    """Assert that it is one line of our own words."""
    assert message
    assert message.isprintable(), repr(message)
    for foreign in ("Traceback", "Error(", "Arguments received", "jnp.", "Exception encountered", "XLA"):
        assert foreign not in message, message


@pytest.mark.parametrize("path", ["v1", "v2"])
def test_a_row_without_a_value_is_refused_and_the_child_lives(
    dashboard: FakeDashboard,
    server: ServerProcess,
    client: httpx2.Client,
    model_files: dict[str, bytes],
    path: str,
) -> None:
    name = f"empty-{path}"
    publish(dashboard, name, model_files["recurrent"])
    child = until(lambda: server.child_of(name))
    if path == "v1":
        answer = client.post(f"/v1/models/{name}:predict", json={"instances": [[]]})
    else:
        tensor = {"name": "words", "shape": [2, 0], "datatype": "INT32", "data": []}
        answer = client.post(f"/v2/models/{name}/infer", json={"inputs": [tensor]})
    assert answer.status_code == 400
    assert "needs a value" in answer.json()["error"]
    assert server.child_of(name) == child
    unpublish(dashboard, name)


def test_shapes_that_a_layer_refuses_are_named(
    dashboard: FakeDashboard, server: ServerProcess, client: httpx2.Client, model_files: dict[str, bytes]
) -> None:
    publish(dashboard, "short", model_files["convolution_1d"])
    answer = client.post("/v1/models/short:predict", json={"instances": [[[1, 2]]]})
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "The model cannot compute rows with 'x' of [1, 2]"},
    )
    unpublish(dashboard, "short")


def test_a_batch_beyond_the_memory_is_503_and_the_child_lives(
    dashboard: FakeDashboard, server: ServerProcess, client: httpx2.Client, model_files: dict[str, bytes]
) -> None:
    publish(dashboard, "long", model_files["attention"])
    child = until(lambda: server.child_of("long"))
    rows = 300_000  # attention needs their square: 0.7 TiB
    head = (
        b'{"inputs":[{"name":"x","shape":[1,%d,4],"datatype":"FP32","parameters":{"binary_data_size":%d}}]}'
        % (rows, rows * 16)
    )
    answer = client.post(
        "/v2/models/long/infer",
        content=head + bytes(rows * 16),
        headers={"Inference-Header-Content-Length": str(len(head))},
    )
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["retry-after"]) >= 1
    assert "GiB are free" in answer.json()["error"]
    assert server.child_of("long") == child
    unpublish(dashboard, "long")
