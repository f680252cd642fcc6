"""The whole server over HTTP, with children and tiny models."""

import asyncio
import gzip
import json
import os
import socket
import subprocess
import sys
import zlib
from pathlib import Path

import httpx2
import numpy as np
import pytest

from jobs.messages.release import Release, ReleasedVersion
from tests.present import present
from tests.serving.fakes import HTTP, FakeDashboard, ServerProcess, running, until

PREDICT = "/v1/models/telling:predict"


def test_the_router_imports_neither_keras_nor_jax_nor_django() -> None:
    code = (
        "import sys, workers.serving.__main__, workers.serving.router;"
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


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "error"),
    [
        ("POST", "/v1/models/unknown:predict", "{}", 404, "Servable not found for request: Latest(unknown)"),
        ("POST", "/v1/models/telling/versions/7:predict", "{}", 404,
         "Servable not found for request: Specific(telling, 7)"),
        ("POST", "/v1/models/telling/labels/l:predict", "{}", 400, "Unrecognized servable version label: l"),
        ("GET", "/v1/models/unknown", "", 404, "Could not find any versions of model unknown"),
        ("GET", "/v1/models/telling/versions/7", "", 404, "Could not find version 7 of model telling"),
        ("GET", "/v1/models", "", 400, "Missing model name in request."),
        ("GET", PREDICT, "", 400, f"Malformed request: GET {PREDICT}"),
        ("POST", PREDICT, '{"instances": []}', 400,
         """JSON Value: {"instances": []} No values in 'instances' array"""),
        ("POST", PREDICT, "", 400, "JSON Parse error: The document is empty"),
        ("POST", PREDICT, '{"instances": [[1, 2, 3, 4]], "instances": [[1, 2, 3, 4]]}', 400,
         'JSON Parse error: An object has the key "instances" twice; give it once'),
        ("POST", "/v1/models/two_sided:classify", "{}", 400,
         "Expected classification signature method_name to be tensorflow/serving/classify. Was: "
         "tensorflow/serving/predict. To classify, the only output must be a score for each class label of "
         "the version"),
        ("GET", "/", "", 404, "Not found"),
        ("POST", "/v2/repository/models/telling/unload", "", 403, "The dashboard decides what to load"),
        ("GET", "/v2/models/unknown", "", 404, "Servable not found for request: Latest(unknown)"),
    ],
)  # fmt: skip
def test_errors_are_objects_with_one_message(
    client: httpx2.Client, method: str, path: str, body: str, status: int, error: str
) -> None:
    answer = client.request(method, path, content=body.encode())
    assert (answer.status_code, answer.json()) == (status, {"error": error})
    assert answer.headers["content-type"] == "application/json"


def test_no_content_type_is_required(server: ServerProcess) -> None:
    address = httpx2.URL(server.url)
    body = b'{"instances": [[1, 1, 1, 1]]}'
    with socket.create_connection((address.host, address.port or 0)) as raw:
        head = b"POST %b HTTP/1.0\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        raw.sendall(head % (PREDICT.encode(), len(body)) + body)
        assert b'{"predictions":[[8.0,2.0]]}' in raw.makefile("rb").read()


def test_a_name_of_another_site_is_refused(server: ServerProcess) -> None:
    answer = HTTP.get(f"{server.url}/v1/models/telling", headers={"host": "evil.example"})
    assert answer.status_code == 400
    assert "evil.example" in answer.json()["error"]


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


def test_metrics_count_requests(client: httpx2.Client) -> None:
    def count() -> float:
        text = client.get("/monitoring/prometheus/metrics").text
        line = next(line for line in text.splitlines() if line.startswith(
            ':tensorflow:serving:request_count{model_name="two_sided",status="OK"}'))  # fmt: skip
        return float(line.split()[-1])

    body = b'{"inputs": {"a": [[1, 2]], "b": [5]}}'
    client.post("/v1/models/two_sided:predict", content=body)
    before = count()
    client.post("/v1/models/two_sided:predict", content=body)
    assert count() == before + 1


