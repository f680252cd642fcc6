"""The files and variables of pip's configuration are read as pip reads them."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from workers.confinement.environments import pip_configuration
from workers.confinement.environments.pip_configuration import FILE_VARIABLE, BadConfiguration


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    """Variables with which all files are in the test's folder."""
    return {"HOME": f"{tmp_path}/home", "XDG_CONFIG_DIRS": f"{tmp_path}/first:{tmp_path}/second"}


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def test_later_files_and_then_variables_have_precedence(folders: dict[str, str], tmp_path: Path) -> None:
    write(f"{tmp_path}/first/pip/pip.conf", "[global]\nindex-url = machine\ntimeout = 1\nproxy = machine\n")
    write(f"{tmp_path}/second/pip/pip.conf", "[global]\ntimeout = 2\n")
    write(f"{tmp_path}/home/.pip/pip.conf", "[global]\ncert = old\nproxy = old\n")
    write(f"{tmp_path}/home/.config/pip/pip.conf", "[global]\nproxy = user\n")
    options = pip_configuration.read(folders)
    assert {name: options[name] for name in ("index-url", "timeout", "proxy", "cert")} == {
        "index-url": "machine", "timeout": "2", "proxy": "user", "cert": "old",
    }  # fmt: skip
    assert pip_configuration.read(folders | {"PIP_INDEX_URL": "variable"})["index-url"] == "variable"


def test_the_section_of_installations_has_precedence_over_the_general_one(
    folders: dict[str, str], tmp_path: Path
) -> None:
    file = f"{tmp_path}/own.conf"
    write(file, "[install]\nIndex_URL = special\ncert =\n[global]\nindex-url = general\ncert = general\n")
    options = pip_configuration.read(folders | {FILE_VARIABLE: file})
    assert (options["index-url"], options["cert"]) == ("special", "general")


def test_a_named_file_replaces_those_of_the_user(folders: dict[str, str], tmp_path: Path) -> None:
    write(f"{tmp_path}/home/.config/pip/pip.conf", "[global]\nindex-url = user\nproxy = user\n")
    write(f"{tmp_path}/own.conf", "[global]\nindex-url = own\n")
    options = pip_configuration.read(folders | {FILE_VARIABLE: f"{tmp_path}/own.conf"})
    assert options["index-url"] == "own"
    assert options.get("proxy") != "user"
    assert pip_configuration.read(folders | {FILE_VARIABLE: f"{tmp_path}/absent"})["index-url"] == "user"
    assert pip_configuration.read(folders | {FILE_VARIABLE: os.devnull}) == {}


def test_a_user_without_a_home_needs_no_file_there(
    folders: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_no_entry(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    write(f"{tmp_path}/first/pip/pip.conf", "[global]\nindex-url = machine\n")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", find_no_entry)
    options = pip_configuration.read({"XDG_CONFIG_DIRS": folders["XDG_CONFIG_DIRS"]})
    assert options["index-url"] == "machine"


def test_a_file_that_is_not_valid_is_named(folders: dict[str, str], tmp_path: Path) -> None:
    write(f"{tmp_path}/own.conf", "index-url = without a section\n")
    with pytest.raises(BadConfiguration, match=r"own\.conf is no valid configuration"):
        pip_configuration.read(folders | {FILE_VARIABLE: f"{tmp_path}/own.conf"})


def test_the_files_are_those_of_the_installed_pip(folders: dict[str, str]) -> None:
    """The list of `pip config debug`, which names the files in another order."""
    command = [sys.executable, "-m", "pip", "config", "debug"]
    printed = subprocess.run(command, env=folders, capture_output=True, text=True, check=True).stdout
    lines = (line.strip().partition(", exists:")[0] for line in printed.splitlines())
    files = {line for line in lines if line.endswith("pip.conf")}
    assert {str(path) for path in pip_configuration._files(folders)} == files
