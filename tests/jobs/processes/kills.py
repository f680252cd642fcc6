"""Kills forks of this process at every step of an action in turn."""

import os
import signal
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connections

MAX_STEPS = 500

type Watched = Sequence[tuple[Any, str]]
"""Functions that change something, as an owner and the name of its attribute."""


def kill_at_every_step(
    action: Callable[[], Any],
    watched: Watched,
    *,
    prepare: Callable[[], Any] = lambda: None,
    check: Callable[[int], Any] = lambda _step: None,
) -> int:
    """Run an action in forks that are killed at each step in turn, until one comes to its end.

    A step is before or after a call of a function that changes something.

    Args:
        action: the forks run it.
        watched: the functions.
        prepare: called before each fork.
        check: called after each kill, with the number of the step.

    Returns:
        How many forks were killed.
    """
    for step in range(MAX_STEPS):
        prepare()
        if not _is_killed(action, watched, step):
            return step
        check(step)
    raise AssertionError(f"more than {MAX_STEPS} steps")


def _is_killed(action: Callable[[], Any], watched: Watched, step: int) -> bool:
    """Run an action in a fork; return whether it was killed at a step, or came to its end."""
    connections.close_all()
    pid = os.fork()
    if pid == 0:
        try:
            _die_at(step, watched)
            action()
        except BaseException:  # noqa: BLE001  the fork must never return into the caller
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code not in (0, -signal.SIGKILL):
        raise AssertionError(f"the fork that was to die at step {step} ended with {code}")
    return code != 0


def _die_at(step: int, watched: Watched) -> None:
    """Kill this process at the step with this number."""
    passed = 0

    def count() -> None:
        nonlocal passed
        passed += 1
        if passed > step:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            count()
            result = function(*args, **kwargs)
            count()
            return result

        return call

    for owner, name in watched:
        setattr(owner, name, counted(getattr(owner, name)))
