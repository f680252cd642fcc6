"""The model child for a version that needs user code. Nothing that it sends is trusted."""

import asyncio
import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
from pydantic import ValidationError

from jobs.messages.release import SandboxLevel
from jobs.messages.sandbox import Level
from jobs.spec.json_types import JsonObject
from jobs.spec.signature import Signature
from workers.confinement.forking.client import Child
from workers.confinement.sandbox import usage
from workers.model_process.errors import plain_text
from workers.model_process.frames import Frame, InvalidFrame
from workers.model_process.output_check import problem_of
from workers.serving.versions.child_process import (
    Answered,
    ChildExited,
    ChildFailed,
    ChildProcess,
    LoadedModel,
)
from workers.serving.versions.seen_sizes import Sizes
from workers.serving.versions.started_sandbox import StartedSandbox

Array = npt.NDArray[Any]
MAX_ANSWER = 256 * 2**20
"""Bytes of a frame. A child could otherwise have the router allocate the 2 GiB that frames may have."""
MAX_NOTICES = 200
"""Frames a second that answer nothing: beats, and notices of compilations."""
MAX_TEXT = 2000
# Seconds. Its output is read until then, for the cause of its end.
_END_SECONDS = 5.0


class SandboxedChild(ChildProcess):
    """A model child in a sandbox."""

    def __init__(self) -> None:
        super().__init__()
        self._decoder.max_body = MAX_ANSWER
        self._sandbox: StartedSandbox
        self._signature: Signature | None = None
        self._notices = 0
        self._since = time.monotonic()

    def attach(self, sandbox: StartedSandbox) -> None:
        """Set its process. From now on, everything that belongs to it is removed when it ends."""
        self._sandbox = sandbox
        self._process = Child(sandbox.process.pid, sandbox.follow())

    @property
    def level(self) -> SandboxLevel:
        """Its sandbox's level."""
        return Level(self._sandbox.process.record.level).value

    def pids(self) -> list[int]:
        """Return its processes, the one outside the sandbox included; none after its end."""
        try:
            return [self.pid, *self._sandbox.process.processes()]
        except (usage.Unmeasurable, OSError):
            return []

    async def load(
        self, model: Path, seconds: float, seen: Sequence[Sizes] = (), mesh: JsonObject | None = None
    ) -> LoadedModel:
        """Have the child load and warm up `model`; see `ChildProcess.load`.

        Raises:
            ChildExited: it died; the message has the cause.
            ChildFailed: it refused the model, took too long, or its answer is invalid.
        """
        try:
            loaded = await super().load(model, seconds, seen, mesh)
        except ChildExited:
            await asyncio.wait({self._process.ended}, timeout=_END_SECONDS)
            raise ChildExited(self.cause) from None
        except (ValidationError, KeyError, TypeError) as error:
            raise ChildFailed("the model's process sent an invalid answer") from error
        self._signature = loaded.signature
        slowest = loaded.slowest
        is_number = isinstance(slowest, int | float) and math.isfinite(slowest)
        return LoadedModel(loaded.signature, min(max(0.0, slowest), seconds) if is_number else 0.0)

    @property
    def cause(self) -> str:
        """Why it has ended, for people."""
        if self._sandbox.watch.ended is not None:
            return self._sandbox.watch.ended.message
        if not self._process.ended.done():
            return "the model's process closed its connection"
        cause = self._sandbox.cause("the model's process", self._process.ended.result())
        return plain_text(cause, limit=MAX_TEXT)

    def predict(self, tensors: Sequence[Array], answered: Answered) -> None:
        """Send one batch; `answered` gets outputs only if they fit the signature."""
        rows = len(tensors[0])

        def check(outcome: Frame | Exception) -> None:
            if isinstance(outcome, Frame) and not self._fits(outcome.tensors, rows):
                outcome = ChildFailed("the model's process sent an invalid answer")
            answered(outcome)

        super().predict(tensors, check)

    def kill(self) -> None:
        """End all its processes. This returns at once."""
        if not self._process.ended.done():
            threading.Thread(target=self._sandbox.end, name=f"end of {self.pid}", daemon=True).start()

    def data_received(self, data: bytes) -> None:
        """Resolve the open request (asyncio callback); end a child that sends anything else."""
        try:
            super().data_received(data)
        # The content of a frame is the child's own: any part of it may be missing or of another type.
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, MemoryError, InvalidFrame):
            self._refuse()

    def _received(self, frame: Frame) -> None:
        header = frame.header
        match header["op"]:
            case "beat" | "compiling":
                self._count_notice()
                if frame.tensors:
                    raise InvalidFrame("a notice with tensors")
            case "outputs" | "ready" if self._answered is None:
                self._count_notice()
                return
            case "outputs" | "ready":
                pass
            case _:
                kind = header.get("kind")
                error = plain_text(str(header.get("error", "the child failed")), limit=MAX_TEXT)
                self._settle(ChildFailed(error, kind if kind in ("input", "memory") else "internal"))
                return
        super()._received(frame)

    def _count_notice(self) -> None:
        """Count a frame that answers nothing: very many would take all the router's time."""
        now = time.monotonic()
        if now - self._since > 1:
            self._since, self._notices = now, 0
        self._notices += 1
        if self._notices > MAX_NOTICES:
            raise InvalidFrame("too many notices")

    def _refuse(self) -> None:
        self._transport.abort()
        self.kill()

    def _fits(self, outputs: Sequence[Array], rows: int) -> bool:
        """Return whether these are a batch's outputs, by the signature."""
        return self._signature is not None and not problem_of(outputs, self._signature.outputs, rows)
