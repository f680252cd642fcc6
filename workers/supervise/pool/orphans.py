"""Kills the runners that a dead node in this home left behind."""

import contextlib
import json
import os
import signal
from pathlib import Path

import psutil

START_TOLERANCE_SECONDS = 0.05
"""Start times that differ by less belong to the same process."""


def end_orphans(runners: Path) -> list[int]:
    """Kill every living runner that has a pid file below `runners`, and return the pids.

    The kernel normally kills runners with their node. This finds what survives, such as a program that a
    runner had started.
    """
    return [pid for file in runners.glob("*/process.json") if (pid := _end(file)) is not None]


def _end(pid_file: Path) -> int | None:
    try:
        saved = json.loads(pid_file.read_text())
        pid, started = int(saved["pid"]), float(saved["born"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # the node died while writing the file, and the runner with it
    # The kernel may be killing this runner at this moment, because its node has died. Then each call may find
    # that the process has ended.
    with contextlib.suppress(psutil.Error, ProcessLookupError):
        runner = psutil.Process(pid)
        if abs(runner.create_time() - started) >= START_TOLERANCE_SECONDS:
            return None  # another process reuses the pid, so the session is not the runner's either
        if runner.status() != psutil.STATUS_ZOMBIE:
            os.killpg(pid, signal.SIGKILL)
            return pid
    return _end_rest(pid, started)


def _end_rest(leader: int, started: float) -> int | None:
    """Kill the remaining processes in a dead runner's session.

    A pid is not reused while a session has it as its id, so no member can be older than the runner.
    """
    killed = None
    for process in psutil.process_iter():
        try:
            if (
                os.getsid(process.pid) == leader
                and process.create_time() >= started - START_TOLERANCE_SECONDS
            ):
                process.kill()
                killed = leader
        except (OSError, psutil.Error):
            continue
    return killed
