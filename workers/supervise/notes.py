"""A note in a process' folder says which process it is, for a later node that finds it alive."""

import contextlib
import json
from pathlib import Path

import psutil


def remember(folder: Path, pid: int) -> None:
    """Note pid and start time, so that a later node can tell our process from a stranger with its pid."""
    with contextlib.suppress(psutil.Error):
        born = psutil.Process(pid).create_time()
        (folder / "process.json").write_text(json.dumps({"pid": pid, "born": born}))


def forget(folder: Path) -> None:
    """Take the note back."""
    (folder / "process.json").unlink(missing_ok=True)
