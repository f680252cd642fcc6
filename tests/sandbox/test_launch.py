"""Starting commands in a sandbox, and finding the levels of a machine."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import psutil
import pytest

from jobs.messages.sandbox import MIB, Level, LevelState, Limits, SandboxRequest
from tests.sandbox.conftest import Cases, python
from tests.sandbox.exercise import ROOTS
from workers.confinement.isolation.access import Isolation
from workers.confinement.isolation.users import RunnerUsers
from workers.confinement.isolation.view import View
from workers.confinement.sandbox import (
    launch,
    usage,
    view,
)
from workers.confinement.sandbox.enter import CANNOT_START, NOT_FOUND
from workers.confinement.sandbox.launch import Owner, SandboxRefused, Streams
from workers.confinement.sandbox.process import SandboxProcess, exit_status
from workers.confinement.sandbox.watch import Watch

LIMITS = Limits(
    memory_of_all=256 * MIB, processes_of_all=8, disk_of_all=MIB, output_of_all=MIB, file_bytes=MIB,
    cpu_seconds=10,
)  # fmt: skip
PIPES = Streams(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
ALL = tuple(LevelState(level=level, offered=True) for level in Level)


@pytest.fixture
def folder(owner: Owner | None) -> Iterator[Path]:
    """A run's folder, which its user can enter."""
    with tempfile.TemporaryDirectory(prefix="trainyard-sandbox-") as name:
        if owner is not None:
            os.chown(name, *owner)
        yield Path(name)


def request(folder: Path, **fields: Any) -> SandboxRequest:
    return SandboxRequest(writable=(str(folder),), folder=str(folder), limits=LIMITS, **fields)


def start(folder: Path, owner: Owner | None, *command: str, streams: Streams = PIPES) -> SandboxProcess:
    """Start a command at the level that every machine has."""
    return launch.launch_at(Level.PROCESS, request(folder), command, owner=owner, streams=streams)


def output(process: SandboxProcess) -> tuple[int, str, str]:
    status = process.wait(60)
    assert process.stdout is not None
    assert process.stderr is not None
    return status, process.stdout.read().decode(), process.stderr.read().decode()


def test_nothing_starts_below_the_minimum(folder: Path, owner: Owner | None) -> None:
    missing = [
        LevelState(level=level, offered=level is Level.PROCESS, reason=f"no {level} here") for level in Level
    ]
    with pytest.raises(SandboxRefused, match="landlock: no landlock here"):
        launch.launch(request(folder), ["true"], missing, owner=owner)
    allowed = request(folder, minimum=Level.PROCESS)
    with launch.launch(allowed, ["true"], missing, owner=owner) as process:
        assert process.wait(60) == 0
        assert process.record.level is Level.PROCESS
        assert [state.level for state in process.record.missing] == list(Level)[:2]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_starts_no_run_without_a_user_of_its_own(folder: Path) -> None:
    with pytest.raises(ValueError, match="needs a user for each run"):
        launch.launch(request(folder), ["true"], ALL)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("level", ROOTS)
def test_a_run_uses_folders_that_are_opened_to_its_user_by_access_lists(
    level: Level, cases: Cases, users: RunnerUsers, tmp_path: Path
) -> None:
    cases.require("root", level)
    access = Isolation(users, View()).create_access(tmp_path / "runner")
    try:
        stored = tmp_path / "artifact"
        stored.write_text("weights")
        stored_file = access.read_only(stored)
        asked = SandboxRequest(
            readable=(str(stored_file.parent),),
            writable=(str(access.home),),
            folder=str(access.home),
            limits=LIMITS,
        )
        owner = Owner(access.user.uid, access.group)
        command = ["sh", "-c", f"cat {stored_file} > copy; echo x > {stored_file}"]
        with launch.launch_at(level, asked, command, owner=owner, streams=PIPES, scratch=tmp_path) as process:
            assert process.temporary.parent == tmp_path
            assert output(process)[0] != 0
        assert (access.home / "copy").read_text() == "weights"
        assert stored.read_text() == "weights"
    finally:
        access.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("level", ROOTS)
