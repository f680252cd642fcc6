"""Model processes with user code, beside a task."""

import errno
import select
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.sandbox.conftest import owner, users
from tests.sandbox.test_launch import folder, start
from workers.confinement.sandbox.launch import Owner
from workers.confinement.sandbox.watch import Watch
from workers.confinement.start.files import ProcessFiles
from workers.confinement.start.process import CodeProcess
from workers.supervise.attempt.model_processes import ModelProcesses

__all__ = ["folder", "owner", "users"]
PRINTING = "echo first; until [ -e go ]; do sleep 0.01; done; echo last; exec sleep 60"


def test_all_lines_of_a_model_have_been_received_when_it_is_closed(
    folder: Path, owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[bytes] = []
    reading, goes_on = threading.Event(), threading.Event()

    def receive(chunk: bytes) -> None:
        received.append(chunk)
        reading.set()
        # As on a busy machine, where this thread gets no time.
        assert goes_on.wait(60)

    process = start(folder, owner, "sh", "-c", PRINTING)
    assert process.stdout is not None
    watch = Watch(process, [str(folder)])
    watch.read(process.stdout, receive)
    assert reading.wait(60)
    (folder / "go").touch()
    assert select.select([process.stdout], [], [], 60)[0]
    stop = watch.stop

    def go_on_and_stop() -> None:
        goes_on.set()
        stop()

    monkeypatch.setattr(watch, "stop", go_on_and_stop)
    CodeProcess(process, watch, None).close()
    assert b"".join(received) == b"first\nlast\n"


async def test_a_process_without_a_free_descriptor_leaves_neither_its_folder_nor_its_access(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, closed = tmp_path / "1", threading.Event()

    def new_folder() -> Path:
        folder.mkdir()
        return folder

    unused: Any = None
    access: Any = SimpleNamespace(close=closed.set)
    prepared = SimpleNamespace(files=ProcessFiles(folder, access))
    pool: Any = SimpleNamespace(
        new_folder=new_folder,
        isolation=None,
        sandboxes=SimpleNamespace(have_own_users=False),
    )
    processes = ModelProcesses(pool, unused, 1, unused, unused, unused)
    monkeypatch.setattr(processes, "_prepare", lambda *_: prepared)

    def fail() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    process: Any = SimpleNamespace(name="model", file="model.keras")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="Too many open files"):
        patch.setattr(socket, "socketpair", fail)
        await processes._execute(process, process, process)
    assert not folder.exists()
    assert closed.is_set()
