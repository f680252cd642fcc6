"""Runs the task for an installation: its packages are installed before this process starts."""

import sys
from typing import Any

from jobs.kinds.install.payload import InstallTask
from workers.engine.report import Report


def run(task: InstallTask, report: Report) -> dict[str, Any]:
    """Report that a program can be started with the packages. None is imported."""
    use = "models" if task.for_engine else "scripts"
    report.log(f"the packages for {use} are ready for Python {sys.version.split()[0]}")
    return {}
