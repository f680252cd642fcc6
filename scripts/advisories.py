#!/usr/bin/env python
"""Checks the locked Python and npm packages against published security advisories.

Exit codes: 0 no package has an advisory, 1 some package has one, 3 at least one package could not be checked.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LOCKS = (
    "requirements-dev.lock",
    "requirements-gpu.lock",
    "requirements-gpu12.lock",
)  # all include requirements.lock
NONE, FOUND, NOT_CHECKED = 0, 1, 3


class Answer(NamedTuple):
    """The result of one tool: packages with their advisories, and reasons why packages were not checked."""

    advisories: list[str]
    unchecked: list[str]


def report(*command: str) -> dict[str, Any]:
    """Run a tool and return the JSON object that it prints.

    Raises:
        ValueError: the tool is missing, took longer than ten minutes or printed something else.
    """
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"{command[0]}: {error}") from error
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:
        lines = done.stderr.strip().splitlines() or [f"ended with code {done.returncode} without a report"]
        raise ValueError(f"{command[0]}: {lines[-1]}") from None
    if not isinstance(answer, dict):
        raise ValueError(f"{command[0]}: printed no report")
    return answer


def python_packages() -> Answer:
    """Ask pip-audit about the lock files. It also ends with 0 if it could check no package at all."""
    files = [argument for lock in LOCKS for argument in ("-r", lock)]
    options = ("--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off")
    packages = report("pip-audit", *options, *files).get("dependencies")
    if not packages:
        raise ValueError("pip-audit: its report names no package")
    advisories = [
        f"{package['name']} {package['version']}: {advisory['id']}"
        for package in packages
        for advisory in package.get("vulns", [])
    ]
    return Answer(advisories, [package["skip_reason"] for package in packages if "skip_reason" in package])


def npm_packages() -> Answer:
    """Ask npm about package-lock.json."""
    packages = report("npm", "audit", "--package-lock-only", "--json").get("vulnerabilities")
    if packages is None:
        raise ValueError("npm: the registry answered with no report")
    return Answer([f"{name} (npm): {entry['severity']}" for name, entry in packages.items()], [])


def main() -> int:
    """Print the advisories, and return the exit code."""
    advisories, unchecked = [], []
    for check in (python_packages, npm_packages):
        try:
            answer = check()
        except ValueError as error:
            unchecked.append(str(error))
            continue
        advisories += answer.advisories
        unchecked += answer.unchecked
    lines = [f"Advisory for {line}" for line in advisories]
    if unchecked:
        lines.append(
            f"Not checked ({len(unchecked)}); was a source of advisories reachable? The first reasons:"
        )
        lines += [f"  {reason}" for reason in unchecked[:5]]
    sys.stdout.write("\n".join(lines or ["No locked package has a known advisory."]) + "\n")
    return FOUND if advisories else NOT_CHECKED if unchecked else NONE


if __name__ == "__main__":
    sys.exit(main())
