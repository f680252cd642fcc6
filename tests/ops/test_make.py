"""The make targets and scripts."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOALS = ("setup", "setup-gpu", "demo", "up", "test", "test-gpu", "chaos", "lint", "advisories", "release")
GPU_LOCKS = ("requirements-gpu.lock", "requirements-gpu12.lock")
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


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with lock files, an installer that does nothing, and a Python that makes an empty .venv."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "workers" / "system").mkdir(parents=True)
    needs = "workers/system/cuda_needs.py"
    shutil.copy(ROOT / needs, tmp_path / needs)
    for name in ("requirements.lock", *GPU_LOCKS):
        (tmp_path / name).write_text(f"{name}==1\n")
    programs = tmp_path / ".local" / "bin"
    programs.mkdir(parents=True)
    (programs / "uv").write_text("#!/bin/sh\n")
    (programs / "python").write_text(
        '#!/bin/sh\ncase "$*" in *"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;\n'
        f'*"print(sys.executable)"*) echo "$0" ;; *) exec {sys.executable} "$@" ;; esac\n'
    )
    for program in programs.iterdir():
        program.chmod(0o755)
    return tmp_path


def set_up(clone: Path, *locks: str, **environment: str) -> list[str]:
    """Run the script and return the lock files from which .venv was built, each with its digest."""
    python = str(clone / ".local" / "bin" / "python")
    variables = {"PYTHON": python, "HOME": str(clone), "PATH": "/usr/bin:/bin", **environment}
    command = ["sh", "scripts/setup", *locks]
    subprocess.run(command, cwd=clone, env=variables, capture_output=True, check=True)
    return (clone / ".venv" / ".built-from").read_text().splitlines()


@pytest.mark.parametrize("lock", GPU_LOCKS)
def test_a_venv_that_supports_gpus_keeps_this_support(clone: Path, lock: str) -> None:
    stamp = clone / ".venv" / ".built-from"
    stamp.parent.mkdir()
    stamp.write_text(f"{lock} of another version\n")
    lines = set_up(clone, "requirements.lock")
    assert [line.split()[0] for line in lines] == ["requirements.lock", lock]
    stamp.write_text(f"{lines[1]}\n")
    assert set_up(clone, "requirements.lock") == [lines[1]], "the packages for GPUs include all others"


def test_another_cuda_release_replaces_the_installed_one(clone: Path) -> None:
    for release, lock in (("13", GPU_LOCKS[0]), ("12", GPU_LOCKS[1]), ("13", GPU_LOCKS[0])):
        assert [line.split()[0] for line in set_up(clone, "gpu", CUDA=release)] == [lock]


def test_nothing_is_installed_if_no_cuda_release_is_possible(clone: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        set_up(clone, "gpu", CUDA="11")
    assert b"CUDA=11 is not possible" in refusal.value.stderr
    assert not (clone / ".venv").exists()


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
    python = run("sh", "scripts/find-python", PATH=f"{tmp_path}:{os.environ['PATH']}").stdout.strip()
    assert python != str(liar)


def test_a_machine_without_a_suitable_python_gets_an_explanation(tmp_path: Path) -> None:
    done = run("sh", "scripts/find-python", PYTHON="python2.7")
    assert done.returncode == 2
    assert "PYTHON=python2.7 is not a CPython 3.12 or newer" in done.stderr


def test_ci_is_a_runnable_script() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert run("bash", "-n", ".ci/run").returncode == 0
