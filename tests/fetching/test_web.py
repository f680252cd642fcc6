"""A file of a web server is read from the checked address alone, and hostile servers end with a sentence."""

import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import FetchFailed
from jobs.sources.web import open_web
from jobs.spec.data.addresses import parse
from jobs.spec.data.credentials import CREDENTIAL, Credential
from tests.fetching.servers import (
    Answer,
    Exchange,
    Server,
    certificate,
    file,
    redirect,
    serving,
    stalling,
)

CSV = b"age,price\n1,2\n"
SECRET = "s3cr3t-t0ken"


def bearer(host: str) -> Credential:
    return CREDENTIAL.validate_python({"kind": "bearer", "host": host, "token": SECRET})


def read(server: Server, allow: Any, path: str = "/a.csv", credential: Credential | None = None) -> bytes:
    allow("127.0.0.1", server.port)
    return b"".join(open_web(parse(f"http://127.0.0.1:{server.port}{path}"), credential).blocks)


def failure(answer: Answer, allow: Any) -> FetchFailed:
    with serving(answer) as server, pytest.raises(FetchFailed) as failed:
        read(server, allow)
    return failed.value


def test_a_file_is_read_with_its_size_tag_and_time(allow: Any) -> None:
    answer = file(CSV, 'ETag: "abc"', "Last-Modified: Tue, 24 Nov 2026 10:00:00 GMT")
    with serving(answer) as server:
        allow("127.0.0.1", server.port)
        source = open_web(parse(f"http://127.0.0.1:{server.port}/a.csv?x=1"), None)
        assert (source.size, source.etag, source.modified) == (
            len(CSV),
            '"abc"',
            "Tue, 24 Nov 2026 10:00:00 GMT",
        )
        assert b"".join(source.blocks) == CSV
        assert server.heads[0].startswith(b"GET /a.csv?x=1 HTTP/1.1\r\nHost: 127.0.0.1:")


def test_control_characters_of_headers_are_left_out(allow: Any) -> None:
    with serving(file(CSV, "ETag: a\0b\x1b[2Jc" + "d" * 300)) as server:
        allow("127.0.0.1", server.port)
        source = open_web(parse(f"http://127.0.0.1:{server.port}/a.csv"), None)
        assert source.etag.startswith("ab[2Jcd") and len(source.etag) == 200


def test_a_file_of_chunks_has_no_size(allow: Any) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        exchange.send(b"4\r\nage,\r\n", b"3\r\nx\n1\r\n", b"0\r\n\r\n")

    with serving(answer) as server:
        assert read(server, allow) == b"age,x\n1"


def test_https_works_with_a_listed_host_and_a_valid_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allow: Any
) -> None:
    with serving(file(CSV), certificate(tmp_path)) as server:
        allow("localhost", server.port)
        address = parse(f"https://localhost:{server.port}/a.csv")
        with pytest.raises(FetchFailed) as refused:
            open_web(address, None)
        assert refused.value.code == "certificate"
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
        assert b"".join(open_web(address, None).blocks) == CSV


def test_a_certificate_for_another_host_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allow: Any
) -> None:
    context: ssl.SSLContext = certificate(tmp_path, "elsewhere.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
    with serving(file(CSV), context) as server:
        allow("localhost", server.port)
        with pytest.raises(FetchFailed) as refused:
            open_web(parse(f"https://localhost:{server.port}/a.csv"), None)
        assert refused.value.code == "certificate"


def test_http_and_private_hosts_are_refused_unless_they_are_listed() -> None:
    with serving(file(CSV)) as server:
        for address in (f"http://127.0.0.1:{server.port}/a.csv", f"https://127.0.0.1:{server.port}/a.csv",
                        f"https://localhost:{server.port}/a.csv", "http://example.org/a.csv"):  # fmt: skip
            with pytest.raises(FetchFailed) as refused:
                open_web(parse(address), None)
            assert refused.value.code == "address_refused"
        assert server.connections == 0


def test_a_name_is_resolved_once_and_its_checked_address_is_used(
    monkeypatch: pytest.MonkeyPatch, allow: Any
) -> None:
    """A second resolution could give a private address, as a name with a short lifetime does."""
    asked: list[str] = []
    with serving(file(CSV)) as server:

        def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
            asked.append(host)
            address = "127.0.0.1" if len(asked) == 1 else "127.0.0.2"
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        allow("data.example", server.port)
        source = open_web(parse(f"http://data.example:{server.port}/a.csv"), None)
        assert b"".join(source.blocks) == CSV
    assert asked == ["data.example"]


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:{other}/secret.csv",
        "https://127.0.0.1:{other}/secret.csv",
        "//localhost:{other}/secret.csv",
        "http://169.254.169.254/latest/meta-data/",
        "https://[::1]:{other}/secret.csv",
        "https://[::ffff:127.0.0.1]:{other}/secret.csv",
        "file:///etc/passwd",
        "gopher://127.0.0.1:{other}/",
        "s3://bucket/key.csv",
        "https://user:pass@example.org/",
        "",
    ],
)
def test_a_redirect_to_an_address_that_is_not_allowed_is_refused(target: str, allow: Any) -> None:
    with serving(file(CSV)) as other, serving(redirect(target.format(other=other.port))) as server:
        with pytest.raises(FetchFailed) as refused:
            read(server, allow)
        assert refused.value.code == "address_refused"
        assert other.connections == 0


