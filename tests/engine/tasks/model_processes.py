"""Executes models as a worker does in sandboxes, but each in a thread."""

import gc
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.messages.task import ModelWithCode
from jobs.spec.signature import Signature
from workers.model_process.frames import FrameReader, write_frame

ROOT = Path(__file__).resolve().parents[3]
Array = npt.NDArray[Any]
Process = Callable[[socket.socket], None]
"""Executes a model over its connection; its end is that of the process."""


@contextmanager
def running(
    process: Process, folder: Path, file: Path, *, name: str = "challenger", ended: str = "its process ended"
) -> Iterator[ModelWithCode]:
    """Execute a model for a task.

    Args:
        process: executes it.
    folder: holds the socket.
        file: the model file.
        name: in the task.
        ended: why the process ended, as the worker reports it.
    """
    address, link = folder / f"{name}.sock", folder / f"{name}.keras"
    address.unlink(missing_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(file)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(address))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            ours, theirs = socket.socketpair()
            with connection, theirs:
                socket.send_fds(connection, [json.dumps({"file": str(link)}).encode()], [ours.fileno()])
                ours.close()
                # The task may have closed the connections before.
                with suppress(OSError):
                    process(theirs)
                    theirs.close()
                    connection.send(json.dumps({"ended": ended}).encode())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield ModelWithCode(name=name, file=str(file), socket=str(address))
        thread.join(10)


def answering(signature: Signature, answer: Callable[[Sequence[Array]], Sequence[Array] | None]) -> Process:
    """A process that answers rows by a function; None ends it, and a ValueError refuses the rows."""

    def process(connection: socket.socket) -> None:
        frames = FrameReader(connection)
        while (frame := frames.read()) is not None:
            header = {"id": frame.header["id"]}
            if frame.header["op"] == "load":
                ready = {"op": "ready", "signature": signature.model_dump(mode="json"), "slowest": 0}
                write_frame(connection, header | ready)
                continue
            try:
                outputs = answer(frame.tensors)
            except ValueError as error:
                write_frame(connection, header | {"op": "error", "error": str(error)})
                continue
            if outputs is None:
                return
            write_frame(connection, header | {"op": "outputs"}, outputs)

    return process


def sending(data: bytes) -> Process:
    """A process that answers the first request with these bytes."""

    def process(connection: socket.socket) -> None:
        FrameReader(connection).read()
        connection.sendall(data)
        connection.recv(1)

    return process


def probabilities(rows: int, classes: int) -> Array:
    return np.full((rows, classes), 1 / classes, np.float32)


def own_process(connection: socket.socket, *, max_batch: int = 64) -> None:
    """Execute a model with built-in layers, as the program in the sandbox does."""
    import jax

    from workers.serving.child.connection import Connection
    from workers.serving.child.serve import load_and_serve

    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as model_socket:
            load_and_serve(Connection(model_socket), compiled=None, max_batch=max_batch, max_programs=4)
    finally:
        jax.config.update("jax_cpu_enable_async_dispatch", True)
        gc.unfreeze()


def program(code: Path) -> Process:
    """The program that executes a model with user code, as its own process but without a sandbox."""

    def process(connection: socket.socket) -> None:
        command = [sys.executable, "-P", "-m", "workers.serving.child", "--socket", str(connection.fileno())]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
        subprocess.run(
            [*command, "--code", str(code)], env=environment, pass_fds=[connection.fileno()], check=False
        )

    return process
