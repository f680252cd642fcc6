"""The host names to which a prediction server on a loopback address answers."""

import pytest

from workers.model_process.errors import BadRequest
from workers.serving.asgi import Request
from workers.serving.hosts import check_host
from workers.serving.settings import parse

REQUIRED = ["--dashboard", "http://x", "--token-file", "t", "--public-key-file", "k", "--home", "h"]
ENVIRONMENT = {
    "TRAINYARD_ALLOWED_HOSTS": "inner, .lab.example",
    "TRAINYARD_PUBLIC_URL": "https://yard.example",
}
HOSTS = parse(REQUIRED, ENVIRONMENT).hosts


def request(host: str | None, http: str = "1.1") -> Request:
    headers = [] if host is None else [(b"host", host.encode())]

    async def nothing() -> dict[str, object]:
        return {}

    return Request({"method": "GET", "raw_path": b"/", "headers": headers, "http_version": http}, nothing)


@pytest.mark.parametrize(
    "host",
    ["localhost:8501", "LOCALHOST", "127.0.0.1", "[::1]:8501", "inner", "a.lab.example", "yard.example"],
)
def test_own_names_are_answered(host: str) -> None:
    check_host(request(host), HOSTS or ())


@pytest.mark.parametrize(
    "host",
    [None, "", "evil.example", "localhost.evil.example", "evillab.example", "localhost@evil", "[::1]x"],
)
def test_other_names_are_refused(host: str | None) -> None:
    with pytest.raises(BadRequest):
        check_host(request(host), HOSTS or ())


def test_a_request_by_http_1_0_needs_no_host() -> None:
    check_host(request(None, "1.0"), HOSTS or ())
    with pytest.raises(BadRequest):
        check_host(request("evil.example", "1.0"), HOSTS or ())
    with pytest.raises(BadRequest):
        check_host(request("", "1.0"), HOSTS or ())


def test_a_server_beyond_loopback_answers_to_any_name() -> None:
    assert parse([*REQUIRED, "--host", "0.0.0.0"], {}).hosts is None


def test_a_star_is_refused_at_the_start() -> None:
    with pytest.raises(SystemExit):
        parse(REQUIRED, {"TRAINYARD_ALLOWED_HOSTS": "*"})
