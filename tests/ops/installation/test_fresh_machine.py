"""A machine that has only the tools that the README names."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ops.conftest import ROOT


def test_all_tests_are_collected_on_a_machine_with_make_and_python_alone(tmp_path: Path) -> None:
    (tmp_path / "python3").symlink_to(sys.executable)
    if make := shutil.which("make"):
        (tmp_path / "make").symlink_to(make)
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("TRAINYARD_", "PYTEST_"))
    }
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", "-p", "no:cacheprovider"],
        cwd=ROOT, env={**variables, "PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == pytest.ExitCode.OK, ended.stdout[-3000:] + ended.stderr[-3000:]
