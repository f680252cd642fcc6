"""Starts a real runner process and collects its events."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from jobs.messages.control import Checkpoint, Control, Recorded, Start, Yield
from jobs.messages.events import FINAL, RUNNER_EVENT, RunnerEvent
from jobs.messages.task import Task
from tests.runner.forks import ROOT, ForkedRunner, ForkServer

TIMEOUT = 120.0


class RunnerProcess:
    """One runner, its events, and its output in a file."""

    def __init__(
        self, log: Path, environment: dict[str, str] | None = None, server: ForkServer | None = None
    ) -> None:
        read_end, write_end = os.pipe()
        variables = {**os.environ, **(environment or {})}
        self.log = log
        self.events: list[Any] = []
        """Each is a `RunnerEvent`; a test knows which one it waits for."""
        self._arrived = threading.Condition()
        self._closed = False
        self.process: subprocess.Popen[bytes] | ForkedRunner
        with log.open("ab") as output:
            if server is not None:
                self.process = server.fork(variables, output, write_end)
            else:
                self.process = _spawn(variables, output, write_end)
        os.close(write_end)
        threading.Thread(target=self._collect, args=(read_end,), daemon=True).start()

    def _collect(self, read_end: int) -> None:
        with os.fdopen(read_end, "rb") as pipe:
            for line in pipe:
                event = RUNNER_EVENT.validate_json(line)
                if event.type == "checkpoint":
                    with suppress(OSError, ValueError):  # it may be dead, or its input closed
                        self.send(Recorded(folders=(event.folder,)))
                with self._arrived:
                    self.events.append(event)
                    self._arrived.notify_all()
        with self._arrived:
            self._closed = True
            self._arrived.notify_all()

    def send(self, control: Control) -> None:
        """Send a control line."""
        assert self.process.stdin is not None
        self.process.stdin.write(control.model_dump_json().encode() + b"\n")
        self.process.stdin.flush()

    def start(self, task: Task) -> None:
        """Write the task's file into its folder and start it."""
        folder = Path(task.folder)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "spec.json"
        file.write_text(task.model_dump_json(by_alias=True))
        self.send(Start(task=str(file)))

    def run(self, task: Task) -> list[Any]:
        """Run a task to its final event; return the events since its start."""
        before = len(self.events)
        self.start(task)
        self.wait_for(lambda events: any(isinstance(e, FINAL) for e in events[before:]))
        return self.events[before:]

    def wait_for(
        self, condition: Callable[[Sequence[RunnerEvent]], object], timeout: float = TIMEOUT
    ) -> None:
        """Wait until `condition` holds for the events so far."""
        deadline = time.monotonic() + timeout
        with self._arrived:
            while not condition(self.events):
                left = deadline - time.monotonic()
                if left <= 0 or self._closed:
                    text = self.log.read_text()[-4000:]
                    raise AssertionError(f"runner ended or timed out; events {self.events[-3:]}\n{text}")
                self._arrived.wait(left)

    def wait_until_closed(self, timeout: float = TIMEOUT) -> None:
        """Wait until a dead runner's pipe is read to its end."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: self._closed, timeout)

    def of_type(self, kind: str) -> list[Any]:
        """Return the events with one type."""
        return [event for event in self.events if event.type == kind]

    def yield_(self, why: Any = "pause") -> None:
        """Ask for a checkpoint and an end."""
        self.send(Yield(why=why))

    def checkpoint(self) -> None:
        """Ask for a checkpoint."""
        self.send(Checkpoint())

    def kill(self) -> None:
        """Send SIGKILL."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> int:
        """Close its standard input and return its exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


def _spawn(variables: dict[str, str], output: IO[bytes], events: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "workers.runner", "--events-fd", str(events), "--parent", str(os.getpid())],
        stdin=subprocess.PIPE, stdout=output, stderr=output, pass_fds=(events,),
        start_new_session=True, cwd=ROOT, env=variables,
    )  # fmt: skip


@contextmanager
def runner(
    folder: Path, environment: dict[str, str] | None = None, server: ForkServer | None = None
) -> Iterator[RunnerProcess]:
    """Provide a runner, which is killed afterwards; `server` forks it if given."""
    folder.mkdir(parents=True, exist_ok=True)
    started = RunnerProcess(folder / "output.log", environment, server)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.kill()


def profile_of(folder: Path, events: Sequence[RunnerEvent]) -> dict[str, Any]:
    """Return the `DatasetFile` of a profile task's result, as JSON."""
    result = next(event for event in events if event.type == "result").result
    return {
        "path": str(folder / result["path"]),
        "digest": result["digest"],
        "profile": json.loads(json.dumps(result["profile"])),
    }
