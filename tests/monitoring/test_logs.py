"""Lines of the log: one for each event, one a minute for an outage, and none with a secret."""

import io
import json
import logging
import logging.config
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
import redis
import structlog
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError
from django.test import Client

from jobs.actions.people import tokens
from jobs.logs import foreign_output, masking
from jobs.logs.foreign_output import JsonLines, json_line
from jobs.logs.lines import begin_part, logging_settings, wants_json
from jobs.logs.outages import OutageFilter, missing_service
from jobs.logs.sampling import Sampler
from jobs.logs.start_errors import one_sentence
from jobs.models import User
from webapp import middleware
from webapp.ops.console import Console
from workers.supervise.attempt_repository import DatabaseUnavailable

PASSWORD = "s3cr3t-of-db"


class Log:
    """A logger with the configuration of JSON logs, and its lines."""

    def __init__(self) -> None:
        settings = logging_settings(as_json=True)
        configurator = logging.config.DictConfigurator(settings)
        self.stream, self.now = io.StringIO(), 0.0
        handler = logging.StreamHandler(self.stream)
        handler.setFormatter(configurator.configure_formatter(dict(settings["formatters"]["structlog"])))
        handler.addFilter(OutageFilter(clock=lambda: self.now))
        self.logger = logging.Logger("test")
        self.logger.addHandler(handler)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


@pytest.fixture
def log() -> Log:
    return Log()


def outage() -> OperationalError:
    try:
        try:
            raise psycopg.OperationalError("connection refused")
        except psycopg.OperationalError as cause:
            raise OperationalError("connection refused") from cause
    except OperationalError as error:
        return error


def test_an_error_is_one_line_with_its_traceback_as_a_field(log: Log) -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        log.logger.exception("it failed")
    [line] = log.lines
    assert (line["event"], line["level"], line["logger"]) == ("it failed", "error", "test")
    assert "ValueError: first\nsecond" in line["exception"]


@pytest.mark.parametrize(
    "write",
    [
        lambda logger: logger.warning("database unavailable: %s", outage()),
        lambda logger: logger.warning("renew: %s", DatabaseUnavailable("no answer")),
        lambda logger: logger.error("Internal Server Error: /jobs", exc_info=outage()),
        lambda logger: logger.warning("no hints: %s", redis.ConnectionError("refused")),
    ],
    ids=["argument", "worker", "traceback", "broker"],
)
def test_an_outage_is_one_line_a_minute_with_the_number_of_the_others(log: Log, write: Any) -> None:
    for second in range(130):
        log.now = float(second)
        for _ in range(10):
            write(log.logger)
    log.logger.info("something else")
    first, second_line, third, other = log.lines
    assert [line.get("suppressed") for line in (first, second_line, third)] == [None, 599, 599]
    assert other["event"] == "something else"


def test_each_service_has_lines_of_its_own_and_the_end_of_a_process_is_told(log: Log) -> None:
    log.logger.warning("a: %s", outage())
    log.logger.warning("b: %s", redis.ConnectionError("refused"))
    log.logger.warning("c: %s", outage())
    log.logger.critical("uncaught error: %s", outage())
    assert [line["event"][0] for line in log.lines] == ["a", "b", "u"]


def test_tries_of_the_pool_of_connections_belong_to_the_outage(log: Log) -> None:
    log.logger.name = "psycopg.pool"
    log.logger.warning("error connecting in 'pool-1': %s", outage())
    log.logger.warning("reconnection attempt in pool 'pool-1' failed after 5.0 sec")
    assert len(log.lines) == 1


@pytest.mark.parametrize("text", ["no such table: jobs_job", "deadlock detected"])
def test_a_fault_of_a_statement_is_no_outage(text: str) -> None:
    assert missing_service(OperationalError(text)) is None
    assert missing_service(ValueError("x")) is None
    assert missing_service(OperationalError("database is locked")) == "database"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"postgresql://trainyard:{PASSWORD}@db/x refused", PASSWORD),
        (f"redis://:{PASSWORD}@valkey:6379/0", PASSWORD),
        ("Authorization: Bearer abc.def-123456", "abc.def-123456"),
        ("token ty_aB3-verysecret is unknown", "aB3-verysecret"),
        ("GET https://s3/x?X-Amz-Signature=0123abcd&part=1", "0123abcd"),
        ("connection to host=db password=hunter22 failed", "hunter22"),
        ("the value of-the-variable-17 was sent", "of-the-variable-17"),
    ],
)
def test_no_secret_reaches_a_line(log: Log, text: str, secret: str) -> None:
    masking.mask_values_of({"AWS_SECRET_ACCESS_KEY": "of-the-variable-17"})
    try:
        log.logger.warning("%s", text)
        try:
            raise RuntimeError(text)
        except RuntimeError:
            log.logger.exception("failed")
        written = log.stream.getvalue() + json_line(text, "worker")
    finally:
        masking.mask_values_of(os.environ)
    assert secret not in written
    assert masking.MASK in written


