"""Tokens, limits and addresses."""

import asyncio
import hashlib
import threading
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import pytest

from workers.model_process.errors import Forbidden, ServingError, Unauthenticated, Unavailable
from workers.serving import auth, known_callers
from workers.serving.access import Access
from workers.serving.asgi import Request
from workers.serving.auth import TokenAuthenticator
from workers.serving.known_callers import KnownCallers
from workers.serving.releases.dashboard import CredentialRefused
from workers.serving.settings import parse

REQUIRED = ["--dashboard", "http://x", "--token-file", "t", "--public-key-file", "k", "--home", "h"]


class Dashboard:
    """Answers at once, later, or never."""

    def __init__(self, **tokens: Access) -> None:
        self.tokens = tokens
        self.calls = self.questions = 0
        self.noted: list[str] = []
        self.error: OSError | None = None
        self.hold: asyncio.Event | None = None

    async def access_of(self, token: str) -> Access | None:
        self.calls += 1
        await self._answer()
        return self.tokens.get(token)

    async def known_access(self, digests: Collection[str], used: Collection[str]) -> dict[str, Access]:
        self.questions += 1
        self.noted += used
        await self._answer()
        known = {digest_of(token): access for token, access in self.tokens.items()}
        return {digest: known[digest] for digest in digests if digest in known}

    async def _answer(self) -> None:
        if self.hold is not None:
            await self.hold.wait()
        if self.error is not None:
            raise self.error


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def authenticator_of(
    dashboard: Dashboard, file: Path | None = None, grace: float = 3600
) -> TokenAuthenticator:
    return TokenAuthenticator(dashboard, KnownCallers(file, grace))


