"""Defines named points in the code at which a test can kill the process. Without a test they do nothing."""

import os
import signal
from collections.abc import Callable

VARIABLE = "TRAINYARD_KILL_POINT"
"""Environment variable with the point's name and the number of the pass to die at: `<name>:<n>`."""

_passed: dict[str, int] = {}


def kill_if_configured(name: str) -> None:
    """Send SIGKILL to this process if `VARIABLE` names this point and this is the n-th pass."""
    setting = os.environ.get(VARIABLE)
    if setting is None:
        return
    point, _, count = setting.partition(":")
    if point == name:
        _passed[name] = _passed.get(name, 0) + 1
        if _passed[name] == int(count or 1):
            # SIGKILL, since it runs no handler and no cleanup: the state left behind is that of a crash
            os.kill(os.getpid(), signal.SIGKILL)


handler: Callable[[str], None] = kill_if_configured
"""Called at every kill point. Tests replace it."""


def kill_point(name: str) -> None:
    """Mark a point in the code; a test may kill the process here."""
    handler(name)
