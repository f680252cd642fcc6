"""Children with code of users that are not wanted any more, or whose end fails: nothing of them is left."""

import asyncio
import os
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from jobs.messages.release import ReleasedCode
from workers.serving.versions.child_folder import shared_folder
from workers.serving.versions.child_process import ChildCommand
from workers.serving.versions.sandbox_starter import SandboxStarter
from workers.serving.versions.sandboxed_model import SandboxedModel, SandboxSettings
from workers.serving.versions.started_sandbox import UNKNOWN_STATUS, StartedSandbox

CODE = ReleasedCode(digest="c" * 64, files=(), requirements=(), packages=(), minimum="landlock")
VERSION = SandboxedModel("own/1", Path("model.keras"), CODE, ())
UNUSED: Any = None


class Packages:
    """Packages of code that are in use."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.release = self.released.set


class Orphans:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def look(self) -> None: ...


@pytest.fixture
def starter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SandboxStarter:
    async def no_server() -> None: ...

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    settings = SandboxSettings(tmp_path, ChildCommand(tmp_path), 2**30, tmp_path, no_server)
    made = SandboxStarter(settings)
    monkeypatch.setattr(made, "_levels", tuple)
    return made


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
    starter: SandboxStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandoned: list[bool] = []
    started = SimpleNamespace(abandon=lambda: abandoned.append(True))

    async def connect(*_: object, **__: object) -> NoReturn:
        raise asyncio.CancelledError

    monkeypatch.setattr(starter, "_install", lambda *_: None)
    monkeypatch.setattr(starter, "_start", lambda *_: started)
    monkeypatch.setattr(asyncio.get_running_loop(), "create_unix_connection", connect)
    with pytest.raises(asyncio.CancelledError):
        await starter.start(VERSION)
    assert abandoned


async def test_a_start_without_a_free_user_leaves_no_folder(
    starter: SandboxStarter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def claim() -> NoReturn:
        raise OSError("all user ids are in use")

    monkeypatch.setattr(starter, "_install", lambda *_: None)
    monkeypatch.setattr(starter, "_claim", claim)
    with pytest.raises(OSError, match="all user ids"):
        await starter.start(VERSION)
    assert list(tmp_path.glob("*/run-*")) == []


async def test_the_end_of_a_child_is_reported_even_if_its_files_cannot_be_removed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    packages: Any = Packages()

    def fail() -> NoReturn:
        raise RecursionError("folders in folders")

    process: Any = SimpleNamespace(pid=1, close=lambda: None)
    watch: Any = SimpleNamespace(wait=lambda _: 3)
    files: Any = SimpleNamespace(close=fail)
    orphans: Any = Orphans()
    started = StartedSandbox(process, watch, UNUSED, files, UNUSED, packages, orphans)
    ended = started.follow(asyncio.get_running_loop())
    assert await asyncio.wait_for(ended, 10) == UNKNOWN_STATUS
    assert packages.released.is_set()
    assert "folders in folders" in caplog.text


def test_the_folder_of_children_is_another_one_where_its_name_is_taken(
    starter: object, tmp_path: Path
) -> None:
    usual = shared_folder(tmp_path)
    usual.rmdir()
    usual.touch()
    other = shared_folder(tmp_path)
    assert other != usual
    # Users of children must be able to enter it.
    assert other.stat().st_mode & 0o777 == 0o711
    assert other.stat().st_uid == os.geteuid()
