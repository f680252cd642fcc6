"""Kills a move at many of its statements, and repeats it."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

from django.db.backends.utils import CursorWrapper

from jobs.queries import compatibility
from jobs.unfinished_move import TABLE
from tests.ops.moved import Installation, checksums, table_names
from webapp.ops.errors import OpsError
from webapp.ops.moves.places import as_default, opened
from webapp.ops.moves.tables import Table

MOMENTS = 24
"""How many moments are tried, besides the last ones."""


def move_killed_at_steps(installation: Installation, targets: Iterator[dict[str, Any]]) -> None:
    """Kill a move at moments all over it, each time into another target of `targets`."""
    before = checksums(installation.database)
    total = count_steps(installation, next(targets))
    found = set()
    for step in [*range(0, total, max(1, total // MOMENTS)), *range(total - 4, total + 1)]:
        target = next(targets)
        killed_at(step, installation, target)
        found.add(state := state_of(target))
        assert state in {"empty", "marked", "whole"}
        if state == "whole":
            assert checksums(target) == before
            continue
        if state == "marked":
            assert is_refused(target)
        installation.move(target)
        assert checksums(target) == before
    assert {"empty", "marked", "whole"} == found
    assert checksums(installation.database) == before


def count_steps(installation: Installation, target: dict[str, Any]) -> int:
    """Move in a fork; return how many steps there were."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        steps = [0]
        watch(lambda: steps.__setitem__(0, steps[0] + 1))
        installation.move(target)
        os.write(writing, str(steps[0]).encode())
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(pid, 0)
    assert status == 0
    return int(os.read(reading, 20))


def killed_at(step: int, installation: Installation, target: dict[str, Any]) -> None:
    """Move in a fork that kills itself at a step."""
    pid = os.fork()
    if pid == 0:
        passed = 0

        def count() -> None:
            nonlocal passed
            passed += 1
            if passed > step:
                os.kill(os.getpid(), signal.SIGKILL)

        watch(count)
        try:
            installation.move(target)
        except OpsError:
            os._exit(3)
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0


def watch(count: Callable[[], None]) -> None:
    """Call `count` before and after each statement, and after each table."""
    for owner, name in ((CursorWrapper, "execute"), (CursorWrapper, "executemany"), (Table, "write")):
        setattr(owner, name, watched(getattr(owner, name), count))


def watched(function: Callable[..., Any], count: Callable[[], None]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        count()
        result = function(*args, **options)
        count()
        return result

    return call


def state_of(target: dict[str, Any]) -> str:
    names = table_names(target)
    if not names:
        return "empty"
    return "marked" if names == {TABLE} else "whole" if TABLE not in names else "half"


def is_refused(target: dict[str, Any]) -> bool:
    with opened(target) as wrapper, as_default(wrapper):
        return all("interrupted" in (compatibility.problem(migrates=each) or "") for each in (False, True))
