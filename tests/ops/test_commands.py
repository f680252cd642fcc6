"""Command arguments, and those that commands pass to the programs that they start."""

import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from jobs.program import ROOT
from webapp.management.commands import demo, web
from webapp.ops.service import Service


def test_the_demo_starts_from_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    starts: list[tuple[tuple[str, ...], Path]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, cwd, **_: starts.append((command, cwd)))
    monkeypatch.chdir(tmp_path)
    demo._start("127.0.0.1", 0, 0)
    assert (starts[0][0][1:4], starts[0][1]) == (("-m", "webapp", "up"), ROOT)


def test_a_web_server_with_port_0_prepares_with_the_port_that_it_got(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    urls: list[str] = []

    def prepare(home: Any, url: str, report: Any) -> list[str]:
        urls.append(url)
        return []

    monkeypatch.setenv("TRAINYARD_HOME", str(tmp_path))
    monkeypatch.setattr(web, "prepare", prepare)
    monkeypatch.setattr(web, "exec_command", lambda argv: None)
    web.Command().handle(host="127.0.0.1", port=0, migrate=True)
    assert int(urls[0].rpartition(":")[2]) > 0


@pytest.mark.parametrize("flag", ["--port", "--serving-port"])
def test_a_busy_port_names_the_flag_to_change(
    flag: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any
) -> None:
    settings.TRAINYARD_HOME = tmp_path
    monkeypatch.setenv("TRAINYARD_BROKER", "embedded")
    started: list[Any] = []
    monkeypatch.setattr(Service, "start", started.append)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = {"--port": "0", "--serving-port": "0", flag: str(port)}
        expected = f"Port {port} on 127.0.0.1 is in use. Choose another one with {flag} "
        with pytest.raises(CommandError, match=re.escape(expected)):
            call_command("up", *(word for pair in ports.items() for word in pair))
    assert not started
    assert not (tmp_path / "run" / "urls.json").exists()
