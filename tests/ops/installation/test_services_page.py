"""The commands of the page about services, with programs in place of Docker and systemd."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from tests.ops.conftest import ROOT
from tests.ops.guide_commands import Command, command, commands
from tests.ops.installation import compose

PAGE = 15
STANDS_FOR = """#!/bin/sh
for word in "$(basename "$0")" "$@"; do printf '%s\\n' "$word"; done >> "$CALLS"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the files that the commands use."""
    folder = tmp_path / "trainyard"
    folder.mkdir()
    shutil.copytree(ROOT / "deploy", folder / "deploy")
    for name in compose.FILES:
        shutil.copy(ROOT / name, folder)
    return folder


def called(each: Command, checkout: Path, **replacements: str) -> list[str]:
    """Run a command whose programs write down their arguments; return these."""
    programs, calls = checkout.parent / "programs", checkout.parent / "calls"
    programs.mkdir()
    for name in ("docker", "systemctl", "systemd-run", "journalctl", "useradd"):
        (programs / name).write_text(STANDS_FOR)
        (programs / name).chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    done = each.run(replacements, cwd=checkout, PATH=path, CALLS=str(calls))
    assert done.returncode == 0, done.stderr
    return calls.read_text().splitlines() if calls.exists() else []


def test_the_file_of_variables_gets_passwords_that_compose_finds(checkout: Path) -> None:
    for part in (
        "cp deploy/trainyard.env.example .env",
        "chmod 600 .env",
        "TRAINYARD_DB_PASSWORD",
        "TRAINYARD_BROKER_PASSWORD",
        "TRAINYARD_PUBLIC_URL=https",
    ):
        done = command_of(part).run(cwd=checkout)
        assert done.returncode == 0, done.stderr
    file = checkout / ".env"
    assert file.stat().st_mode & 0o777 == 0o600
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    variables = dict(line.split("=", 1) for line in lines)
    web = compose.load("docker-compose.yml", variables=variables)["services"]["web"]
    assert web["environment"]["TRAINYARD_PUBLIC_URL"] == "https://trainyard.example"
    assert len(variables["TRAINYARD_DB_PASSWORD"]) == 48


def command_of(part: str) -> Command:
    (found,) = [each for each in commands(15) if part in each.text]
    return found


@pytest.mark.parametrize("each", [each for each in commands(15) if each.text.startswith("docker ")], ids=str)
def test_commands_of_docker_name_files_services_and_commands_that_exist(
    each: Command, checkout: Path
) -> None:
    program, subject, *words = called(each, checkout)
    assert (program, subject) == ("docker", "compose")
    while words[0] == "-f":
        assert (checkout / words[1]).exists()
        words = words[2:]
    services = compose.load(*compose.FILES, variables=compose.PASSWORDS)["services"]
    match words:
        case ["up", *options]:
            assert set(options) <= {"-d", "--build"}
        case ["exec", service, "python", "manage.py", name, *arguments]:
            assert service in services
            parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
            parser.parse_args(arguments)
        case ["cp", source, _]:
            service, _, folder = source.partition(":")
            assert any(volume.endswith(f":{folder}") for volume in services[service]["volumes"])
        case ["logs", service]:
            assert service in services
        case _:
            pytest.fail(f"unknown: {words}")


def test_the_units_are_installed_from_the_folder(checkout: Path, tmp_path: Path) -> None:
    etc, units = tmp_path / "etc", tmp_path / "units"
    units.mkdir()
    here = {"/srv/trainyard": str(checkout)}
    done = command(PAGE, "install -D").run({**here, "/etc/trainyard": str(etc)})
    assert done.returncode == 0, done.stderr
    assert (etc / "trainyard.env").stat().st_mode & 0o777 == 0o600
    done = command(PAGE, "cp /srv/trainyard/deploy/systemd").run({**here, "/etc/systemd/system": str(units)})
    assert done.returncode == 0, done.stderr
    assert {path.name for path in units.iterdir()} == {
        path.name for path in (ROOT / "deploy" / "systemd").iterdir()
    }


@pytest.mark.parametrize(
    "each",
    [each for each in commands(15) if each.text.startswith(("systemctl", "journalctl", "useradd"))],
    ids=str,
)
def test_commands_of_systemd_name_units_that_exist(each: Command, checkout: Path) -> None:
    names = [word for word in called(each, checkout) if word.endswith((".service", ".target", ".timer"))]
    for name in names:
        template = name.split("@")[0] + "@.service" if "@" in name else name
        assert (checkout / "deploy" / "systemd" / template).exists(), name


def test_a_command_of_an_operator_runs_with_the_user_and_the_variables_of_the_units(checkout: Path) -> None:
    words = called(command(PAGE, "systemd-run --pty"), checkout)
    start = words.index("/srv/trainyard/.venv/bin/python")
    assert {"--uid=trainyard", "EnvironmentFile=/etc/trainyard/trainyard.env"} <= set(words[:start])
    done = subprocess.run([sys.executable, *words[start + 1 : start + 3], "--help"], cwd=ROOT, check=False)
    assert done.returncode == 0
