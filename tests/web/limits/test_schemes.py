"""Only trusted proxies are believed that a request came by https."""

from typing import Any

import pytest
from pytest_django import Settings
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from webapp.limits.schemes import TrustSchemes

TRUSTED = ["10.0.0.0/24"]


async def ask(path: str, *, peer: str, forwarded: bytes) -> tuple[list[str], int, str]:
    """Return the schemes of the requests that pass, and the status and the body of a refusal."""
    passed: list[str] = []
    sent: list[dict[str, Any]] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        passed.append(scope["scheme"])

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: Any = {
        "type": "http",
        "scheme": "http",
        "path": path,
        "headers": [(b"host", b"yard.example"), (b"x-forwarded-proto", forwarded)],
        "client": (peer, 50_000),
    }
    checked: Any = TrustSchemes(application)
    server: Any = ProxyHeadersMiddleware(checked, TRUSTED)
    await server(scope, receive, send)
    status = sent[0]["status"] if sent else 0
    return passed, status, b"".join(message.get("body", b"") for message in sent).decode()


@pytest.fixture(autouse=True)
def _secure(settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True


async def test_a_trusted_proxy_is_believed() -> None:
    assert await ask("/jobs", peer="10.0.0.5", forwarded=b"https") == (["https"], 0, "")
    assert await ask("/jobs", peer="10.0.0.5", forwarded=b"http") == (["http"], 0, "")


async def test_another_one_is_named_with_the_variable_instead_of_redirected_for_ever() -> None:
    passed, status, body = await ask("/jobs", peer="10.0.9.5", forwarded=b"https")
    assert (passed, status) == ([], 400)
    assert "10.0.9.5 is not in TRAINYARD_TRUSTED_PROXIES" in body


async def test_a_client_by_http_is_redirected_as_ever() -> None:
    assert await ask("/jobs", peer="10.0.9.5", forwarded=b"http") == (["http"], 0, "")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/api/v1/serving/releases", "/api/v1/me"])
async def test_monitors_and_prediction_servers_need_no_proxy(path: str) -> None:
    passed, status, _ = await ask(path, peer="10.0.9.5", forwarded=b"https")
    assert (passed, status) == (["http"], 0)


async def test_without_tls_nothing_is_refused(settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = False
    assert (await ask("/jobs", peer="10.0.9.5", forwarded=b"https"))[0] == ["http"]
