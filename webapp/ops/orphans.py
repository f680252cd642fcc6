"""Kills parts' orphaned processes: a killed part may leave a process that runs in its own session."""

import signal
from contextlib import suppress

import psutil

from webapp.ops.home import Home

# An environment variable of every part. Descendants inherit it, in whatever session they run.
MARK = "TRAINYARD_PART"


def sweep(home: Home) -> int:
    """Kill all running processes from this home's parts; return their number.

    The kernel kills the supervisor's children with it (see `parent_death`); this finds their descendants.
    Call it only while holding the home's lock and running no part: then every process with the mark and this
    home is orphaned.
    """
    orphans = [process for process in psutil.process_iter() if _is_orphan(process, home)]
    for process in orphans:
        # It may have ended meanwhile.
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    psutil.wait_procs(orphans, timeout=5)
    return len(orphans)


def _is_orphan(process: psutil.Process, home: Home) -> bool:
    try:
        environment = process.environ()
    except (psutil.Error, OSError):
        return False
    return MARK in environment and environment.get("TRAINYARD_HOME") == str(home.root)
