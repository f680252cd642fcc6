"""Starting commands in a sandbox, and finding the levels of a machine."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.messages.sandbox import MIB, Level, LevelState, Limits, SandboxRequest
from tests.sandbox.conftest import Cases, python
from tests.sandbox.exercise import ROOTS
from workers.confinement.isolation.access import Isolation
from workers.confinement.isolation.users import RunnerUsers
from workers.confinement.isolation.view import View
from workers.confinement.sandbox import (
    bubblewrap,
    cgroups,
    landlock,
    launch,
    levels,
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
    """The folder of a run, which its user can enter."""
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
        given = access.read_only(stored)
        asked = SandboxRequest(
            readable=(str(given.parent),),
            writable=(str(access.home),),
            folder=str(access.home),
            limits=LIMITS,
        )
        owner = Owner(access.user.uid, access.group)
        command = ["sh", "-c", f"cat {given} > copy; echo x > {given}"]
        with launch.launch_at(level, asked, command, owner=owner, streams=PIPES, scratch=tmp_path) as process:
            assert process.temporary.parent == tmp_path
            assert output(process)[0] != 0
        assert (access.home / "copy").read_text() == "weights"
        assert stored.read_text() == "weights"
    finally:
        access.close()


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
    monkeypatch.setattr("threading.excepthook", lambda each: raised.append(each.exc_type))
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


def test_nothing_acts_on_the_ids_of_a_run_after_its_end(
    folder: Path, owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(folder, owner, "true") as process:
        assert process.wait(60) == 0
        monkeypatch.setattr(usage, "children", lambda _: pytest.fail("its id may be that of another"))
        monkeypatch.setattr(
            "workers.confinement.sandbox.process.end_processes", lambda _: pytest.fail("so may its user's")
        )
        process.kill()
    process.kill()


def test_a_run_is_ended_if_the_kernel_lists_no_children(
    folder: Path, owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Some kernels have no such file: the test reads a name that does not exist.
    monkeypatch.setattr(usage, "_CHILDREN", "missing")
    with start(folder, owner, "sleep", "60") as process:
        watch = Watch(process, [str(folder)], interval=0.01).start()
        assert watch.wait(60) < 0
        assert watch.ended is not None
        assert "its processes could not be counted" in watch.ended.message


def test_a_process_is_hidden_if_only_the_names_of_its_open_files_can_be_read(
    folder: Path, owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> str:
        raise PermissionError

    with start(folder, owner, "sleep", "60") as process:
        assert not usage.is_hidden([process.pid])
        monkeypatch.setattr(os, "readlink", refuse)
        assert usage.is_hidden([process.pid])


DOMAIN = """
import os
from workers.confinement.sandbox import landlock
from workers.system import kernel
rules = landlock.create_domain({version})
kernel.forbid_new_privileges()
landlock.restrict(rules)
for name in ("a", "b"):
    os.mkdir(name)
os.rename("a", "b/a")
open("b/file", "w").close()
os.rename("b/file", "b/a/file")
try:
    open(f"/proc/{{os.getppid()}}/mem", "r+b")
except PermissionError:
    print("refused")
