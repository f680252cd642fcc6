"""The whole server over HTTP, with children and tiny models."""

import gzip
import json
import os
import socket
import subprocess
import sys
import zlib
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import numpy as np
import pytest

from jobs.messages.release import ReleasedVersion
from tests.present import present
from tests.serving.fakes import ServerProcess, until

PREDICT = "/v1/models/telling:predict"


def test_the_router_imports_neither_keras_nor_jax_nor_django() -> None:
    code = (
        "import sys, workers.serving.__main__, workers.serving.server;"
        "print([m for m in ('keras', 'jax', 'django', 'celery', 'redis') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_child_does_not_load_libraries_that_no_model_needs(server: ServerProcess) -> None:
    child = present(until(lambda: server.child_of("telling", 2)))
    packages = {part for mapped in child.memory_maps() for part in Path(mapped.path).parts}
    assert "jaxlib" in packages
    assert not packages & {"sklearn", "pandas"}


def test_each_process_leads_a_group_and_models_are_in_the_session_of_the_server(
    server: ServerProcess,
) -> None:
    # Linux shares a busy CPU among sessions: a model in its own would wait for others at each request.
    processes = server.children()
    sessions = {os.getsid(process.pid) for process in processes if process.name() == "ty-model"}
    assert sessions == {os.getsid(server.process.pid)}
    # A signal to the group of the server, such as Ctrl-C in a terminal, reaches the server alone.
    # One that has just ended may not be reaped yet.
    until(lambda: all(os.getpgid(process.pid) == process.pid for process in server.children()), 30)


def test_a_child_of_a_tiny_model_shares_most_of_its_memory(server: ServerProcess) -> None:
    child = present(until(lambda: server.child_of("telling", 2)))
    memory = child.memory_full_info()
    assert memory.uss < 60 * 2**20 < memory.rss


def test_http_1_0_without_a_host_is_answered(server: ServerProcess) -> None:
    address = urlsplit(server.url)
    content = b'{"instances": [[1, 2, 3, 4]]}'
    head = b"POST %b HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % (PREDICT.encode(), len(content))
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=30) as connection:
        connection.sendall(head + content)
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b'{"predictions":[[20.0,2.0]]}')


def test_rows_and_columns_are_answered_with_the_version_in_headers(
    client: httpx2.Client, telling: dict[int, ReleasedVersion]
) -> None:
    rows = client.post(PREDICT, content=b'{"instances": [[1, 2, 3, 4], [0.5, 0, 0, 0]]}')
    assert rows.json() == {"predictions": [[20.0, 2.0], [1.0, 2.0]]}
    assert rows.headers["content-type"] == "application/json"
    assert rows.headers["x-trainyard-model-version"] == "2"
    assert rows.headers["x-trainyard-digest"] == telling[2].digest
    assert rows.headers["x-trainyard-variant"] == "production"
    columns = client.post(PREDICT, content=b'{"inputs": {"x": [[1, 1, 1, 1]]}}')
    assert columns.json() == {"outputs": [[8.0, 2.0]]}


def test_versions_and_labels_are_answered_by_that_version(client: httpx2.Client) -> None:
    body = b'{"instances": [[1, 1, 1, 1]]}'
    for path, number, variant in (
        ("versions/1", 1, "standby"),
        ("versions/2", 2, "production"),
        ("labels/production", 2, "production"),
        ("labels/old", 1, "old"),
    ):
        answer = client.post(f"/v1/models/telling/{path}:predict", content=body)
        assert answer.json()["predictions"] == [[4.0 * number, number]]
        assert answer.headers["x-trainyard-variant"] == variant


def test_several_inputs_and_outputs_have_names(client: httpx2.Client) -> None:
    path = "/v1/models/two_sided:predict"
    rows = client.post(path, content=b'{"instances": [{"a": [1, 2], "b": 5}]}')
    assert rows.json() == {"predictions": [{"ten_a": [10.0, 20.0], "next_b": 6}]}
    columns = client.post(path, content=b'{"inputs": {"a": [[1, 2]], "b": [5]}}')
    assert columns.json() == {"outputs": {"ten_a": [[10.0, 20.0]], "next_b": [6]}}
    metadata = client.get("/v2/models/two_sided").json()
    assert [tensor["name"] for tensor in metadata["outputs"]] == ["next_b", "ten_a"]


def test_integers_of_64_bits_are_answered_as_such_and_refused_beyond_32(client: httpx2.Client) -> None:
    definition = client.get("/v1/models/two_sided/metadata").json()["metadata"]["signature_def"]
    assert definition["signature_def"]["serving_default"]["inputs"]["b"]["dtype"] == "DT_INT64"
    a = {"name": "a", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}
    for value, status in ((2**31 - 2, 200), (2**31, 400)):
        b = {"name": "b", "shape": [1], "datatype": "INT64", "data": [value]}
        answer = client.post("/v2/models/two_sided/infer", json={"inputs": [a, b]})
        assert answer.status_code == status, answer.text
        if status == 200:
            output = answer.json()["outputs"][0]
            assert output == {"name": "next_b", "datatype": "INT32", "shape": [1], "data": [value + 1]}


