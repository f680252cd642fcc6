"""The whole server's refusals, limits and metrics."""

import asyncio
import json
import socket

import httpx2
import pytest

from jobs.messages.release import Release
from tests.present import present
from tests.serving.fakes import HTTP, FakeDashboard, ServerProcess, running, until
from tests.serving.processes.test_server import PREDICT


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
