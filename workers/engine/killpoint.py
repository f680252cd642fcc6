"""Named places at which a test may have this process killed; otherwise they do nothing."""

import os
import signal
from collections.abc import Callable

VARIABLE = "TRAINYARD_KILL_POINT"
_passed: dict[str, int] = {}


def die_if_told(name: str) -> None:
    """Die of SIGKILL here if the environment says `<name>:<n>` and this is the n-th time."""
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    point, _, count = wanted.partition(":")
    if point == name:
        _passed[name] = _passed.get(name, 0) + 1
        if _passed[name] == int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)


decide: Callable[[str], None] = die_if_told
"""What is asked at every kill point."""


def kill_point(name: str) -> None:
    """Pass the place of this name, or die there."""
    decide(name)