async def until(seen: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not seen():
            await asyncio.sleep(0.001)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for an answer for a moment only."""
    monkeypatch.setattr(auth, "_WAIT_SECONDS", 0.02)


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
    authenticator = authenticator_of(Dashboard(ty_predict=OWN, ty_read=Access(None), ty_expired=expired))
    assert await authenticator.check(request("bearer ty_predict")) == OWN
    with pytest.raises(refusal):
        await authenticator.check(request(header))


@pytest.mark.parametrize("token", ["other", "ty_é", "ty_" + "x" * 300])
async def test_text_that_is_no_token_is_refused_without_a_question(token: str) -> None:
    dashboard = Dashboard()
    with pytest.raises(Unauthenticated):
        await authenticator_of(dashboard).check(request(f"Bearer {token}"))
    assert dashboard.calls == 0


async def test_many_requests_with_one_new_token_wait_for_one_question() -> None:
    dashboard = Dashboard(ty_predict=OWN)
    dashboard.hold = asyncio.Event()
    authenticator = authenticator_of(dashboard)
    waiting = [asyncio.create_task(authenticator.check(request("Bearer ty_predict"))) for _ in range(50)]
    await until(lambda: dashboard.calls == 1)
    dashboard.hold.set()
    assert await asyncio.gather(*waiting) == [OWN] * 50
    assert dashboard.calls == 1


@pytest.mark.parametrize("outage", ["refusal", "silence"])
async def test_a_known_token_never_waits_while_the_dashboard_is_away(impatient: None, outage: str) -> None:
    dashboard = Dashboard(ty_predict=OWN)
    authenticator = authenticator_of(dashboard)
    await authenticator.check(request("Bearer ty_predict"))
    if outage == "refusal":
        dashboard.error = OSError("connection refused")
    else:
        dashboard.hold = asyncio.Event()
    asking = asyncio.create_task(authenticator.refresh())
    await until(lambda: authenticator._is_away)
    authenticator._callers.get(digest_of("ty_predict")).confirmed -= 3000  # type: ignore[union-attr]
    calls = dashboard.calls
    assert authenticator.is_known(request("Bearer ty_predict"), "digits")
    async with asyncio.timeout(0.01):
        assert await authenticator.check(request("Bearer ty_predict")) == OWN
        assert await authenticator.reaches(request("Bearer ty_predict"), "digits")
    assert dashboard.calls == calls
    asking.cancel()
    await authenticator.close()


async def test_an_unknown_token_is_refused_at_once_while_the_dashboard_is_away(impatient: None) -> None:
    dashboard = Dashboard(ty_predict=OWN)
    dashboard.hold = asyncio.Event()
    authenticator = authenticator_of(dashboard)
    with pytest.raises(Unavailable):
        await authenticator.check(request("Bearer ty_first"))
    async with asyncio.timeout(0.01):
        with pytest.raises(Unavailable) as refusal:
            await authenticator.check(request("Bearer ty_predict"))
    assert refusal.value.retry_after == 5
    # It is looked up beside the request, so that it works once a slow dashboard has answered.
    dashboard.hold.set()
    await until(lambda: authenticator._callers.get(digest_of("ty_predict")) is not None)
    assert await authenticator.check(request("Bearer ty_predict")) == OWN


async def test_many_new_tokens_do_not_make_the_dashboard_count_as_away(impatient: None) -> None:
    dashboard = Dashboard(ty_predict=OWN)
    dashboard.hold = asyncio.Event()
    authenticator = authenticator_of(dashboard)
    others = [
        asyncio.create_task(authenticator.check(request(f"Bearer ty_{number}"))) for number in range(40)
    ]
    for refused in await asyncio.gather(*others, return_exceptions=True):
        assert isinstance(refused, Unavailable)
    assert not authenticator._is_away
    dashboard.hold.set()
    await until(lambda: not authenticator._lookups)
    assert await authenticator.check(request("Bearer ty_predict")) == OWN


async def test_an_answer_ends_with_its_grace() -> None:
    dashboard = Dashboard(ty_predict=OWN)
    authenticator = authenticator_of(dashboard, grace=3600)
    await authenticator.check(request("Bearer ty_predict"))
    dashboard.error = OSError()
    await authenticator.refresh()
    authenticator._callers.get(digest_of("ty_predict")).confirmed -= 3601  # type: ignore[union-attr]
    assert not authenticator.is_known(request("Bearer ty_predict"), "digits")
    with pytest.raises(Unavailable):
        await authenticator.check(request("Bearer ty_predict"))
    assert authenticator.problem == "the dashboard does not answer, and no token is known yet"


async def test_a_revocation_arrives_with_the_next_question_about_known_tokens() -> None:
    dashboard = Dashboard(ty_predict=OWN, ty_other=OWN)
    authenticator = authenticator_of(dashboard)
    for token in ("ty_predict", "ty_other"):
        await authenticator.check(request(f"Bearer {token}"))
    del dashboard.tokens["ty_predict"]
    await authenticator.refresh()
    assert not authenticator.is_known(request("Bearer ty_predict"), "digits")
    with pytest.raises(Unauthenticated):
        await authenticator.check(request("Bearer ty_predict"))
    assert authenticator.is_known(request("Bearer ty_other"), "digits")
    assert dashboard.calls == 2, "a token that is not valid is not looked up for each request"
    assert auth._REFRESH_SECONDS + auth._WAIT_SECONDS < auth._CACHE_SECONDS == 10


async def test_a_token_that_ended_meanwhile_is_looked_up_again_where_this_server_is_refused() -> None:
    dashboard = Dashboard(ty_predict=OWN)
    authenticator = authenticator_of(dashboard)
    await authenticator.check(request("Bearer ty_predict"))
    dashboard.error = CredentialRefused("401")
    await authenticator.refresh()
    assert not authenticator._is_away
    dashboard.tokens, dashboard.error = {}, None
    authenticator._callers.get(digest_of("ty_predict")).confirmed -= 11  # type: ignore[union-attr]
    with pytest.raises(Unauthenticated):
        await authenticator.check(request("Bearer ty_predict"))


async def test_the_dashboard_learns_which_tokens_were_used() -> None:
    dashboard = Dashboard(ty_predict=OWN)
    authenticator = authenticator_of(dashboard)
    await authenticator.check(request("Bearer ty_predict"))
    for _ in range(2):
        await authenticator.refresh()
    assert dashboard.noted == [digest_of("ty_predict")]
    assert authenticator.is_known(request("Bearer ty_predict"), "digits")
    await authenticator.refresh()
    assert dashboard.noted == [digest_of("ty_predict")] * 2


async def test_a_dashboard_that_is_back_is_asked_again(impatient: None) -> None:
    dashboard = Dashboard(ty_predict=OWN)
    dashboard.error = OSError()
    authenticator = authenticator_of(dashboard)
    await authenticator.refresh()
    with pytest.raises(Unavailable):
        await authenticator.check(request("Bearer ty_predict"))
    dashboard.error = None
    await authenticator.refresh()
    assert await authenticator.check(request("Bearer ty_predict")) == OWN


async def test_a_restart_without_the_dashboard_answers_known_tokens(tmp_path: Path) -> None:
    dashboard = Dashboard(ty_predict=OWN)
    authenticator = authenticator_of(dashboard, tmp_path / "callers")
    await authenticator.check(request("Bearer ty_predict"))
    await authenticator.save()
    content = (tmp_path / "callers").read_text()
    assert "ty_predict" not in content
    assert digest_of("ty_predict") in content
    dashboard.error = OSError()
    again = authenticator_of(dashboard, tmp_path / "callers")
    await again.refresh()
    assert await again.check(request("Bearer ty_predict")) == OWN
    assert again.problem is None


async def test_a_revoked_token_stays_so_after_a_restart_without_the_dashboard(tmp_path: Path) -> None:
    dashboard = Dashboard(ty_predict=OWN)
    authenticator = authenticator_of(dashboard, tmp_path / "callers")
    await authenticator.check(request("Bearer ty_predict"))
    await authenticator.save()
    dashboard.tokens = {}
    await authenticator.refresh()
    await authenticator.save()
    dashboard.error = OSError()
    again = authenticator_of(dashboard, tmp_path / "callers")
    await again.refresh()
    with pytest.raises(Unavailable):
        await again.check(request("Bearer ty_predict"))


async def test_the_age_of_an_answer_survives_a_restart(tmp_path: Path) -> None:
    dashboard = Dashboard(ty_predict=OWN)
    authenticator = authenticator_of(dashboard, tmp_path / "callers")
    await authenticator.check(request("Bearer ty_predict"))
    authenticator._callers.get(digest_of("ty_predict")).confirmed -= 3000  # type: ignore[union-attr]
    callers = authenticator._callers.to_save()
    assert callers is not None
    authenticator._callers.save(callers)
    known = KnownCallers(tmp_path / "callers", 3600).get(digest_of("ty_predict"))
    assert known is not None
    assert 2999 < time.monotonic() - known.confirmed < 3100
    assert KnownCallers(tmp_path / "callers", 2900).get(digest_of("ty_predict")) is None


async def test_no_part_of_a_file_is_trusted(tmp_path: Path) -> None:
    """A power cut may leave any beginning of it, and a broken disk any change."""
    file = tmp_path / "callers"
    authenticator = authenticator_of(Dashboard(ty_predict=OWN), file)
    await authenticator.check(request("Bearer ty_predict"))
    await authenticator.save()
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert KnownCallers(file, 3600).is_empty, length
    file.write_bytes(whole.replace(b"digits", b"secret"))
    assert KnownCallers(file, 3600).is_empty
    file.write_bytes(whole)
    (tmp_path / "callers.new").write_bytes(whole[:50])
    assert not KnownCallers(file, 3600).is_empty


async def test_a_full_disk_is_tried_again(tmp_path: Path) -> None:
    callers = KnownCallers(tmp_path / "missing" / "callers", 3600)
    callers.put("0" * 64, OWN)
    changed = callers.to_save()
    assert changed is not None
    with pytest.raises(OSError, match="missing"):
        callers.save(changed)
    assert callers.to_save() is not None


async def test_a_full_disk_is_logged_once_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    authenticator = authenticator_of(Dashboard(ty_predict=OWN), tmp_path / "missing" / "callers")
    await authenticator.check(request("Bearer ty_predict"))
    for _ in range(5):
        await authenticator.save()
    assert len([record for record in caplog.records if "could not be saved" in record.message]) == 1
    monkeypatch.setattr(auth, "_COMPLAINT_SECONDS", 0.0)
    authenticator._complain_at -= 60
    await authenticator.save()
    assert len([record for record in caplog.records if "could not be saved" in record.message]) == 2


async def test_callers_are_written_in_a_thread_and_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Very many callers take long, and requests are answered meanwhile."""
    authenticator = authenticator_of(Dashboard(ty_predict=OWN), tmp_path / "callers")
    threads: list[threading.Thread] = []
    content_of = known_callers._content_of

    def note(callers: Sequence[tuple[str, known_callers.Caller]]) -> bytes:
        threads.append(threading.current_thread())
        return content_of(callers)

    monkeypatch.setattr(known_callers, "_content_of", note)
    saving = asyncio.create_task(authenticator.keep_saved())
    await authenticator.check(request("Bearer ty_predict"))
    deadline = time.monotonic() + 10
    while not (tmp_path / "callers").exists():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    for number in range(20):
        authenticator._callers.put(digest_of(str(number)), OWN)
        authenticator._is_unsaved.set()
        await asyncio.sleep(0.02)
    saving.cancel()
    assert len(threads) == 1, "the next write waits for some seconds"
    assert threads[0] is not threading.main_thread()


def test_many_callers_are_read_as_they_were_written(tmp_path: Path) -> None:
    callers = KnownCallers(tmp_path / "callers", 3600)
    odd = Access(frozenset({"b", 'a"\\'}), 17.5, 'until "friday"')
    for number in range(3 * known_callers._YIELD_AFTER + 1):
        callers.put(digest_of(str(number)), odd)
    callers.save(callers.to_save() or [])
    again = KnownCallers(tmp_path / "callers", 3600)
    assert len(again.digests()) == 3 * known_callers._YIELD_AFTER + 1
    caller = again.get(digest_of("7"))
    assert caller is not None
    assert caller.access == odd


async def test_unused_tokens_are_forgotten_and_there_are_not_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_callers, "MAX_CALLERS", 2)
    callers = KnownCallers(None, 3600)
    for digest in ("a", "b", "c"):
        callers.use(callers.put(digest, OWN))
    assert sorted(callers.digests()) == ["b", "c"]
    callers._callers["b"].used -= 3601
    assert callers.digests() == ["c"]


