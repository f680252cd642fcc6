"""Tokens, limits and addresses."""

from pathlib import Path

import pytest

from workers.serving import auth
from workers.serving.asgi import Request
from workers.serving.auth import TokenAuthenticator
from workers.serving.errors import Forbidden, ServingError, Unauthenticated, Unavailable
from workers.serving.settings import parse

REQUIRED = ["--dashboard", "http://x", "--token-file", "t", "--public-key-file", "k", "--home", "h"]


class Dashboard:
    def __init__(self) -> None:
        self.tokens: dict[str, frozenset[str]] = {}
        self.calls = 0
        self.unavailable = False

    async def scopes_of(self, token: str) -> frozenset[str] | None:
        self.calls += 1
        if self.unavailable:
            raise OSError
        return self.tokens.get(token)


def request(authorization: str | None) -> Request:
    headers = [] if authorization is None else [(b"authorization", authorization.encode())]

    async def nothing() -> dict[str, object]:
        return {}

    return Request({"method": "GET", "raw_path": b"/", "headers": headers}, nothing)


@pytest.mark.parametrize(
    ("header", "refusal"),
    [
        (None, Unauthenticated),
        ("Basic ty_serve", Unauthenticated),
        ("Bearer ", Unauthenticated),
        ("Bearer ty_unknown", Unauthenticated),
        ("Bearer ty_read", Forbidden),
    ],
)
async def test_only_known_tokens_with_the_scope_pass(header: str | None, refusal: type[ServingError]) -> None:
    dashboard = Dashboard()
    dashboard.tokens = {"ty_serve": frozenset({"serve"}), "ty_read": frozenset({"read"})}
    authenticator = TokenAuthenticator(dashboard)
    await authenticator.check(request("bearer ty_serve"))
    with pytest.raises(refusal):
        await authenticator.check(request(header))


async def test_an_answer_is_cached_for_a_minute_and_during_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    dashboard = Dashboard()
    dashboard.tokens = {"ty_serve": frozenset({"serve"})}
    authenticator = TokenAuthenticator(dashboard)
    await authenticator.check(request("Bearer ty_serve"))
    await authenticator.check(request("Bearer ty_serve"))
    assert dashboard.calls == 1
    monkeypatch.setattr(auth, "_CACHE_SECONDS", 0)
    dashboard.unavailable = True
    await authenticator.check(request("Bearer ty_serve"))
    with pytest.raises(Unavailable):
        await authenticator.check(request("Bearer ty_never_seen"))
    dashboard.unavailable, dashboard.tokens = False, {}
    with pytest.raises(Unauthenticated):
        await authenticator.check(request("Bearer ty_serve"))


@pytest.mark.parametrize(
    ("host", "open_", "needs"),
    [
        ("127.0.0.1", "", False),
        ("::1", "", False),
        ("localhost", "", False),
        ("0.0.0.0", "", True),
        ("serving.example", "", True),
        ("0.0.0.0", "1", False),
    ],
)
def test_beyond_loopback_callers_need_a_token(host: str, open_: str, needs: bool) -> None:
    settings = parse([*REQUIRED, "--host", host], {"TRAINYARD_SERVING_OPEN": open_})
    assert settings.needs_token is needs


def test_the_environment_sets_what_the_command_line_does_not() -> None:
    settings = parse(
        [*REQUIRED, "--port", "0"], {"TRAINYARD_SERVING_PORT": "9", "TRAINYARD_SERVING_HOST": "::1"}
    )
    assert (settings.host, settings.port, settings.home) == ("::1", 0, Path("h").absolute())
