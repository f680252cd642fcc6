"""Limits the resources for a task that reads a file from outside.

The kernel enforces the limits for each process (`workers/runner/kernel_limits.py`). The supervisor measures
the whole process tree, so that a task cannot get more by starting processes.
"""

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from jobs.messages.control import ProcessLimits
from jobs.messages.events import Failed
from jobs.states import Outcome
from workers.supervise.attempt_end import GIB, AttemptEnd
from workers.system.usage import Usage

PREFIX = "TRAINYARD_LIMIT_"
# The kernel counts threads and not processes. Libraries start one for each core of the machine.
THREADS_PER_PROCESS = 64
CRASHES = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE})
"""Signals that end a process when a library reads bytes that it does not expect."""


@dataclass(frozen=True)
class TaskLimits:
    """A worker's environment variable `TRAINYARD_LIMIT_<FIELD>` can set each field."""

    memory_gib: float = 8.0
    """Memory of all processes of the task together. A smaller share of its slots is a smaller limit."""
    cpu_seconds: float = 1800.0
    """CPU time of all processes of the task together."""
    wall_seconds: float = 1800.0
    """Time from the start of the task to its end."""
    file_gib: float = 8.0
    """Size of each file that the task writes."""
    processes: float = 64.0
    """Number of processes of the task at one time."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Read `TRAINYARD_LIMIT_<FIELD>` for each field that is set.

        Raises:
            ValueError: a value is not a number above 0.
        """
        limits = {}
        for field in fields(cls):
            variable = PREFIX + field.name.upper()
            if not (text := environment.get(variable)):
                continue
            try:
                limits[field.name] = float(text)
            except ValueError:
                limits[field.name] = 0.0
            if not 0 < limits[field.name] < float("inf"):
                raise ValueError(f"{variable}={text!r}: give a number above 0, such as {field.default}")
        return cls(**limits)

    def process_limits(self, *, memory: int, own_user: bool) -> ProcessLimits:
        """Return the limits that the runner sets for itself.

        Args:
            memory: how many bytes each process may allocate beside those that it has.
            own_user: no other process has the runner's user, so the kernel can count its threads.
        """
        return ProcessLimits(
            memory=memory,
            cpu_seconds=self.cpu_seconds,
            file_bytes=int(self.file_gib * GIB) or 1,
            threads=max(1, int(self.processes)) * THREADS_PER_PROCESS if own_user else None,
        )

    def exceeded(self, usage: Usage, *, seconds: float) -> AttemptEnd | None:
        """Return the end for a task that is above a limit other than memory, else None.

        Args:
            usage: the newest sample from the process tree.
            seconds: time since the task began.
        """
        if seconds > self.wall_seconds:
            return self._end(
                "time_limit", f"took longer than {self.wall_seconds:g} s", _raise("wall_seconds")
            )
        if usage.cpu_seconds > self.cpu_seconds:
            return self._cpu_end()
        if usage.processes > self.processes:
            used = f"started more than {self.processes:g} processes"
            return self._end("process_limit", used, _raise("processes"))
        return None

    def out_of_memory(self, cap: int) -> AttemptEnd:
        """Return the end for a task that used more than `cap` bytes of memory."""
        remedy = _raise("memory_gib")
        if cap < int(self.memory_gib * GIB):
            remedy = (
                "start the worker with fewer slots (--slots), which share its memory, or on a larger machine"
            )
        message = (
            f"this task used more than {cap / GIB:.3g} GiB of memory, the most that a run may use here. Have "
            f"the operator {remedy}, and read the file again; or upload one that needs less: fewer columns "
            "or rows, shorter texts, smaller images, or a table as Parquet"
        )
        return AttemptEnd(Outcome.FAILED, "out_of_memory", message)

    def end_of_failure(self, event: Failed, cap: int) -> AttemptEnd:
        """Return the end for the failure that a limited runner reported."""
        if event.code == "out_of_memory":
            return self.out_of_memory(cap)
        if event.code == "file_limit":
            used = f"wrote a file of more than {self.file_gib:g} GiB"
            return self._end("file_limit", used, _raise("file_gib"))
        return AttemptEnd.from_event(event)

    def end_of_process(self, status: int) -> AttemptEnd:
        """Return the end for a limited runner that ended without a final event, by its exit status."""
        if status == -signal.SIGXCPU:
            return self._cpu_end()
        if -status in CRASHES:
            message = (
                "this file is damaged: the library that read it ended with "
                f"{signal.Signals(-status).name}; write the file again, and upload it again"
            )
            return AttemptEnd(Outcome.FAILED, "damaged_file", message)
        return AttemptEnd.runner_died(status)

    def _cpu_end(self) -> AttemptEnd:
        used = f"used more than {self.cpu_seconds:g} s of CPU time"
        return self._end("cpu_limit", used, _raise("cpu_seconds"))

    @staticmethod
    def _end(code: str, used: str, remedy: str) -> AttemptEnd:
        message = (
            f"this task {used}: the file needs more than a file from outside may use. Upload a smaller file, "
            f"or have the operator {remedy}"
        )
        return AttemptEnd(Outcome.FAILED, code, message)


def _raise(field: str) -> str:
    """Return the remedy for a limit that a variable sets."""
    return f"raise {PREFIX}{field.upper()} on the workers"
