"""The node's GPUs as its attempts and its standbys see them."""

import logging
from collections.abc import Awaitable, Callable, Sequence

from jobs.spec.checks.gpu_memory import UNKNOWN_NEED, DeviceState, lacks_memory
from workers.node.gpu_inventory.monitor import GpuMonitor, GpuUse
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt.gpu_watch import FRESH_SECONDS
from workers.supervise.attempt_repository import DatabaseUnavailable
from workers.supervise.pool.runner_pool import RunnerPool

log = logging.getLogger(__name__)


class NodeGpus:
    """Reads the GPUs with the shares of the node's own runs; implements `DeviceReader`.

    Args:
        monitor: reads the driver.
        devices: allocates the GPUs.
        pool: has the runners.
    """

    def __init__(self, monitor: GpuMonitor, devices: Devices, pool: RunnerPool) -> None:
        self._monitor, self._devices, self._pool = monitor, devices, pool
        self.write: Callable[[], Awaitable[None]] | None = None
        """Writes the worker's row; None before it is registered."""
        monitor.use = self._use

    @property
    def preallocated(self) -> float | None:
        """See `DeviceReader`."""
        return self._monitor.preallocated

    async def read(self, max_age: float = FRESH_SECONDS) -> Sequence[DeviceState]:
        """See `DeviceReader`."""
        await self._monitor.refresh(max_age)
        states = self._monitor.states()
        self._devices.avoided = [
            state["name"]
            for state in states
            if lacks_memory(state, UNKNOWN_NEED, self.preallocated, runs=False)
        ]
        return states

    async def publish(self) -> None:
        """See `DeviceReader`."""
        try:
            if self.write is not None:
                await self.write()
        except DatabaseUnavailable as error:
            log.warning("the state of the GPUs could not be written: %s", error)

    def _use(self) -> GpuUse:
        attempts, pool = self._devices.attempts, self._pool
        return GpuUse(
            attempts=attempts,
            opened=frozenset(attempts) | pool.opened_devices(),
            own=frozenset((*pool.pids, *(standby.runner.pid for standby in pool.standbys.all))),
            busy=frozenset(pool.busy_pids),
        )
