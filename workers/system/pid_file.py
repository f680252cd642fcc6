"""Writes a process's pid and start time to its folder, so that a later node can end an orphan."""

import contextlib
import json
from pathlib import Path

import psutil


def write_pid_file(folder: Path, pid: int) -> None:
    """Write pid and start time; the start time distinguishes a later process with the same pid."""
    with contextlib.suppress(psutil.Error):
        started = psutil.Process(pid).create_time()
        (folder / "process.json").write_text(json.dumps({"pid": pid, "born": started}))


def remove_pid_file(folder: Path) -> None:
    """Delete the file that `write_pid_file` wrote, if there is one."""
    (folder / "process.json").unlink(missing_ok=True)
