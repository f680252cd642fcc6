"""`make advisories`: its exit code follows the tools' answers, and nothing unchecked counts as safe."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAFE = {"dependencies": [{"name": "django", "version": "6.1", "vulns": []}]}
SKIPPED = {"dependencies": [{"name": "django", "skip_reason": "Dependency not found on PyPI: django"}]}
UNSAFE = {"dependencies": [{"name": "django", "version": "6.1", "vulns": [{"id": "PYSEC-1"}]}]}
NPM_SAFE: dict[str, Any] = {"vulnerabilities": {}}
NPM_UNSAFE = {"vulnerabilities": {"left-pad": {"severity": "high"}}}


def check(folder: Path, python: object, npm: object) -> subprocess.CompletedProcess[str]:
    """Run the script with tools that print the given answers. None is a tool that fails without an answer."""
    for name, answer in (("pip-audit", python), ("npm", npm)):
        body = f"echo '{json.dumps(answer)}'" if answer else "echo 'cannot connect' >&2; exit 1"
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts/advisories.py")],
        env={**os.environ, "PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("python", "npm", "code", "text"),
    [
        (SAFE, NPM_SAFE, 0, "No locked package has a known advisory."),
        (UNSAFE, NPM_SAFE, 1, "Advisory for django 6.1: PYSEC-1"),
        (SAFE, NPM_UNSAFE, 1, "Advisory for left-pad (npm): high"),
        (SKIPPED, NPM_SAFE, 3, "Dependency not found on PyPI: django"),
        (None, NPM_SAFE, 3, "pip-audit: cannot connect"),
        (SAFE, None, 3, "npm: cannot connect"),
        (SAFE, {"statusCode": 405}, 3, "npm: the registry answered with no report"),
        ({"dependencies": []}, NPM_SAFE, 3, "its report names no package"),
        (None, NPM_UNSAFE, 1, "Not checked (1)"),
    ],
)
def test_the_exit_code_tells_safe_unsafe_and_unchecked_apart(
    tmp_path: Path, python: object, npm: object, code: int, text: str
) -> None:
    done = check(tmp_path, python, npm)
    assert done.returncode == code, done.stderr
    assert text in done.stdout
