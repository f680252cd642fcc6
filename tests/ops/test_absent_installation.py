"""A command on a home that does not exist names that home, creates nothing and ends with 1."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from django.core.management import get_commands

from jobs import program
from jobs.logs import absent_installation
from jobs.logs.absent_installation import BEGINNING, INDEPENDENT
from tests.ops.conftest import ROOT

ALL = sorted(name.replace("_", "-") for name in get_commands())
OWN = sorted(name.replace("_", "-") for name, app in get_commands().items() if app == "webapp")
USING = [name for name in ALL if name not in BEGINNING | INDEPENDENT]
OPTIONS = {"chief": ["--project", "a", "--name", "b"], "worker": ["--slots", "1"]}
"""Options that a part needs, or has."""

RUN_ALL = """
import json, os, sys, tempfile
import django
from jobs.logs import absent_installation
absent_installation.keep_absent(["queue"])
django.setup()
from webapp.__main__ import main

def run(arguments):
    with tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            sys.argv = ["manage.py", *arguments]
            status = 3
            try:
                main()
                status = 0
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 0 if end.code is None else 3
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        text = output.read()
    return status, text, os.path.exists(os.environ["TRAINYARD_HOME"])

print(json.dumps({" ".join(words): run(words) for words in json.loads(sys.argv[1])}))
"""
"""Runs each command in a fork of one process that has imported everything."""


class End(NamedTuple):
    """How a command ended: its exit status, its output, and whether its home exists now."""

    status: int
    output: str
    has_made_home: bool


def variables_without(home: Path, **others: str) -> dict[str, str]:
    """Return the environment with this home, and no other variable of ours."""
    usual = {name: text for name, text in os.environ.items() if not name.startswith("TRAINYARD_")}
    return usual | {"TRAINYARD_HOME": str(home), "DJANGO_SETTINGS_MODULE": "webapp.settings.main"} | others


@pytest.fixture(scope="module")
def missing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes") / "mistyped"


@pytest.fixture(scope="module")
def ends(missing: Path) -> dict[str, End]:
    """How each command ended on a home that does not exist: by itself, and with --help."""
    calls = [[name, *OPTIONS.get(name, [])] for name in [*USING, *sorted(INDEPENDENT & {"check", "serve"})]]
    calls += [[name, "--help"] for name in OWN]
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, json.dumps(calls)],
        cwd=ROOT,
        env=variables_without(missing),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {line: End(*end) for line, end in json.loads(done.stdout).items()}


@pytest.mark.parametrize("command", USING)
def test_a_command_that_uses_an_installation_names_the_missing_home_and_creates_nothing(
    command: str, ends: dict[str, End], missing: Path
) -> None:
    end = ends[" ".join([command, *OPTIONS.get(command, [])])]
    assert f"TRAINYARD_HOME, which is {missing} now" in end.output
    assert "Traceback" not in end.output
    assert end.status == 1
    assert not end.has_made_home


@pytest.mark.parametrize("command", OWN)
def test_the_help_of_a_command_creates_nothing(command: str, ends: dict[str, End]) -> None:
    end = ends[f"{command} --help"]
    assert (end.status, end.has_made_home) == (0, False), end.output


def test_a_prediction_server_without_its_files_makes_no_home(ends: dict[str, End], missing: Path) -> None:
    end = ends["serve"]
    assert f"the home {missing} does not exist" in end.output
    assert (end.status, end.has_made_home) == (1, False)


def test_a_command_that_needs_no_installation_makes_no_home(ends: dict[str, End]) -> None:
    end = ends["check"]
    assert (end.status, end.has_made_home) == (0, False), end.output


@pytest.mark.parametrize(
    ("command", "is_refused"),
    [("adduser", True), ("scheduler", True), ("web", True), ("queue", False), ("worker", False)],
)
def test_with_a_database_server_a_part_that_signs_needs_the_secret_key(
    command: str, is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINYARD_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("TRAINYARD_DATABASE_URL", "postgres://localhost/trainyard")
    monkeypatch.delenv("TRAINYARD_SECRET_KEY_FILE", raising=False)
    sentence = absent_installation.problem(command)
    if not is_refused:
        assert sentence is None
        return
    assert sentence is not None
    assert f"nor the secret key {tmp_path / 'none' / 'secret.key'}" in sentence
    key = tmp_path / "copied.key"
    key.touch()
    monkeypatch.setenv("TRAINYARD_SECRET_KEY_FILE", str(key))
    assert absent_installation.problem(command) is None, "the parts of other machines have a copy of the key"


@pytest.mark.parametrize(
    ("arguments", "url", "makes_files"),
    [
        ("up", "", True),
        ("migrate", "", True),
        ("restore x.tar", "", True),
        ("web --migrate", "", True),
        ("web", "", False),
        ("worker", "", False),
        ("worker", "postgres://localhost/trainyard", True),
        ("scheduler", "postgres://localhost/trainyard", False),
        ("up --help", "", False),
    ],
)
def test_only_what_begins_an_installation_or_a_machine_makes_files(
    arguments: str, url: str, makes_files: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINYARD_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("TRAINYARD_DATABASE_URL", url)
    monkeypatch.delenv("TRAINYARD_SECRET_KEY_FILE", raising=False)
    monkeypatch.setenv(program.WITHOUT_FILES_VARIABLE, "")
    absent_installation.keep_absent(arguments.split())
    assert bool(os.environ[program.WITHOUT_FILES_VARIABLE]) != makes_files


def test_a_backup_is_verified_without_an_installation() -> None:
    assert not absent_installation.uses_installation(["backup", "--verify", "x.tar"])


def test_a_wrong_setting_is_named_before_the_missing_home(tmp_path: Path) -> None:
    done = run("adduser ada", tmp_path / "none", TRAINYARD_REDIS_URL="http://h")
    assert (done.returncode, "give redis://" in done.stderr) == (1, True), done.stderr
    assert not list(tmp_path.iterdir())


def test_version_names_itself_before_a_home_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other").chmod(0o755)
    (tmp_path / "other" / "a file").touch()
    done = run("version", tmp_path / "other")
    assert done.stdout == f"program  {program.program_version()}\n"
    assert "is no home of Trainyard" in done.stderr
    assert (done.returncode, [path.name for path in (tmp_path / "other").iterdir()]) == (1, ["a file"])


def run(arguments: str, home: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as a terminal does."""
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments.split()],
        cwd=home.parent,
        env=variables_without(home, **variables),
        capture_output=True,
        text=True,
        check=False,
    )
