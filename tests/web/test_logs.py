"""Secrets do not reach the log, wherever a line contains them."""

import json
import logging
import logging.config

import pytest

from jobs.logs.lines import logging_settings

SECRETS = ("LtJ4fE-k_secret", "aB3-verysecret")


@pytest.fixture(params=[True, False], ids=["json", "text"])
def formatter(request: pytest.FixtureRequest) -> logging.Formatter:
    settings = logging_settings(as_json=request.param)["formatters"]["structlog"]
    return logging.config.DictConfigurator({"version": 1}).configure_formatter(dict(settings))


def line(formatter: logging.Formatter, message: str, **more: object) -> str:
    record = logging.LogRecord("a", logging.WARNING, __file__, 1, message, None, None)
    record.__dict__.update(more)
    return formatter.format(record)


def test_the_secrets_of_links_and_tokens_are_masked_in_messages(formatter: logging.Formatter) -> None:
    link, token = SECRETS
    written = line(formatter, f"Forbidden: http://yard/login/{link}?next=/jobs by ty_{token}, for LoginView")
    assert link not in written
    assert token not in written
    assert "/login/•••?next=/jobs by ty_•••, for LoginView" in written


def test_they_are_masked_in_tracebacks(formatter: logging.Formatter) -> None:
    try:
        raise ValueError(f"/login/{SECRETS[0]}")
    except ValueError as error:
        failure = (type(error), error, error.__traceback__)
    written = line(formatter, "failed", exc_info=failure)
    assert SECRETS[0] not in written
    assert "ValueError: /login/" in written


def test_json_lines_stay_valid() -> None:
    settings = logging_settings(as_json=True)["formatters"]["structlog"]
    formatter = logging.config.DictConfigurator({"version": 1}).configure_formatter(dict(settings))
    written = json.loads(line(formatter, f'"/login/{SECRETS[0]}" ty_{SECRETS[1]}\\'))
    assert written["event"] == '"/login/•••" ty_•••\\'


def test_a_long_value_of_a_client_is_shortened(formatter: logging.Formatter) -> None:
    written = line(formatter, f"Invalid HTTP_HOST header: {'a' * 60_000}")
    assert len(written) < 3000
    assert "(60,026 characters)" in written


def test_a_request_that_django_refuses_has_no_traceback(formatter: logging.Formatter) -> None:
    try:
        raise ValueError("evil.example")
    except ValueError as error:
        failure = (type(error), error, error.__traceback__)
    record = logging.LogRecord(
        "django.security.DisallowedHost", logging.ERROR, __file__, 1, "refused", None, failure
    )
    written = formatter.format(record)
    assert "refused" in written
    assert "Traceback" not in written
