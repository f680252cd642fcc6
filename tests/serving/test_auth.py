"""Tokens, limits and addresses."""

from pathlib import Path

import pytest

from workers.model_process.errors import Forbidden, ServingError, Unauthenticated, Unavailable
from workers.serving import auth
from workers.serving.access import Access
from workers.serving.asgi import Request
from workers.serving.auth import TokenAuthenticator
from workers.serving.settings import parse

REQUIRED = ["--dashboard", "http://x", "--token-file", "t", "--public-key-file", "k", "--home", "h"]


class Dashboard:
    def __init__(self, **tokens: Access) -> None:
        self.tokens = tokens
        self.calls = 0
        self.unavailable = False

    async def access_of(self, token: str) -> Access | None:
        self.calls += 1
        if self.unavailable:
            raise OSError
        return self.tokens.get(token)


OWN = Access(frozenset({"digits"}))


def request(authorization: str | None) -> Request:
    headers = [] if authorization is None else [(b"authorization", authorization.encode())]

    async def nothing() -> dict[str, object]:
        return {}

    return Request({"method": "GET", "raw_path": b"/", "headers": headers}, nothing)


@pytest.mark.parametrize(
    ("header", "refusal"),
    [
        (None, Unauthenticated),
        ("Basic ty_predict", Unauthenticated),
        ("Bearer ", Unauthenticated),
        ("Bearer ty_unknown", Unauthenticated),
        ("Bearer ty_read", Forbidden),
        ("Bearer ty_expired", Unauthenticated),
    ],
)
async def test_only_known_tokens_with_the_scope_pass(header: str | None, refusal: type[ServingError]) -> None:
    expired = Access(frozenset({"digits"}), expires=1.0)
    authenticator = TokenAuthenticator(Dashboard(ty_predict=OWN, ty_read=Access(None), ty_expired=expired))
    assert await authenticator.check(request("bearer ty_predict")) == OWN
    with pytest.raises(refusal):
        await authenticator.check(request(header))


@pytest.mark.parametrize("token", ["other", "ty_é", "ty_" + "x" * 300])
async def test_text_that_is_no_token_is_refused_without_a_question(token: str) -> None:
    dashboard = Dashboard()
    with pytest.raises(Unauthenticated):
        await TokenAuthenticator(dashboard).check(request(f"Bearer {token}"))
    assert dashboard.calls == 0


async def test_an_answer_is_cached_briefly_and_during_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    dashboard = Dashboard(ty_predict=OWN)
    authenticator = TokenAuthenticator(dashboard)
    await authenticator.check(request("Bearer ty_predict"))
    await authenticator.check(request("Bearer ty_predict"))
    assert dashboard.calls == 1
    monkeypatch.setattr(auth, "_CACHE_SECONDS", 0)
    dashboard.unavailable = True
    await authenticator.check(request("Bearer ty_predict"))
    with pytest.raises(Unavailable):
        await authenticator.check(request("Bearer ty_never_seen"))
    dashboard.unavailable, dashboard.tokens = False, {}
    with pytest.raises(Unauthenticated):
        await authenticator.check(request("Bearer ty_predict"))


async def test_invalid_tokens_evict_no_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "_MAX_CACHED", 2)
    dashboard = Dashboard(ty_predict=OWN)
    authenticator = TokenAuthenticator(dashboard)
    await authenticator.check(request("Bearer ty_predict"))
    for number in range(5):
        with pytest.raises(Unauthenticated):
            await authenticator.check(request(f"Bearer ty_invalid{number}"))
    monkeypatch.setattr(auth, "_CACHE_SECONDS", 0)
    dashboard.unavailable = True
    assert await authenticator.check(request("Bearer ty_predict")) == OWN


async def test_a_token_reaches_its_endpoints_and_new_ones_after_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dashboard = Dashboard(ty_predict=OWN)
    authenticator = TokenAuthenticator(dashboard)
    asked = request("Bearer ty_predict")
    assert await authenticator.reaches(asked, "digits")
    assert not await authenticator.reaches(asked, "secret")
    assert dashboard.calls == 1
    monkeypatch.setattr(auth, "_RECHECK_SECONDS", 0)
    dashboard.tokens = {"ty_predict": Access(frozenset({"digits", "new"}))}
    assert await authenticator.reaches(asked, "new")


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


def test_a_list_of_proxies_may_be_empty() -> None:
    settings = parse([*REQUIRED], {"TRAINYARD_SERVING_TRUSTED_PROXIES": "none"})
    assert settings.limits.trusted_proxies == []
    assert len(parse([*REQUIRED], {}).limits.trusted_proxies) == 2
