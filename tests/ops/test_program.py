"""The program's own files, version and commands, from a checkout; tests/package tests the wheel."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from django.test import Client

from jobs import program
from tests.markup import text_of
from tests.ops.conftest import ROOT
from tests.people import People, browser_of
from webapp import __main__ as entry
from webapp.api.site import api
from webapp.management.commands import chief, serve

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


@pytest.mark.parametrize("argument", ["version", "--version"])
def test_the_version_is_printed_without_a_home(argument: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "manage.py"), argument]
    done = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=True)
    assert done.stdout == f"{VERSION}\n"
    assert not list(tmp_path.iterdir())


def test_version_names_a_home_that_does_not_exist(tmp_path: Path) -> None:
    missing = tmp_path / "mistyped"
    command = [sys.executable, str(ROOT / "manage.py"), "version"]
    variables = {"TRAINYARD_HOME": str(missing)}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        VERSION,
        f"TRAINYARD_HOME: there is no folder {missing}, so there is no installation.",
    ]
    assert not missing.exists()


def test_version_describes_the_installation_of_a_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    variables = {"TRAINYARD_HOME": str(home), "PATH": os.environ["PATH"]}
    command = [sys.executable, str(ROOT / "manage.py"), "version"]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"program  {VERSION}, schema 00")
    assert f"\nstore    {home / 'artifacts'}, which does not exist yet\n" in done.stdout
    assert "trainyard.sqlite3 does not exist" in done.stdout.splitlines()[-1]
    assert not list(home.iterdir())


def test_the_api_has_the_version_of_the_project() -> None:
    assert api.get_openapi_schema()["info"]["version"] == VERSION


def test_pages_show_the_version(people: People) -> None:
    page = browser_of(people.trainer).get("/").content.decode()
    assert f'<footer class="ty-foot">Trainyard {VERSION}</footer>' in page


def test_commands_are_shown_as_a_terminal_needs_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program._start.cache_clear()
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.setenv("TRAINYARD_HOME", str(tmp_path / ".trainyard"))
    assert program.command_line("up --port 0") == ".venv/bin/python manage.py up --port 0"
    program._start.cache_clear()
    monkeypatch.setattr(sys, "prefix", "/opt/trainyard")
    assert program.command_line("up") == "python manage.py up"
    program._start.cache_clear()
    monkeypatch.setattr(program, "IS_CHECKOUT", False)
    home = tmp_path / ".trainyard"
    assert program.command_line("up") == f"TRAINYARD_HOME={home} trainyard up", "it starts in any folder"
    assert program.command_line("up", with_home=False) == "trainyard up"
    program._start.cache_clear()


def test_commands_name_a_home_that_they_would_not_find(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, people: People
) -> None:
    monkeypatch.setenv("TRAINYARD_HOME", str(tmp_path / "our yard"))
    assert program.command_line("up").startswith(f"TRAINYARD_HOME='{tmp_path}/our yard' ")
    page = text_of(browser_of(people.administrator).get("/people"))
    assert f"TRAINYARD_HOME='{tmp_path}/our yard' " in page
    assert "our yard" not in Client().get("/accounts/login/").content.decode(), (
        "who has not logged in sees no folders"
    )


def test_relative_paths_in_the_environment_are_those_of_the_folder_of_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAINYARD_HOME", "")
    monkeypatch.setenv("TRAINYARD_ARTIFACTS", "s3://bucket/files")
    monkeypatch.setenv("TRAINYARD_SECRET_KEY_FILE", "keys/secret")
    monkeypatch.delenv("TRAINYARD_PACKAGE_FOLDER", raising=False)
    entry._make_paths_absolute()
    assert os.environ["TRAINYARD_HOME"] == str(tmp_path / ".trainyard")
    assert os.environ["TRAINYARD_ARTIFACTS"] == "s3://bucket/files"
    assert os.environ["TRAINYARD_SECRET_KEY_FILE"] == str(tmp_path / "keys" / "secret")
    assert "TRAINYARD_PACKAGE_FOLDER" not in os.environ


def test_files_on_the_command_line_are_those_of_the_folder_of_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[tuple[str, ...]] = []
    for module in (chief, serve):
        monkeypatch.setattr(module, "exec_command", started.append)
    monkeypatch.setenv("TRAINYARD_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir(mode=0o700)
    monkeypatch.chdir(tmp_path)
    chief.Command().run_from_argv(["trainyard", "chief", "--name", "it", "--space", "space.json"])
    serve.Command().run_from_argv(["trainyard", "serve", "--token-file", "token"])
    assert started[0][-4:] == ("--name", "it", "--space", str(tmp_path / "space.json"))
    assert started[1][started[1].index("--token-file") + 1] == str(tmp_path / "token")
