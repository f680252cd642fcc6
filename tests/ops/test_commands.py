"""The arguments that commands pass to the programs that they start."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from webapp.management.commands import demo, web
from webapp.ops.parts import ROOT


def test_the_demo_starts_from_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: commands.append(command))
    monkeypatch.chdir(tmp_path)
    demo._start("127.0.0.1", 0, 0)
    assert commands[0][1] == str(ROOT / "manage.py")


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
