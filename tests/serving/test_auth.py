"""Tokens, limits and addresses."""

from pathlib import Path

import pytest

from workers.serving import auth
from workers.serving.asgi import Request
from workers.serving.auth import TokenGate
from workers.serving.errors import Forbidden, ServingError, Unauthenticated, Unavailable
from workers.serving.settings import parse

REQUIRED = ["--dashboard", "http://x", "--token-file", "t", "--public-key-file", "k", "--home", "h"]


class Dashboard:
    def __init__(self) -> None:
        self.tokens: dict[str, frozenset[str]] = {}
        self.asked = 0
        self.away = False

    async def scopes_of(self, token: str) -> frozenset[str] | None:
        self.asked += 1
        if self.away:
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
    gate = TokenGate(dashboard)
    await gate.check(request("bearer ty_serve"))
    with pytest.raises(refusal):
        await gate.check(request(header))


async def test_an_answer_holds_for_a_minute_and_through_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    dashboard = Dashboard()
    dashboard.tokens = {"ty_serve": frozenset({"serve"})}
    gate = TokenGate(dashboard)
    await gate.check(request("Bearer ty_serve"))
    await gate.check(request("Bearer ty_serve"))
    assert dashboard.asked == 1
    monkeypatch.setattr(auth, "_FRESH_SECONDS", 0)
    dashboard.away = True
    await gate.check(request("Bearer ty_serve"))
    with pytest.raises(Unavailable):
        await gate.check(request("Bearer ty_never_seen"))
    dashboard.away, dashboard.tokens = False, {}
    with pytest.raises(Unauthenticated):
        await gate.check(request("Bearer ty_serve"))


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


def test_the_environment_gives_what_the_command_line_leaves_out() -> None:
    settings = parse(
        [*REQUIRED, "--port", "0"], {"TRAINYARD_SERVING_PORT": "9", "TRAINYARD_SERVING_HOST": "::1"}
    )
    assert (settings.host, settings.port, settings.home) == ("::1", 0, Path("h").absolute())
