"""What an earlier `up` may have left behind: its sessions are written down, and swept at the next start."""

import json
import os
import signal

import psutil

from webapp.ops.home import Home, write_private


def remember(home: Home, pids: list[int]) -> None:
    """Write down the sessions that run now. A full disk only costs the sweep."""
    try:
        write_private(home.groups_file, json.dumps(pids))
    except OSError:
        return


def sweep(home: Home) -> int:
    """Kill what still runs in the sessions of an `up` that was itself killed; return how many.

    The kernel ends our children with us (`child.py`); this catches what they had started. A session id cannot
    be taken by a stranger while a member lives, and each must carry our home in its environment.
    """
    try:
        leaders = set(json.loads(home.groups_file.read_text()))
    except (OSError, ValueError):
        return 0
    left = [process for process in psutil.process_iter() if _is_ours(process, leaders, home)]
    for process in left:
        process.send_signal(signal.SIGKILL)
    psutil.wait_procs(left, timeout=5)
    home.groups_file.unlink(missing_ok=True)
    return len(left)


def _is_ours(process: psutil.Process, leaders: set[int], home: Home) -> bool:
    try:
        return os.getsid(process.pid) in leaders and process.environ().get("TRAINYARD_HOME") == str(home.root)
    except (psutil.Error, OSError):
        return False
