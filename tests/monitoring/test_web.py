"""The web server's probes and metrics: who may read them, under any host name, and their cost."""

from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs.actions.people import tokens
from jobs.errors import Forbidden
from jobs.models import User
from jobs.monitoring import exposition, scrape_access
from jobs.monitoring.services import MEASURES
from tests.people import make_person
from webapp import health

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be cached from another test, and no broker be asked."""
    monkeypatch.setattr(health, "_access", scrape_access.ScrapeAccess())
    monkeypatch.setattr(exposition.installation_families, "_read_at", float("-inf"))
    monkeypatch.setattr(exposition._services, "_read_at", float("-inf"))
    monkeypatch.setitem(MEASURES, "broker", lambda: 0.001)


@pytest.fixture
def administrator() -> User:
    return make_person("root", admin=True)


def token_of(user: User, *scopes: str) -> str:
    return tokens.create(user, by=user, scopes=scopes)[1]


def scrape(secret: str | None = None, **headers: str) -> Any:
    if secret is not None:
        headers["authorization"] = f"Bearer {secret}"
    return Client().get("/metrics", headers=headers)


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz"])
@pytest.mark.parametrize("host", ["10.1.2.3:8000", "evil.example", "[::1"])
def test_probes_are_answered_by_any_address(path: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "PARTS", {"database": lambda: True})
    assert Client().get(path, headers={"host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_probes_and_scrapes_are_not_redirected_to_https(
    path: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    monkeypatch.setattr(health, "PARTS", {"database": lambda: True})
    assert Client().get(path, headers={"host": "10.1.2.3"}).status_code in (200, 401)
    assert Client().get("/accounts/login/").status_code == 301


def test_other_pages_still_check_the_host() -> None:
    assert Client().get("/accounts/login/", headers={"host": "10.1.2.3"}).status_code == 400


def test_ready_without_a_worker_leaves_that_part_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "PARTS", {"database": lambda: True, "worker": lambda: False})
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["missing"]) == (503, ["worker"])
    assert Client().get("/readyz?without=worker").json() == {"status": "ready"}
    refused = Client().get("/readyz?without=wrokers")
    assert refused.status_code == 422
    assert "'wrokers' is no part: give one of database, broker" in refused.json()["errors"]["without"]


def test_metrics_are_for_tokens_with_their_scope_alone(administrator: User) -> None:
    assert scrape().status_code == 401
    assert scrape("ty_unknown").status_code == 401
    assert scrape(token_of(administrator, "read", "admin")).status_code == 403
    assert Client().get("/metrics").headers["WWW-Authenticate"].startswith("Bearer")
    browser = Client()
    browser.force_login(administrator)
    assert browser.get("/metrics").status_code == 401
    answer = scrape(token_of(administrator, "metrics"), host="10.0.0.7")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")


def test_only_administrators_make_such_tokens_and_only_while_they_are(administrator: User) -> None:
    member = make_person("member")
    with pytest.raises(Forbidden, match="The scope metrics is only for administrators"):
        token_of(member, "metrics")
    secret = token_of(administrator, "metrics")
    User.objects.filter(pk=administrator.pk).update(is_superuser=False)
    assert scrape(secret).status_code == 403


def test_a_token_for_metrics_reads_nothing_else(administrator: User) -> None:
    headers = {"authorization": f"Bearer {token_of(administrator, 'metrics')}"}
    for path in ("/api/v1/jobs", "/api/v1/workers", "/api/v1/audit", "/api/v1/users"):
        assert Client().get(path, headers=headers).status_code == 403, path


def test_scrapes_within_seconds_share_their_queries(administrator: User) -> None:
    secret = token_of(administrator, "metrics")
    scrape(secret)
    with CaptureQueriesContext(connection) as captured:
        assert scrape(secret).status_code == 200
    assert len(captured) == 0


def test_without_the_database_known_tokens_read_what_is_left(
    administrator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = token_of(administrator, "metrics")
    assert "trainyard_database_up 1.0" in scrape(secret).content.decode()

    def away(*_: object) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(scrape_access, "KNOWN_SECONDS", 0.0)
    monkeypatch.setattr(scrape_access, "_status_of", away)
    monkeypatch.setattr(exposition, "read_figures", away)
    monkeypatch.setattr(exposition.installation_families, "_read_at", float("-inf"))
    monkeypatch.setattr(exposition._services, "_read_at", float("-inf"))
    monkeypatch.setitem(MEASURES, "database", lambda: None)
    text = scrape(secret).content.decode()
    assert "trainyard_database_up 0.0" in text
    assert "trainyard_queue_jobs" not in text
    assert scrape("ty_another").status_code == 503


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("7f0c-12.a:b_C", True),
        ("x" * 101, False),
        ('a"b', False),
        ("a b", False),
        ("ty_secretsecret", False),
        ("", False),
    ],
)
def test_a_valid_id_of_a_request_is_sent_back(sent: str, kept: bool) -> None:
    answered = Client().get("/healthz", headers={"X-Request-ID": sent}).headers["X-Request-ID"]
    assert (answered == sent) is kept
    assert answered


def test_each_request_is_counted_without_its_path(administrator: User) -> None:
    secret = token_of(administrator, "metrics")
    Client().get("/api/v1/jobs/123456")
    Client().generic("BREW", "/healthz")
    text = scrape(secret).content.decode()
    assert 'trainyard_http_requests_total{method="GET",status="401"}' in text
    assert 'trainyard_http_requests_total{method="other",status="405"}' in text
    assert "123456" not in text
    assert 'trainyard_http_request_seconds_bucket{kind="api"' in text
