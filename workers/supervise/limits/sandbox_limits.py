"""Reads the limits for runs with user code, which a worker's operator sets."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from jobs.messages.sandbox import MIB, Limits

PREFIX = "TRAINYARD_SANDBOX_"
GIB = 2**30
ALLOCATED_BESIDE = 4 * GIB
"""Bytes that each process may allocate beyond the memory of the run: much of it is never used."""


@dataclass(frozen=True)
class SandboxLimits:
    """A worker's environment variable `TRAINYARD_SANDBOX_<FIELD>` can set each field."""

    processes: float = 64
    """Number of processes of a run at one time. The kernel allows 64 threads for each."""
    disk_gib: float = 50
    """Disk space that a run may add, in all its folders together."""
    output_mib: float = 256
    """Bytes that one task prints."""
    file_gib: float = 50
    """Size of each file."""
    open_files: float = 4096
    """Open files of each process."""
    cpu_seconds: float = 30 * 86_400
    """CPU time of each process."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Read `TRAINYARD_SANDBOX_<FIELD>` for each field that is set.

        Raises:
            ValueError: a value is not a number from 1 on.
        """
        limits = {}
        for field in fields(cls):
            variable = variable_of(field.name)
            if not (text := environment.get(variable)):
                continue
            try:
                limits[field.name] = float(text)
            except ValueError:
                limits[field.name] = 0.0
            # The kernel refuses a process with very few open files.
            if not (16 if field.name == "open_files" else 1) <= limits[field.name] <= 2**40:
                raise ValueError(f"{variable}={text!r}: give a larger number, such as {field.default:g}")
        return cls(**limits)

    def run_limits(self, memory: int) -> Limits:
        """Return the limits for a run that may use so many bytes of memory."""
        return Limits(
            memory_of_all=memory,
            process_memory=memory + ALLOCATED_BESIDE,
            processes_of_all=int(self.processes),
            disk_of_all=int(self.disk_gib * GIB),
            output_of_all=int(self.output_mib * MIB),
            file_bytes=int(self.file_gib * GIB),
            open_files=int(self.open_files),
            cpu_seconds=int(self.cpu_seconds),
        )


def variable_of(field: str) -> str:
    """Return the environment variable that sets a limit."""
    return PREFIX + field.upper()
