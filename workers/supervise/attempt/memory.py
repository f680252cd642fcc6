"""Sizes a run's memory, and the part of it that holds table rows."""

import os
from collections.abc import Mapping

from jobs.messages.task import Task
from workers.supervise.attempt_end import GIB

IN_MEMORY_VARIABLE = "TRAINYARD_IN_MEMORY_BYTES"
"""Size up to which the rows of a table are in memory while a model trains."""
IN_MEMORY_SHARE = 0.25
"""The same as a share of a run's memory, which has columns, encoded rows and copies of rows at one time."""


def in_memory_bytes(environment: Mapping[str, str] = os.environ) -> int | None:
    """Return the size up to which the environment keeps rows in memory; None for a share of each run's.

    Raises:
        ValueError: it is not a whole number.
    """
    text = environment.get(IN_MEMORY_VARIABLE)
    if not text:
        return None
    if not text.isdecimal():
        raise ValueError(f"{IN_MEMORY_VARIABLE}={text!r}: give a number of bytes, such as {4 * GIB}")
    return int(text)


def row_memory(cap: int, in_memory: int | None) -> int:
    """Return the size up to which table rows are kept in memory.

    Args:
        cap: the memory that the run may use, in bytes.
        in_memory: the size that the environment sets.
    """
    return int(cap * IN_MEMORY_SHARE) if in_memory is None else in_memory


def memory_cap(task: Task, share: int) -> int:
    """Return a run's largest memory, in bytes: the value in its spec, else its slots' share."""
    spec = getattr(task, "spec", None)
    asked_gib = None if spec is None else spec.resources.memory_gib
    return int(asked_gib * GIB) if asked_gib else share
