"""Starts a model child, sends it a model and batches, and receives its outputs."""

import asyncio
import contextlib
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from jobs.messages.release import SandboxLevel
from jobs.spec.json_types import JsonObject
from jobs.spec.signature import Signature
from workers.confinement.forking.client import Child, ForkServer
from workers.model_process.frames import BEAT_SECONDS, Decoder, Frame, InvalidFrame, encode
from workers.serving.versions.gpu_environment import gpu_variables
from workers.serving.versions.seen_sizes import Sizes
from workers.system.environment import names_secret, thread_variables

Array = npt.NDArray[Any]
_ROOT = Path(__file__).parents[3]
# A batch that does not fit into the buffer is sent in parts, each after a turn of the event loop. The kernel
# may allow less.
SEND_BUFFER_BYTES = 2**20
# Environment variables passed to a child: paths and devices, but no tokens or addresses
_ALLOWED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "XLA_FLAGS")
_ALLOWED_PREFIXES = ("JAX_", "CUDA_", "NVIDIA_", "ROCR_", "HIP_")


class ChildExited(Exception):
    """The connection to the child ended: it died or was stopped."""


class ChildFailed(Exception):
    """The child reported an error. `kind` is "input", "memory", "too_large" or "internal".

    The child chose the text.
    """

    def __init__(self, message: str, kind: str = "internal") -> None:
        super().__init__(message)
        self.kind = kind


Answered = Callable[[Frame | Exception], None]
"""Called once with the outputs of a request, or with ChildExited or ChildFailed. Unlike the callback of a
future, it does not wait for the next turn of the event loop."""


class Command(Protocol):
    """The command line settings for a kind of child."""

    def arguments(self, descriptor: int) -> list[str]:
        """Return the command line for a child with the socket `descriptor`."""

    def variables(self) -> dict[str, str]:
        """Return the environment for a child."""


@dataclass(frozen=True)
class ChildCommand:
    """The command line settings for children.

    Attributes:
        compile_cache: the folder for compiled programs.
        max_batch: maximum rows in one model call.
        threads: a child's CPU threads.
        max_programs: maximum compiled programs of a version with open sizes.
    """

    compile_cache: Path
    max_batch: int = 64
    threads: int = 1
    max_programs: int = 256

    def arguments(self, descriptor: int) -> list[str]:
        """Return the command line for a child with the socket `descriptor`."""
        return [*self._shared(), "--socket", str(descriptor), "--parent", str(os.getpid())]

    def fork_server(self) -> list[str]:
        """Return the command line for a server that forks such children, without its socket and parent."""
        return [*self._shared(), "--fork-server"]

    def variables(self) -> dict[str, str]:
        """Return the environment for a child."""
        return {**child_environment(), **thread_variables(self.threads)}

    def _shared(self) -> list[str]:
        return [
            *(sys.executable, "-m", "workers.serving.child"),
            *("--compile-cache", str(self.compile_cache)),
            *("--max-batch", str(self.max_batch), "--max-programs", str(self.max_programs)),
        ]


def child_environment() -> dict[str, str]:
    """Return the allow-listed environment for a child."""
    passed = {
        name: value
        for name, value in os.environ.items()
        if (name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)) and not names_secret(name)
    }
    return {**passed, **gpu_variables(os.environ), "PYTHONPATH": str(_ROOT), "PYTHONUNBUFFERED": "1"}


class LoadedModel(NamedTuple):
    """A model that a child has loaded, and the seconds that its slowest batch took at warm-up."""

    signature: Signature
    slowest: float