def test_of_a_signal_to_all_processes_only_the_run_takes_notice(
    level: Level, cases: Cases, owner: Owner | None, folder: Path
) -> None:
    cases.require("root", level)
    script = "trap 'echo asked; exit 3' TERM; echo begins; while :; do sleep 0.05; done"
    with launch.launch_at(
        level, request(folder), ["sh", "-c", script], owner=owner, streams=PIPES
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begins\n"
        outside = psutil.Process(process.pid)
        # As Slurm and service managers do. The processes outside end with the run, and not before.
        for member in [outside, *outside.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                member.send_signal(signal.SIGTERM)
        assert output(process)[:2] == (3, "asked\n")


def test_a_missing_folder_is_named_before_anything_starts(folder: Path, owner: Owner | None) -> None:
    asked = request(folder, readable=("/missing/data",))
    with pytest.raises(FileNotFoundError, match="/missing/data"):
        launch.launch(asked, ["true"], ALL, owner=owner)


def test_a_command_that_does_not_exist_is_named(folder: Path, owner: Owner | None) -> None:
    with start(folder, owner, "/missing/program") as process:
        assert output(process) == (NOT_FOUND, "", "/missing/program: No such file or directory\n")


def test_a_sandbox_that_cannot_be_set_up_runs_no_command(
    folder: Path, owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "landlock_rules", lambda *_: [("\0", 1)])
    with launch.launch_at(
        Level.LANDLOCK, request(folder), ["echo", "x"], owner=owner, streams=PIPES
    ) as process:
        status, printed, errors = output(process)
    assert (status, printed) == (CANNOT_START, "")
    assert "the sandbox could not be started" in errors


def test_streams_and_further_files_reach_the_command(folder: Path, owner: Owner | None) -> None:
    reading, writing = os.pipe()
    streams = Streams(subprocess.PIPE, subprocess.PIPE, subprocess.PIPE, (writing,))
    code = f"import os, sys; os.write({writing}, b'event'); print(sys.stdin.read()); sys.exit(3)"
    with start(folder, owner, python(), "-I", "-S", "-c", code, streams=streams) as process:
        os.close(writing)
        assert process.stdin is not None
        process.stdin.write(b"task")
        process.stdin.close()
        assert output(process) == (3, "task\n", "")
        assert os.read(reading, 16) == b"event"
        assert os.read(reading, 16) == b"", "no helper process keeps it open"
    os.close(reading)


def test_the_signal_that_ended_a_command_is_reported(folder: Path, owner: Owner | None) -> None:
    with start(folder, owner, python(), "-I", "-S", "-c", "import os; os.abort()") as process:
        assert process.wait(60) == -6
    assert exit_status(Level.BUBBLEWRAP, 128 + 9) == -9
    assert exit_status(Level.BUBBLEWRAP, 1) == 1
    assert exit_status(Level.LANDLOCK, None) is None


def test_a_run_is_ended_if_its_watch_fails(
    folder: Path, owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Exception):
        pass

    def fail(*_: object, **__: object) -> None:
        raise Broken

    raised: list[object] = []
    monkeypatch.setattr("threading.excepthook", lambda hook_arguments: raised.append(hook_arguments.exc_type))
    monkeypatch.setattr(usage, "processes", fail)
    with start(folder, owner, "sleep", "60") as process:
        watch = Watch(process, [str(folder)], interval=0.01).start()
        assert process.wait(60) < 0
        watch.stop()
    assert raised == [Broken]


def test_a_run_is_ended_if_its_output_cannot_be_received(folder: Path, owner: Owner | None) -> None:
    def receive(_: bytes) -> None:
        raise BrokenPipeError("no reader of the events")

    with start(folder, owner, "sh", "-c", "echo x; exec sleep 60") as process:
        assert process.stdout is not None
        watch = Watch(process, [str(folder)], interval=0.01)
        watch.read(process.stdout, receive)
        watch.start()
        with pytest.raises(BrokenPipeError, match="no reader of"):
            watch.wait(60)
        assert process.returncode is not None
        assert process.returncode < 0


def test_an_output_that_stays_open_does_not_stop_the_worker(
    folder: Path, owner: Owner | None, caplog: pytest.LogCaptureFixture
) -> None:
    received: SimpleQueue[bytes] = SimpleQueue()
    with start(folder, owner, "sh", "-c", "echo x; exec sleep 60") as process:
        assert process.stdout is not None
        watch = Watch(process, [str(folder)]).start()
        watch.read(process.stdout, received.put)
        assert received.get(timeout=60) == b"x\n"
        # As a process that has left the sandbox keeps it open, at a level that does not end those.
        left = Path(f"/proc/{process.processes()[0]}/fd/1").open("wb", buffering=0)  # noqa: SIM115  closed last
        process.kill()
        assert watch.wait(60) < 0
    with left, pytest.raises(BrokenPipeError):
        left.write(b"without a reader")
    assert "was not closed at its end" in caplog.text
