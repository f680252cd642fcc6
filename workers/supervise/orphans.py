"""Ends the runners that a dead node of this home left behind."""

import json
import os
import signal
from pathlib import Path

import psutil

SAME = 0.05
"""Start times that differ by less are the same process; seconds."""


def end_orphans(runners: Path) -> list[int]:
    """Kill every runner noted below `runners` that still lives, and return the pids.

    They die with their node by the kernel's hand; this is for what slipped through, such as a program that
    a runner had started.
    """
    return [pid for note in runners.glob("*/process.json") if (pid := _end(note)) is not None]


def _end(note: Path) -> int | None:
    try:
        noted = json.loads(note.read_text())
        pid, born = int(noted["pid"]), float(noted["born"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # the node died while it wrote the note: the runner has died with it
    leader = _living(pid)
    if leader is None:
        return _end_rest(pid, born)
    if abs(leader.create_time() - born) >= SAME:
        return None  # a stranger has the pid by now, so its session is not ours either
    os.killpg(pid, signal.SIGKILL)
    return pid


def _living(pid: int) -> psutil.Process | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process
    except psutil.Error:
        return None


def _end_rest(leader: int, born: float) -> int | None:
    """Kill what still lives of the session that a dead runner led.

    A pid is not given out anew while it names a session, so members older than the runner are impossible.
    """
    found = None
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and process.create_time() >= born - SAME:
                process.kill()
                found = leader
        except (OSError, psutil.Error):
            continue
    return found