def test_a_redirect_to_an_allowed_address_is_followed(allow: Any) -> None:
    def answer(exchange: Exchange) -> None:
        (file(CSV) if exchange.path == "/b.csv" else redirect("/b.csv#top"))(exchange)

    with serving(answer) as server:
        assert read(server, allow) == CSV


def test_endless_redirects_end(allow: Any) -> None:
    with serving(redirect("/a.csv")) as server:
        with pytest.raises(FetchFailed) as failed:
            read(server, allow)
        assert failed.value.code == "too_many_redirects"
        assert server.connections == 6


def test_a_token_is_sent_to_its_host_and_to_no_other_one(allow: Any) -> None:
    with serving(file(CSV)) as other, serving(redirect(f"http://127.0.0.1:{other.port}/b.csv")) as server:
        allow("127.0.0.1", other.port)
        assert read(server, allow, credential=bearer(f"127.0.0.1:{server.port}")) == CSV
        assert f"Authorization: Bearer {SECRET}".encode() in server.heads[0]
        assert b"uthorization" not in other.heads[0]
        assert SECRET.encode() not in other.heads[0]


def test_a_user_and_a_password_are_sent_as_basic_credentials(allow: Any) -> None:
    with serving(file(CSV)) as server:
        fields = {"kind": "basic", "host": f"127.0.0.1:{server.port}", "user": "ada", "password": "p:ä"}
        read(server, allow, credential=CREDENTIAL.validate_python(fields))
        assert b"Authorization: Basic YWRhOnA6w6Q=" in server.heads[0]


@pytest.mark.parametrize(
    "status", ["401 Unauthorized", "403 Forbidden", "404 Not Found", "500 Oops", "206 Part"]
)
def test_other_answers_name_their_status_and_repeat_nothing_of_the_server(status: str, allow: Any) -> None:
    failed = failure(file(b"internal secret", status=status), allow)
    assert status[:3] in failed.message
    assert "internal" not in failed.message and status[4:] not in failed.message


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (file(CSV, "Content-Encoding: gzip"), "source_refused"),
        (lambda exchange: exchange.send(b"220 mail.example ESMTP\r\n"), "source_refused"),
        (lambda exchange: exchange.send(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 100_000), "source_refused"),
        (lambda exchange: None, "connection_lost"),
    ],
)
def test_servers_that_do_not_send_the_file_end_with_a_sentence(answer: Answer, code: str, allow: Any) -> None:
    assert failure(answer, allow).code == code


@pytest.mark.usefixtures("fast_stalls")
@pytest.mark.parametrize(
    "start", [b"", b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nage,"]
)
def test_a_server_that_stalls_is_given_up(start: bytes, allow: Any) -> None:
    assert failure(stalling(start), allow).code == "stalled"


def test_a_host_without_a_server_is_reported(allow: Any) -> None:
    with serving(file(CSV)) as server:
        port = server.port
    allow("127.0.0.1", port)
    with pytest.raises(FetchFailed) as failed:
        open_web(parse(f"http://127.0.0.1:{port}/a.csv"), None)
    assert failed.value.code == "connection_failed"