"""


@pytest.mark.parametrize("version", [2, 6])
def test_a_domain_of_landlock_refuses_the_memory_of_others_alone(version: int, tmp_path: Path) -> None:
    if landlock.version() < version:
        pytest.skip("the kernel has no such version")
    command = [sys.executable, "-c", DOMAIN.format(version=version)]
    variables = {"PYTHONPATH": str(view.CODE_ROOT)}
    printed = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert (printed.stdout, printed.stderr) == ("refused\n", "")
    assert landlock.create_domain(1) is None


def test_threads_are_limited_by_the_kernel_only_where_it_counts_them_for_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for release, counts in (("5.13.0-1", False), ("5.14.0", True), ("6.1-rc2", True), ("4.19.0", False)):
        monkeypatch.setattr(os, "uname", lambda given=release: SimpleNamespace(release=given))
        assert launch._counts_in_namespace() is counts


def test_a_level_that_does_not_hold_is_not_offered(
    folder: Path, owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = launch._filter
    monkeypatch.setattr(launch, "_filter", lambda *given: {**real(*given), "internet": True})
    state = levels._find(Level.LANDLOCK, owner, python(), None)
    assert (state.offered, state.reason) == (False, "a program could connect to a port of this machine")


def test_levels_that_the_machine_lacks_have_a_reason(
    owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "find_bubblewrap", lambda: None)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    claim = None if owner is None else lambda: owner
    found = {state.level: state for state in levels.find_levels(claim, python())}
    assert found[Level.BUBBLEWRAP].reason.startswith("bubblewrap is not installed; install the package")
    assert found[Level.LANDLOCK].reason == "the kernel has no Landlock"
    assert found[Level.PROCESS].offered


def test_the_view_has_neither_the_rest_of_the_machine_nor_the_home_of_the_installation(
    folder: Path,
) -> None:
    shown = {mount.target for mount in view.mounts((), (str(folder),), "/var/tmp")}
    assert {"/", "/etc", "/home", "/root", "/run", "/var", str(view.CODE_ROOT)}.isdisjoint(shown)
    assert str(view.CODE_ROOT / "workers") in shown
    assert {"/etc/ssl", "/etc/ssl/private", "/etc/pki", "/etc/pki/tls"}.isdisjoint(shown)
    assert {"/etc/ssl", "/etc/pki", "/etc/pki/tls"}.isdisjoint(view.SYSTEM)
    line = bubblewrap.command_line(
        "bwrap", view.mounts((), (str(folder),), "/var/tmp"), ["true"], network=False, privileged=False,
        shared_memory=1,
    )  # fmt: skip
    assert {"--unshare-net", "--unshare-user", "--unshare-pid", "--die-with-parent"} < set(line)


def test_nothing_is_mounted_below_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the folder of the virtual environment is a link."""
    packages = tmp_path / "real" / "lib" / "packages"
    packages.mkdir(parents=True)
    link = tmp_path / "venv"
    link.symlink_to(tmp_path / "real")
    below = str(link / "lib" / "packages")
    monkeypatch.setattr(view, "python_folders", lambda: (link, Path(below)))
    shown = {mount.target: mount.kind for mount in view.mounts((), (), "/var/tmp")}
    assert (shown[str(link)], shown[str(packages)]) == ("link", "read")
    assert below not in shown


def test_control_groups_are_used_only_where_one_is_delegated(tmp_path: Path) -> None:
    with pytest.raises(cgroups.NoCgroup, match="TRAINYARD_SANDBOX_CGROUP is not set"):
        cgroups.delegated({})
    given = {cgroups.VARIABLE: str(tmp_path)}
    with pytest.raises(cgroups.NoCgroup, match="No such file"):
        cgroups.delegated(given)
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    with pytest.raises(cgroups.NoCgroup, match="no controller for pids"):
        cgroups.delegated(given)
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    group = cgroups.create(cgroups.delegated(given), LIMITS)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert (group / "memory.max").read_text() == str(LIMITS.memory_of_all)
    assert (group / "pids.max").read_text() == str(LIMITS.threads)
    (tmp_path / "sandbox-left").mkdir()
    os.utime(tmp_path / "sandbox-left", (0, 0))
    (tmp_path / "sandbox-new").mkdir()
    assert cgroups.remove_left(tmp_path) == 1
    assert {each.name for each in tmp_path.iterdir() if each.is_dir()} == {group.name, "sandbox-new"}


def test_disk_use_counts_each_file_once_and_refuses_what_it_cannot_measure(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 8192)
    alone = usage.disk([str(tmp_path)], [])
    os.link(tmp_path / "file", tmp_path / "again")
    (tmp_path / "link").symlink_to("/usr")
    assert usage.disk([str(tmp_path)], []) - alone < 8192
    for number in range(10):
        (tmp_path / f"empty-{number}").touch()
    assert usage.disk([str(tmp_path)], []) - alone >= 10 * 4096
    nested = tmp_path
    for _ in range(210):
        nested = nested / "d"
    nested.mkdir(parents=True)
    with pytest.raises(usage.Unmeasurable):
        usage.disk([str(tmp_path)], [])
    assert usage.disk([str(tmp_path)], [], limit=0) > 0, "the walk has continued above the limit"