def test_addresses_and_files_are_no_secrets() -> None:
    text = "redis://valkey:6379/0 http://h:80/a@b TRAINYARD_SECRET_KEY_FILE=/data/secret.key"
    assert masking.mask(text) == text
    assert masking.secrets_of({"TRAINYARD_SECRET_KEY_FILE": "/data/secret.key", "TOKEN": "short"}) == ()


def test_output_of_others_becomes_json_and_json_stays(capsys: pytest.CaptureFixture[str]) -> None:
    raw = json.loads(json_line("1:M 29 Nov # WARNING overcommit_memory is set to 0", "broker"))
    assert (raw["part"], raw["level"], raw["logger"]) == ("broker", "warning", "output")
    own = json.loads(json_line('{"event": "up", "level": "info", "part": "worker"}', "worker-2"))
    assert own == {"event": "up", "level": "info", "part": "worker-2"}
    assert json.loads(json_line("{not json", "web"))["event"] == "{not json"


def test_a_stream_splits_lines_and_keeps_the_rest() -> None:
    stream = io.StringIO()
    lines = JsonLines(stream, "web")
    lines.write("one\ntw")
    lines.write("o\n\nthree")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["one", "two"]
    lines.finish()
    assert json.loads(stream.getvalue().splitlines()[-1])["event"] == "three"


def test_the_console_of_up_writes_json_to_terminal_and_files(tmp_path: Path) -> None:
    terminal = io.StringIO()
    console = Console(tmp_path, terminal, as_json=True)
    console.line("broker", "Ready to accept connections")
    console.line("web", '{"event": "request", "level": "info"}')
    console.line("web", "")
    console.message("web ended with status 1; restarting it.", error=True)
    console.ready("web", "ready at http://127.0.0.1:8000")
    console.terminal_message("Open http://x/login/one-time-secret")
    console.close()
    lines = [json.loads(line) for line in terminal.getvalue().splitlines()]
    assert [(line["part"], line["level"]) for line in lines] == [
        ("broker", "info"),
        ("web", "info"),
        ("up", "error"),
        ("up", "info"),
        ("up", "info"),
    ]
    assert "one-time-secret" not in terminal.getvalue()
    files = {path.name: path.read_text().splitlines() for path in tmp_path.glob("*.log")}
    assert {name: len(written) for name, written in files.items()} == {
        "broker.log": 1,
        "web.log": 1,
        "up.log": 2,
    }
    assert all(json.loads(line)["event"] for written in files.values() for line in written)


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for owner, name in ((sys, "excepthook"), (threading, "excepthook"), (sys, "unraisablehook")):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    yield
    logging.captureWarnings(False)


