"""The units of systemd: one for each part, each with the sandbox of the unit for everything."""

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from tests.ops.conftest import ROOT

FOLDER = ROOT / "deploy" / "systemd"
PROGRAM = "/srv/trainyard"
SERVICES = sorted(path.name for path in FOLDER.glob("*.service"))
PARTS = [name for name in SERVICES if name != "trainyard.service"]
WORKER = "trainyard-worker@.service"
UNHARDENED = (
    *("User", "WorkingDirectory", "Environment", "ExecStart", "Restart", "KillMode", "TimeoutStopSec"),
    *("StateDirectory", "StateDirectoryMode", "MemoryMax", "TasksMax"),
)
CAPABILITIES = ("AmbientCapabilities", "CapabilityBoundingSet")


class Unit(configparser.RawConfigParser):
    """A unit file. Repeated settings are allowed; the last one counts here."""

    def __init__(self, text: str) -> None:
        super().__init__(strict=False, delimiters=("=",), comment_prefixes=("#",))
        self.optionxform = str  # type: ignore[assignment,method-assign]
        self.read_string(text)


def unit(name: str) -> Unit:
    return Unit((FOLDER / name).read_text())


def single() -> Unit:
    """Return the unit on the page about security."""
    page = (ROOT / "docs" / "guide" / "8-security.md").read_text(encoding="utf-8")
    found = re.search(r"```ini\n(\[Unit\].*?)```", page, re.DOTALL)
    assert found is not None
    return Unit(found[1])


def command_of(name: str) -> list[str]:
    words = shlex.split(unit(name)["Service"]["ExecStart"])
    assert words[:2] == [f"{PROGRAM}/.venv/bin/python", "manage.py"]
    return words[2:]


def test_the_unit_on_the_page_is_that_of_the_folder() -> None:
    written = unit("trainyard.service")
    assert {name: dict(written[name]) for name in written} == {
        name: dict(section) for name, section in single().items()
    }


def test_each_part_that_up_starts_has_a_unit() -> None:
    sources = "".join((ROOT / "webapp" / "ops" / name).read_text() for name in ("supervisor.py", "parts.py"))
    started = {name.rstrip("-") for name in re.findall(r"Part\(f?\"([a-z-]+)", sources)}
    assert len(started) == 5
    units = {re.split(r"[@.]", name.removeprefix("trainyard-"))[0] for name in PARTS}
    assert units == started | {"backup"}


@pytest.mark.parametrize("name", PARTS)
def test_each_part_has_the_sandbox_of_the_unit_for_everything(name: str) -> None:
    hardening = {
        setting: value
        for setting, value in single()["Service"].items()
        if setting not in (*UNHARDENED, *CAPABILITIES)
    }
    assert len(hardening) > 15
    assert unit(name)["Service"].items() >= hardening.items()


@pytest.mark.parametrize("name", PARTS)
def test_only_workers_have_capabilities(name: str) -> None:
    service = unit(name)["Service"]
    expected = [single()["Service"][setting] for setting in CAPABILITIES] if name == WORKER else [None, ""]
    assert [service.get(setting) for setting in CAPABILITIES] == expected


@pytest.mark.parametrize("name", PARTS)
def test_each_part_has_limits_one_home_and_the_same_file_of_variables(name: str) -> None:
    service = unit(name)["Service"]
    assert service["User"] == "trainyard"
    assert service["Environment"] == "TRAINYARD_HOME=/var/lib/trainyard"
    assert service["EnvironmentFile"] == "-/etc/trainyard/trainyard.env"
    assert service["StateDirectory"].split()[0] == "trainyard"
    assert service["MemoryMax"]
    assert service["TasksMax"]


@pytest.mark.parametrize("name", SERVICES)
def test_the_commands_exist_with_their_options(name: str) -> None:
    command, *arguments = command_of(name)
    parser = load_command_class(get_commands()[command], command).create_parser("manage.py", command)
    parser.parse_args([word.replace("%i", "default") for word in arguments])


def test_the_target_starts_every_part_and_never_beside_the_unit_for_everything() -> None:
    text = (FOLDER / "trainyard.target").read_text()
    wanted = {word for line in re.findall(r"^Wants=(.*)$", text, re.MULTILINE) for word in line.split()}
    parts = {name.replace("@.", "@default.") for name in PARTS} - {"trainyard-backup.service"}
    assert wanted == parts | {"trainyard-backup.timer"}
    assert unit("trainyard.target")["Unit"]["Conflicts"] == "trainyard.service"


def test_a_worker_has_the_time_to_write_its_checkpoints_and_the_others_wait_for_the_dashboard() -> None:
    worker = unit(WORKER)
    assert (worker["Service"]["KillMode"], worker["Service"]["TimeoutStopSec"]) == ("mixed", "90")
    for name in ("trainyard-scheduler.service", WORKER, "trainyard-serving.service"):
        assert "trainyard-web.service" in unit(name)["Unit"]["After"].split()
    assert "/healthz" in unit("trainyard-web.service")["Service"]["ExecStartPost"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_no_fault(tmp_path: Path) -> None:
    for path in FOLDER.iterdir():
        (tmp_path / path.name).write_text(path.read_text().replace(PROGRAM, str(ROOT)))
    names = [path.name.replace("@.", "@default.") for path in sorted(FOLDER.iterdir())]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *names], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
