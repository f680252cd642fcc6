"""When the supervisor calls an installation ready. Web and prediction server are one fake."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from webapp.ops import readiness as readiness_module
from webapp.ops.readiness import Readiness

READY: dict[str, tuple[int, dict[str, Any]]] = {"/readyz": (200, {}), "/v2/health/live": (200, {})}


class FakeParts(BaseHTTPRequestHandler):
    """Answers what `answers` holds by path, and 404 elsewhere."""

    answers: dict[str, tuple[int, Any]]

    def do_GET(self) -> None:
        status, body = self.answers.get(self.path, (404, {}))
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815  named by the base class

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def readiness(tmp_path: Path) -> Iterator[Readiness]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeParts)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    yield Readiness(web=url, serving=url, token_file=tmp_path / "token")
    server.shutdown()
    server.server_close()


def models(**errors: str | None) -> None:
    """Have the prediction server report models: None for one that answers, else its load error."""
    unready = {name: error for name, error in errors.items() if error is not None}
    index = [{"name": name, "reason": error or ""} for name, error in errors.items()]
    FakeParts.answers = READY | {
        "/v2/health/ready": (503 if unready else 200, {}),
        "/v2/repository/index": (200, index),
        **{f"/v2/models/{name}/ready": (503 if name in unready else 200, {}) for name in errors},
    }


async def test_models_that_load_are_missing_by_name_until_they_answer(readiness: Readiness) -> None:
    models(iris="", wine="", cells=None)
    assert await readiness.missing() == "models (iris, wine)"
    models(iris=None, wine=None, cells=None)
    assert await readiness.missing() is None
    assert await readiness.unready_models() == {}


async def test_a_model_that_cannot_be_loaded_delays_nothing_and_is_reported(readiness: Readiness) -> None:
    models(iris="its file is missing", wine=None)
    assert await readiness.missing() is None
    assert await readiness.unready_models() == {"iris": "its file is missing"}


async def test_a_model_that_loads_for_long_delays_nothing_more(
    readiness: Readiness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness_module, "MODELS_WAIT", -1.0)
    models(iris="")
    assert await readiness.missing() is None
    assert await readiness.unready_models() == {"iris": ""}


async def test_a_prediction_server_that_does_not_listen_is_missing(readiness: Readiness) -> None:
    models()
    away = Readiness(web=readiness._web, serving="http://127.0.0.1:9", token_file=Path("none"))
    assert await away.missing() == "serving"
