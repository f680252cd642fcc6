"""The one way in which user code is started: its files, its output, and the leftovers of a failed start."""

import asyncio
import os
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from jobs.messages.sandbox import Level, LevelState
from tests.sandbox.conftest import owner, users
from tests.sandbox.test_launch import folder, request
from workers.confinement.sandbox.launch import Owner, Streams, spawn
from workers.confinement.sandbox.watch import Watch
from workers.confinement.start.files import ProcessFiles
from workers.confinement.start.output import OutputLines
from workers.confinement.start.process import CodeProcess, ProcessStart, start_process
from workers.confinement.start.starter import CodeStarter
from workers.confinement.start.threads import call_in_thread, undone_on_error

__all__ = ["folder", "owner", "users"]
STATES = (LevelState(level=Level.PROCESS, offered=True),)


@pytest.fixture
def files(folder: Path, owner: Owner | None) -> ProcessFiles:
    place = folder / "process"
    place.mkdir()
    place.chmod(0o711)
    user: Any = None if owner is None else SimpleNamespace(uid=owner.uid, end_processes=lambda: False)
    files = ProcessFiles(place, user=user)
    files.fill([])
    return files


def started(files: ProcessFiles, command: list[str], lines: OutputLines, **others: Any) -> ProcessStart:
    asked = request(files.code, minimum=Level.PROCESS).model_copy(update={"writable": ()})
    streams = Streams(stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return ProcessStart(asked, command, files, streams, spawn, lines, **others)


def test_files_of_code_and_the_program_are_put_into_the_folder(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("x = 1")
    place = tmp_path / "process"
    place.mkdir()
    files = ProcessFiles(place)
    files.fill([("package/inner/model.py", tmp_path / "source")], [tmp_path])
    assert (files.code / "package/inner/model.py").read_text() == "x = 1"
    assert {path.name for path in files.program.iterdir()} == {"jobs", "transport", "workers", tmp_path.name}
    link = files.read_only(tmp_path / "source")
    assert link == files.inputs / "source"
    assert link.stat().st_ino == (tmp_path / "source").stat().st_ino
    files.close()
    assert not place.exists()
    assert (tmp_path / "source").exists()


@pytest.mark.parametrize("path", ["/etc/cron.d/x", "../../x", "a/../../x", "", "."])
def test_no_file_of_code_is_put_outside_of_its_folder(path: str, tmp_path: Path) -> None:
    (tmp_path / "source").write_text("x")
    with pytest.raises(ValueError, match="cannot have the path"):
        ProcessFiles(tmp_path).fill([(path, tmp_path / "source")])


def test_a_user_of_its_own_gets_copies(tmp_path: Path) -> None:
    (tmp_path / "stored").write_text("model")
    (tmp_path / "stored").chmod(0o600)
    released: list[bool] = []
    user: Any = SimpleNamespace(uid=60601, end_processes=lambda: True, release=lambda: released.append(True))
    files = ProcessFiles(tmp_path / "process", user=user)
    files.folder.mkdir()
    files.fill([])
    copy = files.read_only(tmp_path / "stored")
    assert (copy.read_text(), copy.stat().st_mode & 0o777) == ("model", 0o644)
    assert files.owner == Owner(60601, 60601)
    files.close()
    assert released


def test_a_user_whose_processes_did_not_end_stays_in_use(tmp_path: Path) -> None:
    def release() -> NoReturn:
        raise AssertionError("another process could get the user")

    user: Any = SimpleNamespace(uid=60601, end_processes=lambda: False, release=release)
    ProcessFiles(tmp_path / "process", user=user).close()


def test_a_process_without_a_free_user_leaves_no_folder(tmp_path: Path) -> None:
    def refuse(_: Path) -> NoReturn:
        raise OSError("all user ids are in use")

    isolation: Any = SimpleNamespace(create_access=refuse)
    (tmp_path / "1").mkdir()
    with pytest.raises(OSError, match="all user ids"):
        ProcessFiles.create(tmp_path / "1", isolation)
    assert list(tmp_path.iterdir()) == []


def test_output_is_passed_on_in_lines_and_the_last_one_is_kept() -> None:
    received: list[str] = []
    lines = OutputLines(received.append, limit=10)
    for chunk in (b"fir", b"st\n\n  \nsec", b"ond\n", b"0123456789abc", b"def\nla\0st"):
        lines.feed(chunk)
    assert received == ["first", "second", "0123456789"]
    lines.end()
    lines.end()
    assert received[3:] == ["la\ufffdst"]
    assert lines.last == "la\ufffdst"


async def test_lines_are_received_in_the_event_loop() -> None:
    threads: list[threading.Thread] = []
    lines = OutputLines(
        lambda _: threads.append(threading.current_thread()), limit=10, loop=asyncio.get_running_loop()
    )
    await asyncio.to_thread(lines.feed, b"a\nb")
    await asyncio.to_thread(lines.end)
    assert threads == [threading.current_thread()] * 2


async def test_a_call_whose_caller_is_cancelled_is_discarded_when_its_thread_has_finished() -> None:
    begun, goes_on, discarded = asyncio.Event(), threading.Event(), list[str]()
    loop = asyncio.get_running_loop()

    def call() -> str:
        loop.call_soon_threadsafe(begun.set)
        assert goes_on.wait(60)
        return "result"

    calling = asyncio.create_task(call_in_thread(call, discarded.append))
    await begun.wait()
    calling.cancel()
    await asyncio.sleep(0)
    assert not calling.done()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert discarded == ["result"]


async def test_a_block_that_fails_is_undone() -> None:
    undone: list[bool] = []
    async with undone_on_error(lambda: undone.append(True)):
        pass
    assert not undone
    with pytest.raises(BlockingIOError):
        async with undone_on_error(lambda: undone.append(True)):
            raise BlockingIOError
    assert undone


async def test_a_started_process_has_its_output_its_status_and_its_cause(files: ProcessFiles) -> None:
    received: list[str] = []
    starter = CodeStarter()
    starter.states.set_result(STATES)
    lines = OutputLines(received.append, limit=100, loop=asyncio.get_running_loop())
    process = await starter.start(started(files, ["sh", "-c", "echo first; printf last; exit 3"], lines))
    status = await asyncio.wait_for(process.follow(), 60)
    await asyncio.to_thread(process.read_rest)
    assert received == ["first", "last"]
    assert process.cause("its process", status) == "its process ended with status 3; its last line: last"
    await asyncio.to_thread(process.close)
    assert list(files.scratch.iterdir()) == []
    assert files.code.exists()
    await starter.close()


async def test_a_start_that_is_cancelled_leaves_no_process(files: ProcessFiles) -> None:
    begun, goes_on, closed = threading.Event(), threading.Event(), list[CodeProcess]()

    def slow_watch(*arguments: Any) -> Watch:
        begun.set()
        assert goes_on.wait(60)
        return Watch(*arguments)

    def close(process: CodeProcess) -> None:
        process.close()
        closed.append(process)

    starter = CodeStarter()
    starter.states.set_result(STATES)
    lines = OutputLines(lambda _: None, limit=100)
    start = started(files, ["sleep", "60"], lines, watch=slow_watch)
    starting = asyncio.create_task(starter.start(start, close))
    await asyncio.to_thread(begun.wait, 60)
    starting.cancel()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    (process,) = closed
    assert process.process.poll() is not None
    assert list(files.scratch.iterdir()) == []
    await starter.close()


def test_a_process_that_cannot_be_watched_does_not_run(files: ProcessFiles) -> None:
    pids: list[int] = []

    def fail(process: Any, _: Any) -> NoReturn:
        pids.append(process.pid)
        raise RuntimeError("can't start new thread")

    lines = OutputLines(lambda _: None, limit=100)
    with pytest.raises(RuntimeError, match="new thread"):
        start_process(started(files, ["sleep", "60"], lines, watch=fail), STATES)
    with pytest.raises(ChildProcessError):
        os.waitpid(pids[0], os.WNOHANG)
    assert list(files.scratch.iterdir()) == []
