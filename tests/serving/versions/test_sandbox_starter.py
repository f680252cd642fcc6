"""Children with user code that are not wanted any more, or whose end fails: they leave nothing."""

import asyncio
import os
import tempfile
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, Self

import pytest

from jobs.messages.release import ReleasedCode
from workers.serving.versions import sandbox_starter
from workers.serving.versions.child_folder import shared_folder
from workers.serving.versions.child_process import ChildCommand
from workers.serving.versions.sandbox_starter import SandboxStarter
from workers.serving.versions.sandboxed_model import CodeRefused, SandboxedModel, SandboxSettings
from workers.serving.versions.started_sandbox import UNKNOWN_STATUS, StartedSandbox

CODE = ReleasedCode(digest="c" * 64, files=(), requirements=(), packages=(), minimum="landlock")
VERSION = SandboxedModel("own/1", Path("/models/model.keras"), CODE, ())
UNUSED: Any = None


class Packages:
    """Code packages that are in use."""

    python = "/environments/1/venv/bin/python"

    def __init__(self) -> None:
        self.released = threading.Event()
        self.release = self.released.set


class Orphans:
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def look(self) -> None: ...


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
async def starter(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SandboxStarter]:
    async def no_server() -> None: ...

    settings = SandboxSettings(temporary, ChildCommand(temporary), 2**30, temporary, no_server)
    starter = SandboxStarter(settings)
    monkeypatch.setattr(starter, "_find_levels", lambda _: ())
    monkeypatch.setattr(sandbox_starter, "claim_user", lambda _: None)
    yield starter
    await starter.close()


async def test_a_start_that_is_cancelled_during_the_installation_keeps_no_packages(
    starter: SandboxStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages, begun, goes_on = Packages(), threading.Event(), threading.Event()

    def install(*_: object) -> Packages:
        begun.set()
        assert goes_on.wait(60)
        return packages

    monkeypatch.setattr(starter, "_install", install)
    starting = asyncio.create_task(starter.start(VERSION))
    await asyncio.to_thread(begun.wait, 60)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    goes_on.set()
    assert await asyncio.to_thread(packages.released.wait, 10)


async def test_a_start_that_is_cancelled_while_it_connects_leaves_no_process(
    starter: SandboxStarter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandoned: list[bool] = []

    async def start(*_: object) -> SimpleNamespace:
        return SimpleNamespace(abandon=lambda: abandoned.append(True))

    async def connect(*_: object, **__: object) -> NoReturn:
        raise asyncio.CancelledError

    monkeypatch.setattr(starter, "_install", lambda *_: None)
    monkeypatch.setattr(starter, "_start", start)
    monkeypatch.setattr(asyncio.get_running_loop(), "create_unix_connection", connect)
    with pytest.raises(asyncio.CancelledError):
        await starter.start(VERSION)
    assert abandoned
    assert list(tmp_path.glob("*/run-*")) == []


def test_a_child_whose_start_was_cancelled_is_ended_with_its_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    class RecordedOrphans(Orphans):
        def __init__(self, _: object) -> None: ...

        def __exit__(self, *_: object) -> None:
            steps.append("reap")

        def look(self) -> None:
            steps.append("look")

    monkeypatch.setattr(sandbox_starter, "Orphans", RecordedOrphans)
    # Its fork server's parent is this process, which inherits its helpers when it is killed.
    child: Any = SimpleNamespace(process=UNUSED, close=lambda: steps.append("end"))
    sandbox_starter._discard(child)
    assert steps == ["look", "end", "reap"]


async def test_a_start_that_fails_leaves_neither_its_folder_nor_its_packages(
    starter: SandboxStarter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = Packages()
    monkeypatch.setattr(starter, "_install", lambda *_: packages)
    with pytest.raises(CodeRefused, match="landlock"):
        await starter.start(VERSION)
    assert packages.released.is_set()
    assert list(tmp_path.glob("*/run-*")) == []


async def test_a_start_without_a_free_user_leaves_no_folder(
    starter: SandboxStarter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def claim(_: Path) -> NoReturn:
        raise OSError("all user ids are in use")

    monkeypatch.setattr(starter, "_install", lambda *_: None)
    monkeypatch.setattr(sandbox_starter, "claim_user", claim)
    with pytest.raises(OSError, match="all user ids"):
        await starter.start(VERSION)
    assert list(tmp_path.glob("*/run-*")) == []


async def test_the_end_of_a_child_is_reported_even_if_its_files_cannot_be_removed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object) -> NoReturn:
        raise RecursionError("folders in folders")

    closed: list[bool] = []
    process: Any = SimpleNamespace(pid=1, returncode=3, kill=lambda: None, close=lambda: closed.append(True))
    watch: Any = SimpleNamespace(wait=lambda _: 3, stop=lambda: None)
    files: Any = SimpleNamespace(close=fail)
    orphans: Any = Orphans()
    started = StartedSandbox(process, watch, None, files, UNUSED, orphans)
    assert await asyncio.wait_for(started.follow(), 10) == 3
    assert closed
    assert "folders in folders" in caplog.text
    # A process whose end could not be waited for has no status.
    process.returncode, watch.wait, files.close = None, fail, lambda: closed.append(True)
    assert await asyncio.wait_for(started.follow(), 10) == UNKNOWN_STATUS
    assert len(closed) == 3


def test_the_folder_of_children_is_another_one_where_its_name_is_taken(
    temporary: Path,
) -> None:
    usual = shared_folder(temporary)
    usual.rmdir()
    usual.touch()
    other = shared_folder(temporary)
    assert other != usual
    # Users of children must be able to enter it.
    assert other.stat().st_mode & 0o777 == 0o711
    assert other.stat().st_uid == os.geteuid()