def test_uncaught_errors_are_lines(hooks: None, caplog: pytest.LogCaptureFixture) -> None:
    begin_part("scheduler", {"TRAINYARD_LOG_JSON": "1"})
    error = ValueError("not caught")
    sys.excepthook(ValueError, error, None)
    thread = threading.Thread(target=lambda: 1 / 0, name="t-1")
    thread.start()
    thread.join()
    assert [record.levelname for record in caplog.records] == ["CRITICAL", "ERROR"]
    assert "uncaught error in the thread t-1: division by zero" in caplog.text


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, False),
        ({"TRAINYARD_LOG_JSON": "1"}, True),
        ({"TRAINYARD_PUBLIC_URL": "https://x"}, True),
        ({"TRAINYARD_PUBLIC_URL": "https://x", "TRAINYARD_LOG_JSON": "0"}, False),
    ],
)
def test_the_log_is_json_in_production_or_on_demand(variables: dict[str, str], expected: bool) -> None:
    assert wants_json(variables) is expected


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ImproperlyConfigured("TRAINYARD_DEBUG='a': give 1 or 0"), "TRAINYARD_DEBUG='a': give 1 or 0"),
        (outage(), "The database does not answer (TRAINYARD_DATABASE_URL): connection refused"),
        (PermissionError(13, "Permission denied", "/data/x"), "Permission denied: /data/x"),
    ],
)
def test_a_wrong_setting_is_one_sentence(
    error: Exception, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end, one_sentence():
        raise error
    assert end.value.code == 1
    assert capsys.readouterr().err == f"{sentence}\n"


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(KeyError), one_sentence():
        raise KeyError("x")


def test_a_sampler_chooses_its_share() -> None:
    assert sum(Sampler(0.25).chooses() for _ in range(8)) == 0
    sampler = Sampler(0.25)
    assert sum(sampler.chooses() for _ in range(100)) == 25
    assert not Sampler(0).chooses()
    assert Sampler(1).chooses()


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Collect the lines of the access log."""
    lines: list[dict[str, Any]] = []

    class Collecting:
        def info(self, event: str, **fields: Any) -> None:
            lines.append({**structlog.contextvars.get_contextvars(), **fields})

        warning = info

    monkeypatch.setattr(middleware, "log", Collecting())
    return lines


@pytest.mark.django_db
def test_the_access_log_has_who_what_and_how_long_without_the_query(
    requests: list[dict[str, Any]], settings: Any
) -> None:
    settings.TRAINYARD_ACCESS_LOG = 1.0
    user = User.objects.create_user("reader")
    client = Client(headers={"X-Request-ID": "abc-1"})
    client.force_login(user)
    client.get("/jobs/77?token=ty_secret")
    client.get("/healthz")
    [line] = requests
    assert line.pop("ms") > 0
    assert line == {
        "request": "abc-1",
        "method": "GET",
        "path": "/jobs/77",
        "status": 404,
        "address": "127.0.0.1",
        "user": user.pk,
        "job": 77,
    }


@pytest.mark.django_db
def test_without_an_access_log_only_failed_requests_have_a_line(
    requests: list[dict[str, Any]], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TRAINYARD_ACCESS_LOG = 0.0
    client = Client(raise_request_exception=False)
    client.get("/accounts/login/")
    assert not requests
    monkeypatch.setattr(middleware, "SLOW_SECONDS", 0.0)
    client.get("/accounts/login/")
    assert [line["path"] for line in requests] == ["/accounts/login/"]


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/v1/jobs", "/jobs"])
def test_requests_in_an_outage_share_one_line(
    path: str, log: Log, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("connection refused")

    client = Client(headers={"authorization": "Bearer ty_x"}, raise_request_exception=False)
    client.force_login(User.objects.create_user("reader"))
    monkeypatch.setattr(tokens, "authenticate", away)
    monkeypatch.setattr("webapp.pages.shortcuts.render_page", away)
    monkeypatch.setattr("jobs.session_store.SessionStore.load", away)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", log.logger.handlers)
    for _ in range(20):
        assert client.get(path).status_code in (500, 503)
    assert len(log.lines) == 1
    log.now = 61.0
    client.get(path)
    assert log.lines[1]["suppressed"] >= 39


def test_captured_output_of_a_child_is_json(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    written: list[str] = []
    os.write(writing, b"W0000 00:00:1 cpu.cc:1] slow\nhalf")
    os.close(writing)
    foreign_output.forward_lines(reading, cast(Any, written.append), "worker")
    os.close(reading)
    assert [json.loads(line)["level"] for line in written] == ["warning", "info"]


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("CommandError: Port 8400 on 127.0.0.1 is in use.", "error"),
        ("ValueError: no", "error"),
        ("program: error: argument --x: no", "error"),
        ("7:M 30 Nov 2026 01:52:00.824 # Failed opening Unix socket: bind: No such file", "error"),
        ("7:C 30 Nov 2026 01:52:00.823 # Configuration loaded", "info"),
        ("7:M 30 Nov 2026 01:52:00.824 # WARNING Memory overcommit must be enabled! It can fail", "warning"),
        ("UserWarning: slow", "warning"),
        ("0 errors, no failures", "info"),
    ],
)
def test_the_level_of_foreign_output_is_that_of_its_words(text: str, level: str) -> None:
    assert json.loads(json_line(text, "web"))["level"] == level