def test_classes_and_numbers_are_answered_where_the_signature_allows(client: httpx2.Client) -> None:
    body = b'{"context": {"other": 1}, "examples": [{"x": [1, 2, 3, 4]}, {"x": [0.5, 0, 0, 0]}]}'
    answer = client.post("/v1/models/telling:classify", content=body)
    assert answer.json() == {"results": [[["sum", 20.0], ["version", 2.0]], [["sum", 1.0], ["version", 2.0]]]}
    assert answer.headers["x-trainyard-model-version"] == "2"
    refused = client.post("/v1/models/telling:regress", content=body)
    assert (refused.status_code, refused.json()["error"][:45]) == (
        400,
        "Expected regression signature method_name to ",
    )


@pytest.mark.parametrize("rows", [1, 20_000])
def test_compressed_bodies_are_answered_as_plain_ones(client: httpx2.Client, rows: int) -> None:
    plain = json.dumps({"instances": [[row % 7, 0, 0, 0] for row in range(rows)]}).encode()
    expected = client.post(PREDICT, content=plain).content
    for coding, packed in (("gzip", gzip.compress(plain)), ("deflate", zlib.compress(plain))):
        answer = client.post(PREDICT, content=packed, headers={"Content-Encoding": coding})
        assert (answer.status_code, answer.content == expected) == (200, True)


@pytest.mark.parametrize(
    ("coding", "body", "status", "error"),
    [
        (
            "gzip",
            gzip.compress(bytes(65 * 2**20), 1),
            413,
            "unpacks to more than the limit of 67108864 bytes",
        ),
        ("gzip", b"not packed", 400, "not valid gzip data"),
        ("br", b"", 415, "send gzip, deflate or a plain body"),
    ],
)
def test_other_compressed_bodies_are_refused(
    client: httpx2.Client, coding: str, body: bytes, status: int, error: str
) -> None:
    answer = client.post(PREDICT, content=body, headers={"Content-Encoding": coding})
    assert answer.status_code == status
    assert error in answer.json()["error"]


@pytest.mark.parametrize("rows", [1, 3, 64, 65, 200])
def test_any_number_of_rows_comes_back_in_order(client: httpx2.Client, rows: int) -> None:
    answer = client.post(PREDICT, json={"instances": [[row, 0, 0, 0] for row in range(rows)]})
    assert [first for first, _ in answer.json()["predictions"]] == [2.0 * row for row in range(rows)]


def test_nan_is_accepted_and_answered_in_strict_json(client: httpx2.Client) -> None:
    answer = client.post(PREDICT, content=b'{"instances": [[NaN, 0, 0, 0]]}')
    assert answer.text == '{"predictions":[[null,null]],"nonfinite":true}'


def test_status_of_all_of_one_and_of_a_label(client: httpx2.Client) -> None:
    def versions(path: str) -> list[tuple[str, str]]:
        statuses = client.get(f"/v1/models/telling{path}").json()["model_version_status"]
        return [(status["version"], status["state"]) for status in statuses]

    assert versions("") == [("2", "AVAILABLE"), ("1", "AVAILABLE")]
    assert versions("/versions/1") == [("1", "AVAILABLE")]
    assert versions("/labels/production") == [("2", "AVAILABLE")]


def test_metadata_gives_the_signature(client: httpx2.Client) -> None:
    body = client.get("/v1/models/telling/versions/1/metadata").json()
    assert body["model_spec"]["version"] == "1"
    definition = body["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert definition["inputs"]["x"]["dtype"] == "DT_FLOAT"
    assert [dim["size"] for dim in definition["outputs"]["y"]["tensor_shape"]["dim"]] == ["-1", "2"]


@pytest.mark.parametrize("binary", [False, True])
def test_the_open_inference_protocol(client: httpx2.Client, binary: bool) -> None:
    x = np.array([[1, 2, 3, 4]], np.float32)
    tensor: dict[str, object] = {"name": "x", "shape": [1, 4], "datatype": "FP32"}
    if not binary:
        content = json.dumps({"id": "i", "inputs": [tensor | {"data": x.tolist()}]}).encode()
        answer = client.post("/v2/models/telling/infer", content=content).json()
        assert answer["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [20.0, 2.0]}]
        assert (answer["id"], answer["model_version"]) == ("i", "2")
        return
    tensor["parameters"] = {"binary_data_size": x.nbytes}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    raw = client.post(
        "/v2/models/telling/versions/1/infer",
        content=head + x.tobytes(),
        headers={"Inference-Header-Content-Length": str(len(head))},
    )
    length = int(raw.headers["inference-header-content-length"])
    assert raw.headers["content-type"] == "application/octet-stream"
    assert np.frombuffer(raw.content[length:], "<f4").tolist() == [10.0, 1.0]


def test_health_metadata_and_index_of_the_open_inference_protocol(client: httpx2.Client) -> None:
    assert "binary_tensor_data" in client.get("/v2").json()["extensions"]
    for path in (
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/models/telling/ready",
        "/v2/models/telling/versions/1/ready",
    ):
        assert client.get(path).status_code == 200
    assert client.get("/v2/models/telling").json()["versions"] == ["1", "2"]
    index = client.post("/v2/repository/index").json()
    assert {"name": "telling", "version": "1", "state": "AVAILABLE", "reason": ""} in index
