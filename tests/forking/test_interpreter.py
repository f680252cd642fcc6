"""A command line that a fork runs, compared with a new interpreter."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from workers.confinement.environments.inside import FALLBACK
from workers.confinement.sandbox.view import CODE_ROOT

PARENT = """
import json, os, sys, tempfile
import numpy
from workers.confinement.forking.interpreter import run_and_exit
tempfile.gettempdir()
run_and_exit(*json.loads(sys.argv[1]))
"""
FACTS = """
import json, os, site, sys, tempfile
import beside, given, numpy
main = sys.modules["__main__"]
print(json.dumps({
    "argv": sys.argv, "path": sys.path, "environment": dict(os.environ), "folder": os.getcwd(),
    "python": [sys.executable, sys.prefix, site.getsitepackages()], "temporary": tempfile.gettempdir(),
    "name": [__name__, __spec__.name, __file__, main.__file__, main.__dict__ is globals()],
    "numpy": numpy.__file__, "of the environment": [
        getattr(sys.modules.get(name), "VALUE", None) for name in ("sitecustomize", "begun")
    ],
}))
"""


class Program:
    """A module with its folders, run by a new interpreter or by a process that has imported others."""

    def __init__(self, root: Path) -> None:
        self.folder, self.given, self.parent = root / "folder", root / "given", root / "parent"
        for folder in (self.folder, self.given, self.parent):
            folder.mkdir()
        (self.folder / "beside.py").touch()
        (self.given / "given.py").touch()
        (self.given / "program.py").write_text(FACTS)
        (self.parent / "parent.py").write_text(PARENT)
        self.environment = {"PATH": os.defpath, "PYTHONPATH": str(self.given), "TMPDIR": str(root)}

    def run_new(self, *command: str) -> "subprocess.CompletedProcess[str]":
        return _run(command, self.environment, self.folder)

    def run_forked(self, *command: str) -> "subprocess.CompletedProcess[str]":
        asked = json.dumps([command, self.environment, str(self.folder)])
        # A fork server imports this program by its PYTHONPATH, and is in the folder of the run only later.
        variables = {"PYTHONPATH": f"{CODE_ROOT}{os.pathsep}{self.parent}", "PYTHONDONTWRITEBYTECODE": "1"}
        before = f"import os, sys; sys.path[0] = os.getcwd(); os.chdir({str(self.folder)!r}); import parent"
        return _run((sys.executable, "-c", before, asked), variables, self.parent)


def _run(command: Any, environment: dict[str, str], folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def facts(ended: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert ended.returncode == 0, ended.stderr
    printed: dict[str, Any] = json.loads(ended.stdout)
    return printed


@pytest.mark.parametrize("option", [[], ["-P"]], ids=["with its folder", "without its folder"])
def test_a_fork_has_the_modules_arguments_and_variables_of_a_new_interpreter(
    program: Program, option: list[str]
) -> None:
    if option:
        (program.given / "beside.py").touch()
    command = (sys.executable, *option, "-m", "program", "a", "-b")
    forked = facts(program.run_forked(*command))
    assert forked == facts(program.run_new(*command))
    assert (str(program.folder) in forked["path"]) == (not option)


def test_a_fork_has_the_packages_of_a_virtual_environment(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    venv.EnvBuilder(symlinks=True).create(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "sitecustomize.py").write_text("VALUE = 1\n")
    (packages / "begun.py").write_text("VALUE = 2\n")
    (packages / "begun.pth").write_text(f"import begun\n{program.parent}\n")
    site_folders = [path for path in sys.path if path.endswith("site-packages")]
    (packages / FALLBACK).write_text("".join(f"{path}\n" for path in site_folders))
    command = (str(folder / "bin" / "python"), "-m", "program")
    forked = facts(program.run_forked(*command))
    assert forked == facts(program.run_new(*command))
    assert forked["of the environment"] == [1, 2]
    assert forked["path"].index(str(packages)) < forked["path"].index(site_folders[0])


@pytest.mark.parametrize(
    "end",
    [
        "",
        "sys.exit(3)",
        "sys.exit('a text')",
        "sys.exit((1, 2))",
        "1 / 0",
        "sys.stdout.close(); sys.stderr = None; sys.exit(3)",
    ],
)
def test_a_fork_ends_as_a_new_interpreter(program: Program, end: str) -> None:
    (program.given / "program.py").write_text(f"import sys\n{end}\n")
    command = (sys.executable, "-m", "program")
    forked, new = program.run_forked(*command), program.run_new(*command)
    assert forked.returncode == new.returncode
    assert forked.stderr.splitlines()[-1:] == new.stderr.splitlines()[-1:]
