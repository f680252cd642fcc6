"""Allocates one attempt's GPUs, and opens them to its run's sandbox."""

import asyncio

from jobs.messages.task import OwnCode, Task
from workers.confinement.sandbox.gpus import GpuAccess, NoGpuAccess
from workers.runner.environment import mesh_of
from workers.runner.registry import needs_jax, runs_program
from workers.supervise.attempt.node_context import NodeContext

NO_GPU_FOR_VERSIONS = "Versions that need code are loaded on the CPU, in a sandbox each."
NO_GPU_IN_SANDBOX = "This run uses the CPU: its code runs in a sandbox, which gets no GPU, because "


class AttemptGpus:
    """The GPUs for one attempt.

    Attributes:
        used: the CUDA_VISIBLE_DEVICES entries for those that the run uses.
        access: how the sandbox uses them if the task has code; None for other runners, which open the devices
            by themselves.
        warning: why the run uses the CPU although the machine has GPUs; empty if it does not.
    """

    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._allocated: tuple[str, ...] = ()
        self.used: tuple[str, ...] = ()
        self.access: GpuAccess | None = None
        self.warning = ""

    async def allocate(self, task: Task, slots: int) -> None:
        """Allocate a task's GPUs.

        Raises:
            SandboxRefused: this machine offers no sandbox that is strong enough for its code.
        """
        if not _may_use_gpus(task):
            return
        if task.models and self._node.devices.count:
            self.warning = NO_GPU_FOR_VERSIONS
        mesh = mesh_of(task)
        self._allocated = self._node.devices.take(slots, mesh.names if mesh is not None else ())
        self.used = self._allocated
        if task.code is not None and self._allocated:
            await self._open_to_sandbox(task.code)
            self.used = self._allocated if self.access is not None else ()
        if self._node.no_gpu is not None:
            self.warning = self._node.no_gpu

    async def _open_to_sandbox(self, code: OwnCode) -> None:
        """Find how a run with code uses its GPUs, or why it cannot."""
        sandboxes = self._node.pool.sandboxes
        if sandboxes is None:
            return
        level = await sandboxes.require(code.minimum)
        try:
            self.access = await asyncio.to_thread(
                self._node.sandbox_gpus.access, self._allocated, level, network=code.network
            )
        except NoGpuAccess as error:
            self.warning = f"{NO_GPU_IN_SANDBOX}{error}."

    def give_back(self) -> None:
        """Let other attempts have them."""
        self._node.devices.give_back(self._allocated)


def _may_use_gpus(task: Task) -> bool:
    """Return whether a task gets GPUs where there are some. A mesh with CPU devices leaves them to others."""
    mesh = mesh_of(task)
    return (needs_jax(task) or runs_program(task)) and (mesh is None or mesh.kind != "cpu")
