"""The make targets and scripts."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOALS = ("setup", "demo", "up", "test", "chaos", "lint")
SCRIPTS = ("find-python", "lint", "setup", "with-postgres")


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("goal", GOALS)
def test_every_documented_goal_exists_and_is_listed_by_help(goal: str) -> None:
    assert run("make", "--dry-run", goal).returncode == 0
    assert f"make {goal}" in run("make", "help").stdout


def test_arguments_reach_the_command() -> None:
    assert re.search(r"-m pytest .*-k queue", run("make", "--dry-run", "test", "ARGS=-k queue").stdout)
    assert "manage.py demo --exit" in run("make", "--dry-run", "demo", "ARGS=--exit").stdout


def test_every_make_command_in_the_readme_exists() -> None:
    readme = ROOT / "README.md"
    if not readme.exists():
        pytest.skip("there is no README yet")
    named = set(re.findall(r"^\s*(?:\$ )?make ([a-z-]+)", readme.read_text(), re.MULTILINE))
    assert named
    assert named <= {*GOALS, "help", "setup-dev"}


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_plain_shell(script: str) -> None:
    assert run("sh", "-n", f"scripts/{script}").returncode == 0


def test_an_interpreter_is_found_by_running_it(tmp_path: Path) -> None:
    liar = tmp_path / "python3.13"  # as a version manager leaves for a version that is not selected
    liar.write_text("#!/bin/sh\necho 'command not found' >&2\nexit 127\n")
    liar.chmod(0o755)
    found = run("sh", "scripts/find-python", PATH=f"{tmp_path}:{os.environ['PATH']}").stdout.strip()
    assert found != str(liar)


def test_a_machine_without_a_suitable_python_gets_an_explanation(tmp_path: Path) -> None:
    done = run("sh", "scripts/find-python", PYTHON="python2.7")
    assert done.returncode == 2
    assert "PYTHON=python2.7 is not a CPython 3.12 or newer" in done.stderr


def test_ci_is_a_runnable_script() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert run("bash", "-n", ".ci/run").returncode == 0
