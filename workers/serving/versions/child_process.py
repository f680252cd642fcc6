"""Spawns a model child, sends it a model and batches, and receives its outputs."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from jobs.contracts.signature import Signature
from workers.serving.frames import Decoder, Frame, InvalidFrame, encode

Array = npt.NDArray[Any]
_ROOT = Path(__file__).parents[3]
# environment variables passed to a child: paths and devices, but no tokens or addresses
_ALLOWED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "XLA_FLAGS")
_ALLOWED_PREFIXES = ("JAX_", "CUDA_", "NVIDIA_", "ROCR_", "HIP_")


class ChildExited(Exception):
    """The connection to the child ended: it died or was stopped."""


class ChildFailed(Exception):
    """The child reported an error."""


@dataclass(frozen=True)
class ChildCommand:
    """The command line settings of children."""

    compile_cache: Path
    max_batch: int = 64
    threads: int = 1

    def arguments(self, descriptor: int) -> list[str]:
        """Return the command line for a child with the socket `descriptor`."""
        return [
            *(sys.executable, "-m", "workers.serving.child"),
            *("--socket", str(descriptor), "--parent", str(os.getpid())),
            *("--compile-cache", str(self.compile_cache)),
            *("--max-batch", str(self.max_batch), "--threads", str(self.threads)),
        ]


def child_environment() -> dict[str, str]:
    """Return the allow-listed environment of a child."""
    passed = {
        name: value
        for name, value in os.environ.items()
        if name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)
    }
    return {**passed, "PYTHONPATH": str(_ROOT), "PYTHONUNBUFFERED": "1"}


class ChildProcess(asyncio.Protocol):
    """A running child. At most one request is open at a time; its response resolves the future."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = loop.create_future()
        self._decoder = Decoder()
        self._answer: asyncio.Future[Frame] | None = None
        self._transport: asyncio.WriteTransport
        self._process: asyncio.subprocess.Process
        self._requests = 0

    @classmethod
    async def spawn(cls, command: ChildCommand) -> "ChildProcess":
        """Start a spare child. Returns once the process runs, before its imports are done.

        Must be called on the main thread: the child is killed when the thread that spawned it ends.
        """
        router_socket, child_socket = socket.socketpair()
        with child_socket:
            process = await asyncio.create_subprocess_exec(
                *command.arguments(child_socket.fileno()),
                pass_fds=[child_socket.fileno()],
                env=child_environment(),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # the router drains first on a signal to its process group
            )
        _, child = await asyncio.get_running_loop().create_unix_connection(cls, sock=router_socket)
        child._process = process
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    async def load(self, model: Path, seconds: float) -> Signature:
        """Have the child load and warm up `model`; return its signature.

        Raises:
            ChildExited: it died.
            ChildFailed: it refused the model, or took longer than `seconds`.
        """
        try:
            async with asyncio.timeout(seconds):
                frame = await self.request({"op": "load", "model": str(model)})
        except TimeoutError:
            raise ChildFailed(f"the model was not ready within {seconds:.0f} s") from None
        return Signature.model_validate(frame.header["signature"])

    def predict(self, tensors: Sequence[Array]) -> asyncio.Future[Frame]:
        """Send one batch. The future gets the frame of outputs, ChildExited or ChildFailed."""
        return self.request({"op": "predict"}, tensors)

    def request(self, header: dict[str, Any], tensors: Sequence[Array] = ()) -> asyncio.Future[Frame]:
        """Send one request; the response resolves the returned future."""
        assert self._answer is None, "a child handles one request at a time"  # noqa: S101
        self._answer = answer = asyncio.get_running_loop().create_future()
        if self.ended.done():
            self._settle(ChildExited("the child has ended"))
            return answer
        self._requests += 1
        self._transport.writelines(encode({**header, "id": self._requests}, tensors))
        return answer

    async def stop(self, grace: float = 2.0) -> None:
        """Close the connection, which ends the child; kill it after `grace` seconds."""
        self._transport.close()
        try:
            async with asyncio.timeout(grace):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's are not subclasses of asyncio's

    def data_received(self, data: bytes) -> None:
        """Resolve the open request (asyncio callback)."""
        try:
            for frame in self._decoder.feed(data):
                self._received(frame)
        except InvalidFrame:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the open request (asyncio callback)."""
        self._settle(ChildExited(f"the child ended{f': {exc}' if exc else ''}"))
        if not self.ended.done():
            self.ended.set_result(None)

    def _received(self, frame: Frame) -> None:
        match frame.header["op"]:
            case "spare":
                pass  # its imports are done; a load may be sent before that, too
            case "outputs" | "ready":
                self._settle(frame)
            case _:
                self._settle(ChildFailed(frame.header.get("error", "the child failed")))

    def _settle(self, outcome: Frame | Exception) -> None:
        answer, self._answer = self._answer, None
        if answer is None or answer.done():
            return
        if isinstance(outcome, Frame):
            answer.set_result(outcome)
        else:
            answer.set_exception(outcome)


def concatenated(columns: Sequence[Sequence[Array]]) -> list[Array]:
    """Concatenate several requests' inputs to one batch, input by input."""
    if len(columns) == 1:
        return list(columns[0])
    return [np.concatenate(parts) for parts in zip(*columns, strict=True)]
