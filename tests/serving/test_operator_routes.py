"""Probes and metrics of the prediction server: their hosts and tokens."""

import re
from typing import Any, cast

import pytest

from jobs.logs import sampling
from tests.serving.in_process import Serving, connect, listening, request
from workers.model_process.errors import Unavailable
from workers.serving import request_log
from workers.serving.access import Access
from workers.serving.auth import TokenAuthenticator
from workers.serving.known_callers import KnownCallers
from workers.serving.request_log import RequestLog
from workers.serving.settings import Limits, parse


class Dashboard:
    """Knows a token for metrics, one for predictions, and one of an administrator."""

    tokens = {"ty_metrics": Access(None, metrics=True), "ty_predict": Access(frozenset({"m"}))}

    async def access_of(self, token: str) -> Access | None:
        return self.tokens.get(token)


def get(path: str, host: str = "localhost", **headers: str) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {text}\r\n" for name, text in headers.items())
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n".encode()


def status(head: bytes) -> int:
    return int(head.split()[1])


def with_token() -> Serving:
    authenticator = TokenAuthenticator(cast(Any, Dashboard()), KnownCallers(None, 60.0))
    return Serving(Limits(), authenticator)


async def test_probes_are_answered_whatever_the_host_and_metrics_by_own_names() -> None:
    serving = Serving(Limits())
    protocol: Any = serving.protocol()
    catalog = protocol.predictions.catalog
    catalog.check_ready = dict
    async with listening(serving):
        client = await connect(serving)
        for path in ("/livez", "/readyz"):
            head, _ = await client.ask(get(path, host="10.1.2.3:8501"))
            assert status(head) == 200
        assert status((await client.ask(get("/metrics", host="evil.example")))[0]) == 400
        head, body = await client.ask(get("/metrics"))
        assert status(head) == 200
        assert b"trainyard_serving_child_restarts_total" in body
        assert b"process_resident_memory_bytes" in body

        def loading() -> None:
            raise Unavailable("not all endpoints are loaded yet")

        catalog.check_ready = loading
        head, body = await client.ask(get("/readyz"))
        assert status(head) == 503
        assert b"not all endpoints are loaded yet" in body
        assert status((await client.ask(get("/livez")))[0]) == 200


async def test_metrics_need_their_scope_where_predictions_need_a_token() -> None:
    async with listening(with_token()) as serving:
        client = await connect(serving)
        assert status((await client.ask(get("/livez")))[0]) == 200
        assert status((await client.ask(get("/metrics")))[0]) == 401
        for token, expected in (("ty_metrics", 200), ("ty_predict", 403), ("ty_other", 401)):
            head, _ = await client.ask(get("/metrics", authorization=f"Bearer {token}"))
            assert status(head) == expected, token
        predicted, _ = await client.ask(request(authorization="Bearer ty_metrics"))
        assert status(predicted) == 403


async def test_an_id_of_a_request_is_sent_back() -> None:
    async with listening(Serving(Limits())) as serving:
        client = await connect(serving)
        for _ in range(2):
            head, _ = await client.ask(request(x_request_id="abc-1"))
            assert b"x-request-id: abc-1\r\n" in head.lower()
        head, _ = await client.ask(request(x_request_id="not valid"))
        sent = re.search(rb"x-request-id: (\w+)\r\n", head.lower())
        assert sent is not None
        assert b"x-request-id" not in (await client.ask(request()))[0].lower()


async def test_a_share_of_the_requests_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[dict[str, Any]] = []

    class Collecting:
        def info(self, event: str, **fields: Any) -> None:
            lines.append(fields)

    monkeypatch.setattr(request_log, "log", Collecting())
    serving = Serving(Limits())
    log = RequestLog(1.0)
    log.is_on = True
    log._sampler = sampling.Sampler(0.5)
    protocol = type(serving.protocol())
    monkeypatch.setattr(protocol, "request_log", log)
    async with listening(serving):
        client = await connect(serving)
        for _ in range(9):
            await client.ask(request(authorization="Bearer ty_secret"))
    # The first one is not answered directly, and this server's application has no log.
    assert serving.direct == 8
    assert len(lines) == 4
    assert lines[0]["path"] == "/v1/models/m:predict"
    assert lines[0]["status"] == 200
    assert "ty_secret" not in str(lines)
    assert re.fullmatch("[0-9a-f]{12}", lines[0]["caller"])


def test_an_invalid_share_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    required = ["--dashboard", "http://x", "--token-file", "t", "--public-key-file", "k", "--home", "h"]
    assert parse(required, {}).access_log == 0.0
    with pytest.raises(SystemExit):
        parse([*required, "--access-log", "2"], {})
    assert "'2' is no share from 0 to 1" in capsys.readouterr().err