async def test_invalid_tokens_evict_no_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "_MAX_UNKNOWN", 2)
    dashboard = Dashboard(ty_predict=OWN)
    authenticator = authenticator_of(dashboard)
    await authenticator.check(request("Bearer ty_predict"))
    for number in range(5):
        with pytest.raises(Unauthenticated):
            await authenticator.check(request(f"Bearer ty_invalid{number}"))
    assert len(authenticator._unknown) == 2
    dashboard.error = OSError()
    await authenticator.refresh()
    assert await authenticator.check(request("Bearer ty_predict")) == OWN


async def test_a_token_reaches_its_endpoints_and_new_ones_after_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dashboard = Dashboard(ty_predict=OWN)
    authenticator = authenticator_of(dashboard)
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


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    empty = ("MAX_BATCH", "TRUSTED_PROXIES", "UNREADY_WHEN", "TOKEN_GRACE_SECONDS", "OPEN", "FORK", "PORT")
    assert parse(REQUIRED, {f"TRAINYARD_SERVING_{name}": "" for name in empty}) == parse(REQUIRED, {})


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--token-grace-seconds", "a day"], "'a day' is no number of seconds, such as 86400"),
        (["--token-grace-seconds", "-1"], "'-1' is no number of seconds"),
        (["--unready-when", "always"], "'always': choose from refused, cut-off, never"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(
    option: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse([*REQUIRED, *option], {})
    assert message in capsys.readouterr().err


def test_known_callers_are_answered_for_a_day_unless_it_is_changed() -> None:
    assert parse(REQUIRED, {}).token_grace_seconds == 24 * 3600
    settings = parse(
        REQUIRED,
        {"TRAINYARD_SERVING_TOKEN_GRACE_SECONDS": "60", "TRAINYARD_SERVING_UNREADY_WHEN": "never"},
    )
    assert (settings.token_grace_seconds, settings.unready_when) == (60, "never")
