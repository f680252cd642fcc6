"""Asks a model's process in a sandbox for predictions, and checks everything that it sends.

The process executes user code, so nothing from it is trusted. Its supervisor gives the connection to it,
and reports why it has ended, over its own socket.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy.typing as npt
from pydantic import ValidationError

from jobs.spec.signature import Signature
from workers.model_process.dtypes import computed_dtype, served_dtype
from workers.model_process.errors import plain_text
from workers.model_process.frames import Decoder, Frame, InvalidFrame, write_frame
from workers.model_process.output_check import problem_of
from workers.system.socket_paths import short_path

Array = npt.NDArray[Any]
MAX_ROWS = 64
"""Rows of one request. Servers send batches of up to this size, too."""
MAX_ANSWER = 256 * 2**20
LOAD_SECONDS, BATCH_SECONDS = 300.0, 300.0
"""The longest time for a start with imports and compilation, and for one batch."""
CAUSE_SECONDS = 10.0
_CHUNK = 2**20
_MAX_TEXT = 500
_WAIT_SECONDS = 2.0


class ModelFailed(Exception):
    """The process did not answer as it must. The text is the cause, for people."""


class RowsRefused(ModelFailed):
    """The model raised an error for some rows. Its process can be asked again."""


class ModelClient:
    """The connection to one model process.

    Args:
        control: the connection to the supervisor.
        model: the connection to the process.
        file: the model file's path in its sandbox.
        waiting: called again and again while it waits.
    """

    def __init__(
        self, control: socket.socket, model: socket.socket, file: str, waiting: Callable[[], None]
    ) -> None:
        self._control, self._model, self._waiting = control, model, waiting
        self._decoder = Decoder(MAX_ANSWER)
        self._frames: list[Frame] = []
        self._requests = 0
        self._signature: Signature | None = None
        self._failure = ""
        self._send({"op": "load", "model": file, "seen": []})
        self._load_until = time.monotonic() + LOAD_SECONDS

    @classmethod
    def connect(cls, address: Path, waiting: Callable[[], None] = lambda: None) -> Self:
        """Connect to a supervisor's socket, and let the process begin to load its model.

        Raises:
            ModelFailed: the process could not be started.
        """
        # Each message arrives as a whole, also if the next one was sent before it was read.
        control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ExitStack() as undo:
            undo.callback(control.close)
            try:
                with short_path(address) as path:
                    control.connect(path)
                text, descriptors = _received(control, waiting)
                if not descriptors:
                    raise ModelFailed("its process was not started")
                os.set_inheritable(descriptors[0], False)
                model = socket.socket(fileno=descriptors[0])
                client = cls(control, model, json.loads(text)["file"], waiting)
            except OSError as error:
                raise ModelFailed("its process was not started in time") from error
            undo.pop_all()
        return client

    def loaded(self) -> Signature:
        """Wait until the model is loaded, and return the signature that its process reports.

        Raises:
            ModelFailed: it could not be loaded.
        """
        frame = self._answer("ready", self._load_until, f"it was not loaded within {LOAD_SECONDS:.0f} s")
        try:
            signature = Signature.model_validate(frame.header["signature"])
            for spec in (*signature.inputs, *signature.outputs):
                served_dtype(spec.dtype)
        except (ValidationError, KeyError, ValueError, TypeError) as error:
            raise ModelFailed("its process reported an invalid signature") from error
        self._signature = signature
        return signature

    def predict(self, tensors: Sequence[Array]) -> list[Array]:
        """Return a loaded model's outputs for one batch, ordered as in its signature.

        Args:
            tensors: one array for each input, (rows, …) with at most `MAX_ROWS` rows.

        Raises:
            RowsRefused: the model does not take the rows.
            ModelFailed: they could not be computed, or do not fit the signature.
        """
        # What arrives after a failure may be the answer to an earlier request.
        if self._failure:
            raise ModelFailed(self._failure)
        try:
            return self._predict(tensors)
        except RowsRefused:
            raise
        except ModelFailed as error:
            self._failure = str(error)
            raise

    def _predict(self, tensors: Sequence[Array]) -> list[Array]:
        assert self._signature is not None, "it is not loaded"  # noqa: S101
        specs, rows = self._signature.inputs, len(tensors[0])
        typed = [
            array.astype(computed_dtype(spec.dtype), copy=False)
            for array, spec in zip(tensors, specs, strict=True)
        ]
        self._send({"op": "predict"}, typed)
        until = time.monotonic() + BATCH_SECONDS
        frame = self._answer("outputs", until, f"{rows} rows took more than {BATCH_SECONDS:.0f} s")
        if problem := problem_of(frame.tensors, self._signature.outputs, rows):
            raise ModelFailed(f"its process answered {rows} rows with {problem}")
        return frame.tensors

    def close(self) -> None:
        """Close the connections, which ends the process."""
        self._model.close()
        self._control.close()

    def _send(self, header: dict[str, Any], tensors: Sequence[Array] = ()) -> None:
        self._requests += 1
        self._model.settimeout(BATCH_SECONDS)
        try:
            write_frame(self._model, {**header, "id": self._requests}, tensors)
        except TimeoutError:
            raise ModelFailed(f"its process read nothing for {BATCH_SECONDS:.0f} s") from None
        except OSError:
            raise ModelFailed(self._cause()) from None

    def _answer(self, expected_op: str, until: float, too_late: str) -> Frame:
        """Return the answer to the last request.

        Raises:
            ModelFailed: there is none, or it reports an error.
        """
        while True:
            frame = self._next(until, too_late)
            # A process may send beats without end.
            if until < time.monotonic():
                raise ModelFailed(too_late)
            match frame.header.get("op"):
                case "beat" | "compiling":
                    pass
                case op if op == expected_op and frame.header.get("id", self._requests) == self._requests:
                    return frame
                case "failed" | "error":
                    error = plain_text(str(frame.header.get("error", "")), limit=_MAX_TEXT)
                    error = error or "its process reported an error without a text"
                    is_of_rows = expected_op == "outputs" and frame.header.get("id") == self._requests
                    raise RowsRefused(error) if is_of_rows else ModelFailed(error)
                case _:
                    raise ModelFailed("its process sent something that was not asked for")

    def _next(self, until: float, too_late: str) -> Frame:
        while not self._frames:
            left = until - time.monotonic()
            if left <= 0:
                raise ModelFailed(too_late)
            self._waiting()
            self._model.settimeout(min(left, _WAIT_SECONDS))
            try:
                chunk = self._model.recv(_CHUNK)
            except TimeoutError:
                continue
            except OSError:
                chunk = b""
            if not chunk:
                raise ModelFailed(self._cause())
            self._read(chunk)
        return self._frames.pop(0)

    def _read(self, chunk: bytes) -> None:
        try:
            for frame in self._decoder.feed(chunk):
                if not isinstance(frame.header, dict):
                    raise InvalidFrame("a header that is no object")
                self._frames.append(frame)
        # The content of a frame is the process' own: any part of it may be missing or of another type.
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, MemoryError, InvalidFrame):
            raise ModelFailed("its process sent an invalid frame") from None

    def _cause(self) -> str:
        """Return why the process has ended, which its supervisor knows."""
        self._control.settimeout(CAUSE_SECONDS)
        try:
            text = self._control.recv(_CHUNK)
            return str(json.loads(text)["ended"])
        except (OSError, ValueError, KeyError):
            return "its process closed the connection"


def _received(control: socket.socket, waiting: Callable[[], None]) -> tuple[bytes, list[int]]:
    """Wait for a supervisor's first message, and for the connection in it.

    Raises:
        TimeoutError: there was none.
    """
    until = time.monotonic() + LOAD_SECONDS
    control.settimeout(_WAIT_SECONDS)
    while True:
        waiting()
        try:
            text, descriptors, *_ = socket.recv_fds(control, _CHUNK, 1)
        except TimeoutError:
            if time.monotonic() > until:
                raise
        else:
            return text, descriptors
