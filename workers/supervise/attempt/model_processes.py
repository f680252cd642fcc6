"""Executes those models in a task that need user code, each in its own sandbox.

The task's runner gets a connection to each model's process, and never the code. It connects to a
socket in its attempt's folder; the supervisor starts the process then, sends the runner the connection,
and when the process ends, the cause.
"""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from jobs.messages.sandbox import MIB, Limits, SandboxRecord, SandboxRequest
from jobs.messages.task import ModelWithCode, OwnCode
from jobs.spec.exports import STORED
from workers.confinement.isolation.access import Isolation
from workers.confinement.sandbox.launch import SandboxRefused, Streams
from workers.confinement.start.files import ProcessFiles, packages_of
from workers.confinement.start.output import OutputLines
from workers.confinement.start.process import CodeProcess, ProcessStart
from workers.confinement.start.threads import call_in_thread
from workers.runner.environment import Environment
from workers.supervise.attempt import model_sockets
from workers.supervise.events.event_recorder import EventRecorder
from workers.supervise.events.line_log import LineLog
from workers.supervise.pool.code_files import code_places
from workers.supervise.pool.runner_pool import RunnerPool
from workers.supervise.pool.sandboxes import Sandboxes
from workers.system.environment import runner_environment, thread_variables

MAX_ROWS = 64
"""Rows of the largest batch that it computes."""
DISK_BYTES = 256 * MIB
"""A model computes, and has no reason to write."""
MAX_LINES = 1000
MAX_LINE_BYTES = 4000


@dataclass
class _Prepared:
    """The files for a process that is not started yet, with its model file."""

    files: ProcessFiles
    model: Path


@dataclass
class ModelProcesses:
    """The processes for one task's models.

    Attributes:
        pool: gives folders, users and sandboxes.
        limits: for each process.
        threads: for each process.
        record: records a process's sandbox, before the model is loaded.
        recorder: gets the lines that the processes print.
        fail: is called with an error in the supervisor.
    """

    pool: RunnerPool
    limits: Limits
    threads: int
    record: Callable[[SandboxRecord], Awaitable[None]]
    recorder: EventRecorder
    fail: Callable[[BaseException], None]
    _serving: list["asyncio.Task[None]"] = field(default_factory=list)

    async def open(self, models: Iterable[ModelWithCode], folder: Path, runner: int) -> dict[str, Path]:
        """Open a socket for each model that can be executed; return the sockets by the models' names.

        Args:
            models: the task's.
            folder: the attempt's, which only its runner can enter.
            runner: the process that may connect.

        Raises:
            OSError: the disk is full.
            SandboxRefused: this machine offers no sandbox that is strong enough.
        """
        sockets = {}
        for model in models:
            if model.code is None or model.failure:
                continue
            await self._sandboxes.require(model.code.minimum)
            address = sockets[model.name] = folder / f"{model.name}.sock"
            serving = self._serve(model, model.code, model_sockets.listen(address), runner)
            task = asyncio.create_task(serving, name=f"{model.name} of {folder.name}")
            task.add_done_callback(self._on_served)
            self._serving.append(task)
        return sockets

    async def close(self) -> None:
        """End all processes, and wait until nothing is left of them."""
        for serving in self._serving:
            serving.cancel()
        if self._serving:
            await asyncio.wait(self._serving)

    @property
    def _sandboxes(self) -> Sandboxes:
        if self.pool.sandboxes is None:
            raise SandboxRefused("this worker starts no code of users")
        return self.pool.sandboxes

    async def _serve(self, model: ModelWithCode, code: OwnCode, listener: socket.socket, runner: int) -> None:
        try:
            with listener:
                connection = await model_sockets.accept(listener, runner)
            with connection:
                await self._execute(model, code, connection)
        # The runner has ended, or closed the connection.
        except ConnectionError:
            pass

    def _on_served(self, serving: "asyncio.Task[None]") -> None:
        """End the attempt if the process could not be served."""
        if not serving.cancelled() and (error := serving.exception()) is not None:
            self.fail(error)

    async def _execute(self, model: ModelWithCode, code: OwnCode, connection: socket.socket) -> None:
        """Start a model's process in its own folder, which is deleted at its end."""
        isolation = self.pool.isolation if self._sandboxes.have_own_users else None
        prepare = partial(self._prepare, Path(model.file), code, self.pool.new_folder(), isolation)
        prepared = await call_in_thread(prepare, lambda prepared: prepared.files.close())
        try:
            await self._run(model.name, code, prepared, connection)
        finally:
            await asyncio.shield(asyncio.to_thread(prepared.files.close))

    async def _run(self, name: str, code: OwnCode, prepared: _Prepared, connection: socket.socket) -> None:
        """Start a process, give the runner its connection, and send the cause when it ends."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                process = await self._start(name, code, prepared.files, theirs.fileno())
            try:
                await self.record(process.process.record)
                answer = json.dumps({"file": str(prepared.model)}).encode()
                socket.send_fds(connection, [answer], [ours.fileno()])
                ours.close()
                status = await asyncio.shield(process.follow())
                # Its last line may explain the end.
                await asyncio.to_thread(process.read_rest)
                answer = json.dumps({"ended": process.cause("its process", status)}).encode()
                await asyncio.get_running_loop().sock_sendall(connection, answer)
            finally:
                await asyncio.shield(asyncio.to_thread(process.close))

    def _prepare(self, file: Path, code: OwnCode, folder: Path, isolation: Isolation | None) -> _Prepared:
        """Put the files for a process into its folder. Call it in a thread."""
        with ExitStack() as undo:
            files = ProcessFiles.create(folder, isolation)
            undo.callback(files.close)
            files.fill(code_places(code), map(Path, self._sandboxes.readable))
            # The store names files by their digests, but Keras needs the suffix.
            model = files.inputs / STORED.file_name()
            model.symlink_to(files.read_only(file).name)
            undo.pop_all()
        return _Prepared(files, model)

    async def _start(self, name: str, code: OwnCode, files: ProcessFiles, descriptor: int) -> CodeProcess:
        log = LineLog(name, self.recorder, MAX_LINES)
        command = (
            # Without the working folder in the path of imports: it has the code.
            *(code.python or sys.executable, "-P", "-m", self.pool.model_module),
            *("--code", str(files.code), "--max-batch", str(MAX_ROWS), "--socket", str(descriptor)),
        )
        start = ProcessStart(
            self._request(code, files),
            command,
            files,
            Streams(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, keep=(descriptor,)),
            # The same fork server as that of the task's runner.
            await self.pool.sandbox_starter(Environment(self.threads)),
            OutputLines(log.add, limit=MAX_LINE_BYTES, loop=asyncio.get_running_loop()),
        )
        return await self._sandboxes.start(start)

    def _request(self, code: OwnCode, files: ProcessFiles) -> SandboxRequest:
        return SandboxRequest(
            minimum=code.minimum,
            readable=(*files.readable, *packages_of(code.python), *self._sandboxes.readable),
            folder=str(files.code),
            # Also if the project allows it to runs: another host could know the targets.
            network=False,
            environment={
                **runner_environment(files.scratch),
                **thread_variables(self.threads),
                "PYTHONPATH": str(files.program),
                # Devices of GPUs are not in a sandbox.
                "JAX_PLATFORMS": "cpu",
            },
            limits=self.limits.model_copy(
                update={
                    "disk_of_all": min(self.limits.disk_of_all, DISK_BYTES),
                    "file_bytes": min(self.limits.file_bytes, DISK_BYTES),
                }
            ),
        )
