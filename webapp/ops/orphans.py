"""What parts have left behind: a part killed in mid-work may leave a process in a session of its own."""

import signal
from contextlib import suppress

import psutil

from webapp.ops.home import Home

MARK = "TRAINYARD_PART"  # in the environment of every part, and of what it starts


def sweep(home: Home) -> int:
    """Kill every part of this home that still runs; return how many.

    The kernel ends our children with us (`child.py`); this catches what they had started. Call it only while
    holding the home's lock and running no part: then whatever carries the mark and the home is left over.
    """
    left = [process for process in psutil.process_iter() if _is_left(process, home)]
    for process in left:
        with suppress(psutil.NoSuchProcess):  # it was dying already
            process.send_signal(signal.SIGKILL)
    psutil.wait_procs(left, timeout=5)
    return len(left)


def _is_left(process: psutil.Process, home: Home) -> bool:
    try:
        environment = process.environ()
    except (psutil.Error, OSError):
        return False
    return MARK in environment and environment.get("TRAINYARD_HOME") == str(home.root)
