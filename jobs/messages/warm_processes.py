"""Declares a worker's warm processes, as its heartbeats report them."""

import datetime as dt
from typing import Literal

from pydantic import Field

from jobs.spec.base import Frozen


class Warm(Frozen):
    """A process that waits for work: a fork server, or a standby runner."""

    kind: Literal["fork server", "standby"]
    state: Literal["preparing", "ready"]
    threads: int
    platform: str | None = None
    simulated_devices: int = 1
    preallocate: bool = Field(default=False, description="whether it allocates GPU memory at its start")
    memory_fraction: float | None = Field(default=None, description="the largest share of a GPU's memory")
    devices: str | None = Field(default=None, description="the accelerators it has opened")
    pid: int
    since: float = Field(description="its start, in seconds since the epoch")
    memory_bytes: int = Field(default=0, description="its own memory and its share of shared pages")

    @property
    def started(self) -> dt.datetime:
        """Return the start time."""
        return dt.datetime.fromtimestamp(self.since, dt.UTC)

    @property
    def environment(self) -> str:
        """Describe the tasks that it can run."""
        words = [f"{self.threads} thread" if self.threads == 1 else f"{self.threads} threads"]
        if self.platform is not None:
            words.append(self.platform)
        if self.simulated_devices > 1:
            words.append(f"{self.simulated_devices} simulated devices")
        if self.memory_fraction is not None:
            words.append(f"at most {self.memory_fraction:.0%} of the GPU memory")
        if self.preallocate:
            words.append("GPU memory allocated at the start")
        if self.devices is not None:
            words.append(f"device {self.devices}")
        return " · ".join(words)
