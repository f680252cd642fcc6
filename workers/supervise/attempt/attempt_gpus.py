"""Allocates one attempt's GPUs, and opens them to its run's sandbox."""

import asyncio
import datetime as dt
from collections.abc import Sequence

from jobs.messages.task import OwnCode, Task
from jobs.spec.checks.gpu_memory import DeviceState, MemoryNeed, describe_held, lacks_memory
from workers.confinement.sandbox.gpus import GpuAccess, NoGpuAccess
from workers.runner.environment import mesh_of
from workers.runner.registry import needs_jax, runs_program
from workers.supervise.attempt.database_calls import DatabaseCalls
from workers.supervise.attempt.devices import NoFreeGpu
from workers.supervise.attempt.gpu_watch import GpuWatch
from workers.supervise.attempt.node_context import NodeContext
from workers.supervise.attempt.wanted_gpus import WantedGpus, wanted_gpus
from workers.supervise.attempt_repository import Assignment, ReservedGpus

NO_GPU_FOR_VERSIONS = "Versions that need code are loaded on the CPU, in a sandbox each."
ON_CPU = "This run uses the CPU: "
NO_GPU_IN_SANDBOX = f"{ON_CPU}its code runs in a sandbox, which gets no GPU, because "


class HeldByOthers(Exception):
    """GPUs are held by others, or reserved for them, so that the attempt cannot run now; it names them."""


class AttemptGpus:
    """The GPUs for one attempt.

    Attributes:
        used: the CUDA_VISIBLE_DEVICES entries for those that the run uses.
        access: how the sandbox uses them if the task has code; None for other runners, which open the devices
            by themselves.
        watch: watches those that the run uses.
        warning: why the run uses the CPU although the machine has GPUs; empty if it does not.
    """

    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._allocated: tuple[str, ...] = ()
        self.used: tuple[str, ...] = ()
        self.access: GpuAccess | None = None
        self.watch = GpuWatch()
        self.warning = ""
        self._attempt: int | None = None

    async def allocate(self, task: Task, assignment: Assignment, calls: DatabaseCalls) -> None:
        """Allocate a task's GPUs, unless the attempt ends while the database does not answer.

        Their memory and reservations are read again: both may have changed since the placement.

        Raises:
            HeldByOthers: others hold so much of the memory, or have reserved so many, that too few are left.
            NoWantedGpu: the worker cannot give it the GPUs that its spec asks for.
            SandboxRefused: this machine offers no sandbox that is strong enough for its code.
        """
        if not _may_use_gpus(task):
            return
        if task.models and self._node.devices.count:
            self.warning = NO_GPU_FOR_VERSIONS
        mesh, wanted = mesh_of(task), wanted_gpus(task, assignment.slots, self._node.gpu_models)
        wanted.check(wanted.wanted)
        reserved = await self._read_reserved(assignment.attempt, calls)
        if reserved is None:
            return
        present = await self._take(assignment, mesh.names if mesh is not None else (), wanted, reserved)
        self.used = self._allocated
        if task.code is not None and self._allocated:
            await self._open_to_sandbox(task.code)
            self.used = self._allocated if self.access is not None else ()
            wanted.check(self.used, self.warning.removeprefix(ON_CPU).rstrip("."))
        self.watch = GpuWatch(self._node.gpus, self._node.devices.names_of(self.used), present)
        if self._node.no_gpu is not None:
            self.warning = self._node.no_gpu

    async def _read_reserved(self, attempt: int, calls: DatabaseCalls) -> ReservedGpus | None:
        """Return the reserved GPUs; None if the attempt has ended before the database answered."""
        if not self._node.devices.count:
            return ReservedGpus()
        found: list[ReservedGpus] = []

        async def read() -> None:
            found.append(await self._node.repository.reserved_gpus(attempt))

        await calls.repeat_until_end(read)
        return found[0] if found else None

    async def _take(
        self, assignment: Assignment, names: Sequence[str], wanted: WantedGpus, reserved: ReservedGpus
    ) -> Sequence[DeviceState]:
        """Take GPUs with enough free memory, and return how all are now."""
        reader, devices = self._node.gpus, self._node.devices
        present = () if reader is None else await reader.read(max_age=0.0)
        held = [device for device in present if self._lacks_memory(device, assignment.need)]
        self._attempt = assignment.attempt
        try:
            self._allocated = devices.take(
                wanted.number,
                names,
                avoid=[*wanted.unwanted, *(device["name"] for device in held), *reserved.kept],
                prefer=reserved.own,
                attempt=assignment.attempt,
            )
        except NoFreeGpu:
            if reader is not None:
                # The scheduler must not place it here again by an older reading.
                await reader.publish()
            raise HeldByOthers(_describe(held, reserved)) from None
        return present

    def _lacks_memory(self, device: DeviceState, need: MemoryNeed) -> bool:
        reader = self._node.gpus
        # What runs hold counts while they hold the GPU: they are not yet counted as ended here.
        runs = bool(device.get("attempts"))
        return lacks_memory(device, need, None if reader is None else reader.preallocated, runs=runs)

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
        self._node.devices.give_back(self._allocated, self._attempt)


def _may_use_gpus(task: Task) -> bool:
    """Return whether a task gets GPUs where there are some. A mesh with CPU devices leaves them to others."""
    mesh = mesh_of(task)
    return (needs_jax(task) or runs_program(task)) and (mesh is None or mesh.kind != "cpu")


def _describe(held: Sequence[DeviceState], reserved: ReservedGpus) -> str:
    """Return who has the GPUs that an attempt does not get."""
    holders = describe_held(held, dt.datetime.now(dt.UTC))
    sentences = [f"{holders}."] if holders else []
    sentences += dict.fromkeys(reserved.kept.values())
    return " ".join(sentences) or "Other runs use the GPUs of its spec."