def test_a_missed_deadline_is_504_and_an_invalid_one_400(client: httpx2.Client) -> None:
    instances = [[0, 0, 0, 0]] * 4000  # tens of batches
    late = client.post(PREDICT, json={"instances": instances}, headers={"X-Request-Timeout-Ms": "0.01"})
    assert (late.status_code, late.json()) == (504, {"error": "Deadline exceeded"})
    odd = client.post(PREDICT, json={"instances": instances}, headers={"X-Request-Timeout-Ms": "soon"})
    assert odd.status_code == 400


def test_more_rows_than_the_queue_holds_are_computed_in_slices(client: httpx2.Client) -> None:
    answer = client.post(PREDICT, json={"instances": [[row, 0, 0, 0] for row in range(5000)]})
    assert [first for first, _ in answer.json()["predictions"]] == [2.0 * row for row in range(5000)]


async def test_a_full_queue_is_429_with_a_retry_time(server: ServerProcess) -> None:
    body = json.dumps({"instances": [[0, 0, 0, 0]] * 1500}).encode()
    child = present(await asyncio.to_thread(until, lambda: server.child_of("telling", 2)))
    child.suspend()  # nothing leaves the queue, however slowly the requests come
    try:
        async with httpx2.AsyncClient(base_url=server.url, timeout=60) as client:
            asked = [asyncio.create_task(client.post(PREDICT, content=body)) for _ in range(12)]
            await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            child.resume()
            answers = await asyncio.gather(*asked)
    finally:
        child.resume()
    codes = [answer.status_code for answer in answers]
    assert set(codes) <= {200, 429}
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert int(refused.headers["retry-after"]) >= 1


def test_a_release_with_altered_bytes_is_refused_and_reported(
    dashboard: FakeDashboard, server: ServerProcess, client: httpx2.Client, model_files: dict[str, bytes]
) -> None:
    good = dashboard.add(1, model_files["telling-1"])
    altered = dashboard.add(2, b"another file, never served before")
    dashboard.files[altered.digest] = model_files["telling-2"]
    release = Release(model="altered", generation=1, production=1, versions=(good,), issued_at="x")
    dashboard.publish(release)
    dashboard.serves("altered", 1)
    dashboard.publish(release.model_copy(update={"generation": 2, "production": 2, "versions": (altered,)}))
    report = until(lambda: (last := dashboard.last_report("altered"))["error"] and last)
    assert (report["generation"], report["loading"]) == (1, 2)
    assert "longer than the approved" in report["error"]
    answer = client.post("/v1/models/altered:predict", content=b'{"instances": [[1, 1, 1, 1]]}')
    assert answer.json()["predictions"] == [[4.0, 1.0]]
    dashboard.publish(release.model_copy(update={"generation": 3, "production": None, "versions": ()}))
    dashboard.serves("altered", 3)


def test_beyond_loopback_a_token_is_required(
    dashboard: FakeDashboard, tmp_path_factory: pytest.TempPathFactory
) -> None:
    dashboard.tokens |= {"ty_read": ["read"], "ty_client": ["predict"]}
    with (
        running(
            tmp_path_factory.mktemp("open"), dashboard, "--host", "0.0.0.0", "--body-limit", "100"
        ) as server,
        httpx2.Client(base_url=server.url) as client,
    ):

        def status(token: str | None, content: bytes = b"{}") -> int:
            headers = {"authorization": f"Bearer {token}"} if token else {}
            return client.post("/v1/models/unknown:predict", content=content, headers=headers).status_code

        assert [status(None), status("ty_unknown")] == [401, 401]
        assert [status("ty_read"), status("ty_own"), status("ty_client")] == [403, 403, 404]
        # An unknown model is reported before the body is read.
        assert status("ty_client", b"x" * 101) == 404
        assert client.get("/v2/health/live").status_code == 200
