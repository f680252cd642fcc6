"""The router's end of one model child: spawn it, hand it a model, exchange one batch at a time."""

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
from workers.serving.wire import BrokenFrame, Decoder, Frame, encode

Array = npt.NDArray[Any]
_ROOT = Path(__file__).parents[3]
# what a child may know of our environment: where things are, which devices it has; no token, no address
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "XLA_FLAGS")
_PASSED_ON_PREFIXES = ("JAX_", "CUDA_", "NVIDIA_", "ROCR_", "HIP_")


class ChildGone(Exception):
    """The child's connection ended: it died, or was ended."""


class ChildFailed(Exception):
    """The child answered that it cannot do what was asked."""


@dataclass(frozen=True)
class ChildCommand:
    """How children of this server are started."""

    compile_cache: Path
    max_batch: int = 64
    threads: int = 1

    def arguments(self, descriptor: int) -> list[str]:
        """Return the command line for a child that talks over `descriptor`."""
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
        if name in _PASSED_ON or name.startswith(_PASSED_ON_PREFIXES)
    }
    return {**passed, "PYTHONPATH": str(_ROOT), "PYTHONUNBUFFERED": "1"}


class ChildLink(asyncio.Protocol):
    """One running child. At most one question is open at a time; the answer resolves its future."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = loop.create_future()
        self._decoder = Decoder()
        self._answer: asyncio.Future[Frame] | None = None
        self._transport: asyncio.WriteTransport
        self._process: asyncio.subprocess.Process
        self._questions = 0

    @classmethod
    async def spawn(cls, command: ChildCommand) -> "ChildLink":
        """Start a spare child; return once it runs, not once its imports are done.

        Must be called on the main thread: the child dies with the thread that spawned it.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *command.arguments(theirs.fileno()),
                pass_fds=[theirs.fileno()],
                env=child_environment(),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # a signal to our group ends us first: we drain
            )
        _, link = await asyncio.get_running_loop().create_unix_connection(cls, sock=ours)
        link._process = process
        return link

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    async def load(self, model: Path, seconds: float) -> Signature:
        """Let the child load and warm `model`; return the signature it found.

        Raises:
            ChildGone: it died meanwhile.
            ChildFailed: it refused the model, or took longer than `seconds`.
        """
        try:
            async with asyncio.timeout(seconds):
                frame = await self.ask({"op": "load", "model": str(model)})
        except TimeoutError:
            raise ChildFailed(f"the model was not ready within {seconds:.0f} s") from None
        return Signature.model_validate(frame.header["signature"])

    def predict(self, tensors: Sequence[Array]) -> asyncio.Future[Frame]:
        """Send one batch; its future gets the outputs' frame, ChildGone or ChildFailed."""
        return self.ask({"op": "predict"}, tensors)

    def ask(self, header: dict[str, Any], tensors: Sequence[Array] = ()) -> asyncio.Future[Frame]:
        """Send one question whose answer resolves the returned future."""
        assert self._answer is None, "a child is asked one thing at a time"  # noqa: S101
        self._answer = answer = asyncio.get_running_loop().create_future()
        if self.gone.done():
            self._settle(ChildGone("the child is gone"))
            return answer
        self._questions += 1
        self._transport.writelines(encode({**header, "id": self._questions}, tensors))
        return answer

    async def stop(self, grace: float = 2.0) -> None:
        """Close the connection, which ends the child; kill it if it does not hear."""
        self._transport.close()
        try:
            async with asyncio.timeout(grace):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()

    def kill(self) -> None:
        """End the child at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport (asyncio's callback)."""
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's are not subclasses of asyncio's

    def data_received(self, data: bytes) -> None:
        """Resolve the open question (asyncio's callback)."""
        try:
            for frame in self._decoder.feed(data):
                self._received(frame)
        except BrokenFrame:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the open question (asyncio's callback)."""
        self._settle(ChildGone(f"the child ended{f': {exc}' if exc else ''}"))
        if not self.gone.done():
            self.gone.set_result(None)

    def _received(self, frame: Frame) -> None:
        match frame.header["op"]:
            case "spare":
                pass  # its imports are done: good to know, but a load may be sent before
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
    """Join several requests' inputs to one batch, input by input."""
    if len(columns) == 1:
        return list(columns[0])
    return [np.concatenate(parts) for parts in zip(*columns, strict=True)]
