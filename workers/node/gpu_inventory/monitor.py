"""Reads this worker's GPUs and divides their memory among its own runs and the processes of others."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from workers.node.gpu_inventory import identities
from workers.node.gpu_inventory.gpus import Gpu, GpuProcess, Nvml
from workers.node.gpu_inventory.identities import Identity

log = logging.getLogger(__name__)

ANSWER_SECONDS = 5.0
"""A driver that needs longer hangs. It answers in milliseconds, also with eight GPUs under load."""
LISTED = 16
"""The most processes of others that are listed for a GPU, the largest first."""
HIDDEN_BYTES = 2**30
"""The driver itself takes some hundred MB of a GPU. Memory beyond this that no process explains is held by
processes that the driver does not show, such as those in other containers."""
HIDDEN_SHARE = 0.03

type _Key = tuple[str, int, float]
"""A process on a GPU: the GPU, the pid and when it started."""


class GpuUse(NamedTuple):
    """Which GPUs and processes belong to this worker's runs.

    Attributes:
        attempts: the attempts that hold each GPU, by its entry in CUDA_VISIBLE_DEVICES.
        opened: the GPUs on which a process of this worker may be, with an attempt or kept warm.
        own: the processes that this worker has started; their descendants are its own too.
        busy: those that run an attempt.
    """

    attempts: Mapping[str, Collection[int]] = MappingProxyType({})
    opened: Set[str] = frozenset()
    own: Set[int] = frozenset()
    busy: Set[int] = frozenset()


@dataclass
class _Shares:
    """How the memory of one GPU is divided, in bytes. `others` is None if the driver does not list them."""

    others: list[dict[str, Any]] | None = None
    others_bytes: int = 0
    runs_bytes: int = 0


@dataclass
class GpuMonitor:
    """Reads the GPUs; call `refresh` before `states` where the driver must not block the caller.

    Attributes:
        nvml: the driver.
        gpus: this worker's.
        use: returns the GPUs and processes of its runs; called in the caller's thread.
        preallocated: the share of a GPU that each run takes at its start, as the operator chose; None if
            runs allocate as they need it.
    """

    nvml: Nvml
    gpus: Sequence[Gpu]
    use: Callable[[], GpuUse] = GpuUse
    preallocated: float | None = None
    _states: list[dict[str, Any]] = field(default_factory=list)
    _faults: dict[str, str] = field(default_factory=dict)
    _read_at: float = -1.0
    _asked: str = ""
    """The GPU that is being read."""
    _thread: threading.Thread | None = None
    _since: float = 0.0
    _is_refreshed: bool = False
    _first_seen: dict[_Key, float] = field(default_factory=dict)
    _hidden: dict[str, int] = field(default_factory=dict)
    _own: set[int] = field(default_factory=set)
    """This worker's own processes at the last reading."""

    async def refresh(self, max_age: float = 0.0) -> None:
        """Read the GPUs in a thread, unless they were read just now. Return also if the driver hangs."""
        if self._read_at >= 0 and not self._hangs() and time.monotonic() - self._read_at < max_age:
            self._is_refreshed = True
            return
        if self._thread is None:
            loop, done = asyncio.get_running_loop(), asyncio.Event()
            # Not one of the pool's: a call that hangs in the driver would keep this process from its end.
            self._thread = threading.Thread(
                target=self._read_for, args=(self.use(), loop, done), daemon=True, name="gpu-monitor"
            )
            self._since = time.monotonic()
            self._thread.start()
            try:
                await asyncio.wait_for(done.wait(), ANSWER_SECONDS)
            except TimeoutError:
                log.error("the NVIDIA driver has not answered about %s", self._asked)
        else:
            # Another attempt has asked.
            while self._thread is not None and not self._hangs():
                await asyncio.sleep(0.01)
        self._is_refreshed = True

    def states(self) -> list[dict[str, Any]]:
        """Return the devices for the worker's row, as they were at the last refresh, or are now without one.

        Memory is in bytes, load from 0 to 1, temperature in degrees Celsius.
        """
        if not self._is_refreshed:
            self._read(self.use())
        return [dict(state) for state in self._states]

    def faults(self) -> Mapping[str, str]:
        """Return why GPUs do not answer, by their names, at the last refresh or now without one."""
        if not self._is_refreshed:
            return self._find_faults()
        if self._hangs():
            seconds = time.monotonic() - self._since
            return {**self._faults, self._asked: f"the driver has not answered for {seconds:.0f} s"}
        return self._faults

    def _hangs(self) -> bool:
        return self._thread is not None and time.monotonic() - self._since > ANSWER_SECONDS

    def _read_for(self, use: GpuUse, loop: asyncio.AbstractEventLoop, done: asyncio.Event) -> None:
        try:
            self._read(use)
            self._faults = self._find_faults()
        # A library of another version may answer anything; the worker's heartbeats must continue.
        except Exception as error:
            log.exception("the GPUs could not be read")
            # No figures that have become old are passed on without a word.
            self._faults = {self._asked: f"{type(error).__name__}: {error}"}
        finally:
            self._thread = None
            if not loop.is_closed():
                loop.call_soon_threadsafe(done.set)

    def _find_faults(self) -> dict[str, str]:
        faults = {}
        for gpu in self.gpus:
            self._asked = gpu.name
            if (reason := self.nvml.fault(gpu)) is not None:
                faults[gpu.name] = reason
        return faults

    def _read(self, use: GpuUse) -> None:
        seen, found = set[_Key](), set[int]()
        self._states = [self._state(gpu, use, seen, found) for gpu in self.gpus]
        self._own = found
        self._first_seen = {key: at for key, at in self._first_seen.items() if key in seen}
        self._read_at = time.monotonic()

    def _state(self, gpu: Gpu, use: GpuUse, seen: set[_Key], found: set[int]) -> dict[str, Any]:
        self._asked = gpu.name
        figures = {**self.nvml.figures(gpu), **self.nvml.sensors(gpu)}
        state = {"name": gpu.name, "kind": gpu.model, "uuid": gpu.uuid, **figures}
        if gpu.pci:
            state["pci"] = gpu.pci
        if (parts := self.nvml.parts(gpu)) is not None:
            state["parts"] = [
                {"name": part.name, "kind": part.model, "uuid": part.uuid, **self.nvml.figures(part)}
                for part in parts
            ]
        shares = self._divide(gpu, use, figures, seen, found)
        if shares.others is not None:
            state["others"] = shares.others[:LISTED]
        if shares.others_bytes:
            state["others_bytes"] = shares.others_bytes
        if shares.runs_bytes:
            state["runs_bytes"] = shares.runs_bytes
        if attempts := use.attempts.get(gpu.cuda_id):
            state["attempts"] = sorted(attempts)
        return state

    def _divide(
        self, gpu: Gpu, use: GpuUse, figures: Mapping[str, Any], seen: set[_Key], found: set[int]
    ) -> _Shares:
        listed, sees_all = self.nvml.processes(gpu), identities.sees_all_processes()
        shares, own = _Shares(None if listed is None else []), list[int | None]()
        is_open = gpu.cuda_id in use.opened
        if listed is None:
            # They are not new when the driver lists them again.
            seen.update(key for key in self._first_seen if key[0] == gpu.cuda_id)
        for process in listed or ():
            line = identities.line_of(process.pid)
            # One that is ending may have lost its parent, or be gone before the driver notices.
            if process.pid in self._own or not (use.own | {os.getpid()}).isdisjoint(line):
                found.add(process.pid)
                own.append(process.memory_bytes)
                shares.runs_bytes += 0 if use.busy.isdisjoint(line) else process.memory_bytes or 0
            # In a container, the driver may number this worker's own processes as the host does.
            elif (line or sees_all or not is_open) and shares.others is not None:
                shares.others.append(self._other(gpu, process, seen))
        # Without a list of all processes it is unknown how much of the memory this worker's own have.
        is_known = not is_open or bool(own) or (listed is not None and sees_all)
        sizes = [size for size in own if size is not None]
        known = sum(sizes) if is_known and len(sizes) == len(own) else None
        self._add_hidden(gpu, figures, shares, known, seen)
        return shares

    def _add_hidden(
        self,
        gpu: Gpu,
        figures: Mapping[str, Any],
        shares: _Shares,
        own: int | None,
        seen: set[_Key],
    ) -> None:
        """Add the memory that no listed process explains.

        While it cannot be distinguished from the memory of own runs, it is taken to be as before them.
        """
        others = shares.others or []
        known = sum(other.get("memory_bytes", 0) for other in others)
        used, total = int(figures.get("memory_used") or 0), int(figures.get("memory_bytes") or 0)
        if own is None:
            hidden = min(self._hidden.get(gpu.cuda_id, 0), max(used - known, 0))
        else:
            hidden = used - known - own
            hidden = hidden if hidden > max(HIDDEN_BYTES, HIDDEN_SHARE * total) else 0
            self._hidden[gpu.cuda_id] = hidden
        shares.others_bytes = known + hidden
        without_size = any("memory_bytes" not in other for other in others)
        if hidden and not without_size:
            row = {"pid": None, "user": "", "program": "", "same_user": False, "memory_bytes": hidden}
            shares.others = [*others, {**row, "since": self._since_of(gpu, 0, 0.0, seen)}]
        if shares.others is not None:
            shares.others.sort(key=lambda other: -other.get("memory_bytes", hidden))

    def _other(self, gpu: Gpu, process: GpuProcess, seen: set[_Key]) -> dict[str, Any]:
        who: Identity = identities.identify(process.pid)
        row: dict[str, Any] = {
            "pid": process.pid,
            "user": who.user,
            "program": who.program,
            "same_user": who.same_user,
            "since": self._since_of(gpu, process.pid, who.started, seen),
        }
        return row if process.memory_bytes is None else {**row, "memory_bytes": process.memory_bytes}

    def _since_of(self, gpu: Gpu, pid: int, started: float, seen: set[_Key]) -> float:
        """Return since when this worker has seen a process on a GPU."""
        key = (gpu.cuda_id, pid, started)
        seen.add(key)
        return self._first_seen.setdefault(key, time.time())