class ChildProcess(asyncio.Protocol):
    """A running child. At most one request is open at a time.

    Attributes:
        ended: resolved when the child has closed its connection.
        is_compiling: whether the running batch needs a new program.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.is_compiling = False
        self._last_received = time.monotonic()
        self._decoder = Decoder()
        self._answered: Answered | None = None
        self._transport: asyncio.WriteTransport
        self._process: Child
        self._requests = 0

    @classmethod
    async def spawn(cls, command: Command, *, own_session: bool = True) -> "ChildProcess":
        """Start a child as a new interpreter. Returns before its imports are done.

        Must be called on the main thread: the child is killed when the thread that spawned it ends.

        Args:
            command: its command line.
            own_session: whether it leads a session. Otherwise it must leave this process' group by itself.

        Raises:
            OSError: it could not be started.
        """

        async def start(descriptor: int) -> Child:
            process = await asyncio.create_subprocess_exec(
                *command.arguments(descriptor),
                pass_fds=[descriptor],
                env=command.variables(),
                stdin=asyncio.subprocess.DEVNULL,
                # A signal to the process group, such as Ctrl-C, must reach the router alone: it drains first.
                start_new_session=own_session,
            )
            return Child(process.pid, asyncio.create_task(process.wait()))

        return await cls._start(start)

    @classmethod
    async def fork(cls, server: ForkServer, timeout: float) -> "ChildProcess":
        """Start a child by a fork server. One that does not answer within `timeout` seconds is killed.

        Raises:
            OSError: it could not be started.
        """
        return await cls._start(lambda descriptor: server.fork(b"{}", [descriptor], timeout=timeout))

    @classmethod
    async def _start(cls, start: Callable[[int], Awaitable[Child]]) -> "ChildProcess":
        router_socket, child_socket = socket.socketpair()
        router_socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        with child_socket, contextlib.ExitStack() as undo:
            # A child whose start was cancelled ends with its connection.
            undo.callback(router_socket.close)
            process = await start(child_socket.fileno())
            undo.pop_all()
        _, child = await asyncio.get_running_loop().create_unix_connection(cls, sock=router_socket)
        child._process = process
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def level(self) -> SandboxLevel | None:
        """Its sandbox's level; None without one."""
        return None

    @property
    def cause(self) -> str:
        """Why it has ended, for people; empty if that is unknown."""
        return ""

    def pids(self) -> list[int]:
        """Return its processes."""
        return [self.pid]

    @property
    def silent_seconds(self) -> float:
        """The seconds since the child last sent anything."""
        return time.monotonic() - self._last_received

    async def silence(self, seconds: float) -> None:
        """Return when the child has ended, or has sent nothing for `seconds`.

        Only times in which this process runs are counted: after it was suspended itself, it reads first.
        """
        silent, before = 0.0, self._last_received
        while silent < seconds and not self.ended.done():
            await asyncio.wait([self.ended], timeout=BEAT_SECONDS)
            silent = 0.0 if self._last_received != before else silent + BEAT_SECONDS
            before = self._last_received

    async def sign_of_life(self, seconds: float) -> bool:
        """Wait until the child sends something, at most `seconds`; return whether it did."""
        before = self._last_received
        for _ in range(math.ceil(seconds / BEAT_SECONDS)):
            await asyncio.wait([self.ended], timeout=BEAT_SECONDS)
            if self._last_received != before or self.ended.done():
                break
        return self._last_received != before

    async def load(
        self, model: Path, seconds: float, seen: Sequence[Sizes] = (), mesh: JsonObject | None = None
    ) -> LoadedModel:
        """Have the child load and warm up `model`.

        Args:
            model: path to the verified file.
            seconds: the time limit.
            seen: row sizes in earlier requests, to compile ahead; the most recent first.
            mesh: the devices over which it is divided; None for one device.

        Raises:
            ChildExited: it died.
            ChildFailed: it refused the model, or took longer than `seconds`.
        """
        try:
            async with asyncio.timeout(seconds):
                frame = await self.request(
                    {"op": "load", "model": str(model), "seen": list(seen)}
                    | ({} if mesh is None else {"mesh": mesh})
                )
        except TimeoutError:
            raise ChildFailed(f"the model was not ready within {seconds:.0f} s") from None
        return LoadedModel(Signature.model_validate(frame.header["signature"]), frame.header["slowest"])

    def predict(self, tensors: Sequence[Array], answered: Answered) -> None:
        """Send one batch. `answered` gets the output frame, ChildExited or ChildFailed."""
        self._send({"op": "predict"}, tensors, answered)

    def request(self, header: dict[str, Any], tensors: Sequence[Array] = ()) -> asyncio.Future[Frame]:
        """Send one request; the response resolves the returned future."""
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._send(header, tensors, lambda outcome: _resolve(answer, outcome))
        return answer

    def _send(self, header: dict[str, Any], tensors: Sequence[Array], answered: Answered) -> None:
        assert self._answered is None, "a child handles one request at a time"  # noqa: S101
        # First: a request that cannot be encoded must not leave the child waiting for its answer.
        frame = encode({**header, "id": self._requests + 1}, tensors)
        # A transport that closes refuses to write; `connection_lost` is called in a later turn of the loop.
        if self.ended.done() or self._transport.is_closing():
            answered(ChildExited("the child has ended"))
            return
        self._answered = answered
        self._requests += 1
        self._transport.writelines(frame)

    async def stop(self, grace: float = 2.0) -> None:
        """Close the connection, which ends the child; kill it after `grace` seconds."""
        self._transport.close()
        await asyncio.wait({self._process.ended}, timeout=grace)
        self.kill()
        await asyncio.shield(self._process.ended)

    def kill(self) -> None:
        if not self._process.ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast instead of a check: uvloop's transports are not subclasses of asyncio's.
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        """Resolve the open request (asyncio callback)."""
        self._last_received = time.monotonic()
        try:
            for frame in self._decoder.feed(data):
                self._received(frame)
        # Where the next frame begins is unknown. `connection_lost` fails the open request.
        except InvalidFrame:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the open request (asyncio callback)."""
        self._settle(ChildExited(f"the child ended{f': {exc}' if exc else ''}"))
        if not self.ended.done():
            self.ended.set_result(None)

    def _received(self, frame: Frame) -> None:
        match frame.header["op"]:
            case "beat":
                pass
            case "compiling":
                self.is_compiling = True
            case "outputs" | "ready":
                self._settle(frame)
            case _:
                header = frame.header
                self._settle(
                    ChildFailed(header.get("error", "the child failed"), header.get("kind", "internal"))
                )

    def _settle(self, outcome: Frame | Exception) -> None:
        answered, self._answered = self._answered, None
        self.is_compiling = False
        if answered is not None:
            answered(outcome)


def _resolve(answer: asyncio.Future[Frame], outcome: Frame | Exception) -> None:
    if answer.done():
        return
    if isinstance(outcome, Frame):
        answer.set_result(outcome)
    else:
        answer.set_exception(outcome)


def concatenated(columns: Sequence[Sequence[Array]]) -> list[Array]:
    """Concatenate several requests' inputs to one batch, input by input."""
    # A single request, the usual case, needs no copy.
    if len(columns) == 1:
        return list(columns[0])
    return [np.concatenate(parts) for parts in zip(*columns, strict=True)]
