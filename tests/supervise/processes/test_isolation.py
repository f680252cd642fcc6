"""Runners with users of their own, started as root: the files that they can reach, and their end."""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.task import Task
from jobs.store import LocalStore
from tests.supervise.conftest import FAKE, QUICK, Bench, FakeRepository, until
from workers.confinement.isolation import acl, check, users
from workers.confinement.isolation.access import Isolation, RunnerAccess, clean_up
from workers.confinement.isolation.check import Folders, find_isolation
from workers.confinement.isolation.users import RunnerUsers, UidRange, lock
from workers.confinement.isolation.view import View
from workers.node import node_folder
from workers.supervise.attempt import runner_turn
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt.node_context import NodeContext
from workers.supervise.pool.runner_pool import RunnerPool
from workers.system import kernel
from workers.system.environment import runner_environment

MISSING = [
    name for name, bit in kernel.CAPABILITIES.items() if not kernel.effective_capabilities() >> bit & 1
]
needs_capabilities = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")
CAN_MOUNT = bool(kernel.effective_capabilities() >> kernel.CAP_SYS_ADMIN & 1)
needs_mounts = pytest.mark.skipif(bool(MISSING) or not CAN_MOUNT, reason="needs CAP_SYS_ADMIN")
UIDS = UidRange(60600, 61100)


def make_home(root: Path) -> Folders:
    """Return the folders of an installation with keys, a database and an artifact."""
    home, store = root / "home", LocalStore(root / "home" / "artifacts")
    home.chmod(0o700)
    for name in ("secret.key", "release.key", "db.sqlite3"):
        (home / name).write_text("secret")
    (home / "upload").write_text("a,b\n1,2\n")
    store.put(home / "upload")
    node = home / "nodes" / "host"
    shared = (node / "attempts", store.checkpoint_root, home / "compile-cache")
    return Folders(home, store.root, home / node_folder.USER_LOCKS, node / "runners", shared)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return make_home(tmp_path)


def isolate(folders: Folders) -> Isolation:
    isolation, state = find_isolation(folders, UIDS, runner_environment(folders.home))
    assert isolation is not None, state.message
    return isolation


@pytest.fixture
async def bench(folders: Folders) -> AsyncIterator[Bench]:
    """Runs attempts on runners with users of their own."""
    folders.runners.mkdir(mode=0o700, parents=True)
    repository = FakeRepository({}, LocalStore(folders.store))
    pool = RunnerPool(folders.runners, 2, 60.0, 2**30, module=FAKE, isolation=isolate(folders))
    attempts, checkpoints, caches = folders.shared
    node = NodeContext(
        repository, pool, Devices(), QUICK, attempts, checkpoints, caches,
        threads_per_slot=1, memory_per_slot=2**31,
    )  # fmt: skip
    yield Bench(node, repository)
    await pool.close()


def reported(bench: Bench, attempt: int = 1) -> list[str]:
    return [line.line for line in bench.repository.lines(attempt)]


def task_reading(bench: Bench, digest: str, *script: list[object]) -> Task:
    """Return a task that is given an artifact."""
    path = str(LocalStore(bench.node.checkpoints.parent).path(digest))
    return ProfileTask(folder="replaced", source="bundled", path=path, bundled=json.dumps(script))


@needs_mounts
async def test_a_runner_can_read_neither_keys_nor_database_nor_what_others_were_given(
    bench: Bench, folders: Folders
) -> None:
    home, other = folders.home, bench.node.attempts / "2"
    stored = next(folders.store.glob("[0-9a-f][0-9a-f]/*"))
    holding = bench.start(["print", "x"], ["hold"], attempt=2, root=2)
    await until(lambda: bench.repository.events.get(2))
    own = bench.node.attempts / "1"
    private = [home / "secret.key", home / "release.key", home / "db.sqlite3", stored, stored.parent, other]
    private += [
        other / "spec.json",
        other / "work",
        own / "spool.jsonl",
        folders.runners / "1" / "stdout.log",
    ]
    private += [folders.locks, bench.node.attempts, Path(f"/proc/{os.getpid()}/environ")]
    private += [Path(f"/proc/{pid}/{name}") for pid in bench.pids for name in ("environ", "mem", "fd")]
    allowed = own / "spec.json"
    await bench.run(["read", *map(str, [*private, allowed])], ["describe"])
    readable, facts = map(json.loads, reported(bench))
    assert readable == [str(allowed)]
    uid = facts["Uid"][0]
    assert UIDS.first < int(uid) <= UIDS.last
    assert (facts["Uid"], facts["Gid"], facts["Groups"]) == ([uid] * 4, [uid] * 4, [str(UIDS.first)])
    assert (facts["NoNewPrivs"], int(facts["CapPrm"][0], 16), facts["core"]) == (["1"], 0, [0, 0])
    own_files = [file for file in facts["files"] if not file.startswith("pipe:")]
    assert all(Path(file).name in ("stdout.log", "stderr.log") for file in own_files), own_files
    holding.supervisor.drain()
    await holding.ended()


@needs_capabilities
async def test_without_mounts_of_its_own_a_runner_can_enter_no_folder_of_others(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, object] = {}

    def ended(*arguments: object, **_: object) -> list[str]:
        asked["private"] = arguments[3]
        return []

    # Only the rights are looked at: below a folder that others may not enter no process could run.
    monkeypatch.setattr(check, "_run", ended)
    monkeypatch.setattr(kernel, "CAP_SYS_ADMIN", 62)
    folders.runners.mkdir(parents=True)
    isolation = isolate(folders)
    assert isolation.view.hidden == ()
    group = acl.group(UIDS.first)
    for folder in (folders.home, folders.store, folders.runners, *folders.shared):
        assert acl.rights(folder)[group] == acl.SEARCH, folder
    assert folders.home / "secret.key" in asked["private"]  # type: ignore[operator]


@needs_mounts
async def test_a_runner_reads_the_files_of_its_task_and_cannot_change_them(
    bench: Bench, folders: Folders
) -> None:
    stored = next(folders.store.glob("[0-9a-f][0-9a-f]/*"))
    task = task_reading(bench, stored.name, ["describe"])
    bench.repository.tasks[1] = task
    run = bench.start(["unused"])
    await until(lambda: bench.pids)
    link = folders.runners / "1" / "inputs" / stored.name
    await run.ended()
    assert link.stat().st_ino == stored.stat().st_ino
    assert acl.rights(stored)[acl.group(UIDS.first)] == acl.READ
    assert stored.stat().st_uid == os.getuid()


@needs_capabilities
def test_a_runner_that_locks_its_files_does_not_stop_the_supervisor(folders: Folders) -> None:
    stored = next(folders.store.glob("[0-9a-f][0-9a-f]/*"))
    checkpoints = folders.store / "checkpoints" / "job-1"
    for name in ("1", "2"):
        (folders.runners / name).mkdir(parents=True)
    isolation = Isolation(RunnerUsers(UIDS, folders.locks), View())
    first, second = (isolation.create_access(folders.runners / name) for name in ("1", "2"))
    first.grant(checkpoints)

    def use() -> None:
        second.read_only(stored)
        second.grant(checkpoints)
        for access in (first, second):
            access.revoke(checkpoints)
            access.close()

    with contextlib.ExitStack() as held:
        # As the first runner can, which may open these for reading.
        for path in (stored, checkpoints, first.home, first.folder):
            descriptor = os.open(path, os.O_RDONLY)
            held.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        using = threading.Thread(target=use, daemon=True)
        using.start()
        using.join(10)
        assert not using.is_alive()


@needs_mounts
async def test_runners_of_a_project_share_a_compile_cache_and_others_cannot_enter_it(
    bench: Bench, folders: Folders
) -> None:
    await bench.run(["cache", "first"], ["lock", ".lock"], attempt=1, root=1)
    runner = next(iter(bench.node.pool._idle))
    await bench.node.pool.discard(runner)
    await bench.run(["cache", "second"], ["lock", ".lock"], attempt=2, root=1)
    assert [json.loads(line) for line in reported(bench, 2)] == [[".lock", "first", "second"], True]
    cache = bench.node.compile_caches / "job-1"
    await bench.run(["read", str(cache), str(cache / "first")], attempt=3, root=2)
    assert json.loads(reported(bench, 3)[0]) == []


@needs_mounts
async def test_new_runners_use_the_compile_cache_again_after_it_was_deleted(bench: Bench) -> None:
    await bench.run(["cache", "first"], attempt=1, root=1)
    await bench.node.pool.discard(next(iter(bench.node.pool._idle)))
    shutil.rmtree(bench.node.compile_caches)
    await bench.run(["cache", "second"], attempt=2, root=1)
    assert json.loads(reported(bench, 2)[0]) == ["second"]


@needs_mounts
async def test_nothing_is_left_of_a_runner(bench: Bench, folders: Folders) -> None:
    await bench.run(["escape"], ["checkpoint", 1])
    escaped = psutil.Process(int(reported(bench)[0]))
    runner = next(iter(bench.node.pool._idle))
    assert runner.access is not None
    uid = runner.access.user.uid
    assert lock(folders.locks, uid) is None
    await bench.node.pool.discard(runner)
    assert not escaped.is_running() or escaped.status() == psutil.STATUS_ZOMBIE
    for folder in (bench.node.checkpoints / "job-1", bench.node.compile_caches / "job-1"):
        assert acl.user(uid) not in acl.rights(folder)
    assert list(folders.runners.iterdir()) == []
    free = lock(folders.locks, uid)
    assert free is not None
    free.release()


def crashed_runner(folders: Folders) -> tuple[RunnerAccess, Path]:
    """Return the access of a runner whose worker was killed, and a folder that it was given."""
    runner_users = RunnerUsers(UidRange(60600, 60601), folders.locks)
    folder, checkpoints = folders.runners / "1", folders.store / "checkpoints" / "job-1"
    folder.mkdir(parents=True)
    access = Isolation(runner_users, View()).create_access(folder)
    access.grant(checkpoints)
    assert acl.rights(checkpoints)[acl.user(access.user.uid)] == acl.ALL
    # A killed process releases its locks and nothing else.
    access.user.release()
    return access, checkpoints


@needs_capabilities
def test_the_next_start_takes_back_what_the_runner_of_a_killed_worker_was_given(folders: Folders) -> None:
    access, checkpoints = crashed_runner(folders)
    clean_up(folders.locks)
    assert acl.user(access.user.uid) not in acl.rights(checkpoints)
    assert not access.user.grants.exists()


@needs_capabilities
def test_the_next_holder_of_a_user_id_has_nothing_that_a_runner_of_a_killed_worker_was_given(
    folders: Folders,
) -> None:
    access, checkpoints = crashed_runner(folders)
    (folders.runners / "2").mkdir()
    following = Isolation(RunnerUsers(UidRange(60600, 60601), folders.locks), View()).create_access(
        folders.runners / "2"
    )
    assert following.user.uid == access.user.uid
    assert acl.user(access.user.uid) not in acl.rights(checkpoints)
    # The start of another worker takes nothing from a runner that is alive.
    clean_up(folders.locks)
    assert acl.rights(following.home)[acl.user(following.user.uid)] == acl.ALL
    following.close()
    assert not following.user.grants.exists()


@needs_capabilities
def test_a_user_id_whose_old_access_cannot_be_withdrawn_is_not_given_to_a_runner(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    access, checkpoints = crashed_runner(folders)
    (folders.runners / "2").mkdir()
    isolation = Isolation(RunnerUsers(UidRange(60600, 60601), folders.locks), View())
    with monkeypatch.context() as patch:
        patch.setattr(acl, "revoke", refuse)
        with pytest.raises(OSError, match="cannot be withdrawn"):
            isolation.create_access(folders.runners / "2")
    clean_up(folders.locks)
    assert acl.user(access.user.uid) not in acl.rights(checkpoints)


def refuse(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@needs_mounts
async def test_a_runner_whose_access_to_a_task_cannot_be_withdrawn_is_ended(
    bench: Bench, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_turn, "withdraw", refuse)
    await bench.run(["print", "x"])
    assert bench.node.pool.free_slots == 2
    assert bench.pids == []
    assert list(folders.runners.iterdir()) == []


@needs_capabilities
def test_workers_that_start_at_the_same_time_do_not_disturb_each_other(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = replace(folders, runners=folders.runners.parent.parent / "host-2" / "runners")
    scratch: list[list[Path]] = []

    def ended(_isolation: object, _access: object, needed: list[Path], *_: object) -> list[str]:
        scratch.append(needed)
        if len(scratch) == 1:
            isolate(second)
            assert all(folder.is_dir() for folder in needed)
        return []

    monkeypatch.setattr(check, "_run", ended)
    isolate(folders)
    assert len(scratch) == 2
    assert not any(folder.exists() for folder in (*scratch[0], *scratch[1]))


@needs_capabilities
def test_each_process_of_a_user_is_killed_without_a_search_through_all_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uid = UIDS.last
    processes = [subprocess.Popen(["sleep", "60"], user=uid, extra_groups=()) for _ in range(3)]
    searches = iter([[process.pid for process in processes], []])
    monkeypatch.setattr(users, "_processes", lambda _uid: next(searches))
    assert users.end_processes(uid)
    assert [process.wait(30) for process in processes] == [-signal.SIGKILL] * 3


def test_without_privileges_runners_share_the_user_of_the_service_and_it_says_why(folders: Folders) -> None:
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.setgroups([])
        os.setresgid(UIDS.first, UIDS.first, UIDS.first)
        os.setresuid(UIDS.first, UIDS.first, UIDS.first)
        os.write(write, json.dumps(find_isolation(folders, UIDS, {})).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        isolation, (level, message) = json.load(pipe)
    os.waitpid(child, 0)
    assert (isolation, level) == (None, "shared")
    assert message.startswith("Runners share the user of the service and can read its keys")
    assert "does not have CAP_DAC_OVERRIDE" in message


@pytest.mark.parametrize("text", ["0-100", "60600", "61100-60600", "a-b"])
def test_a_range_of_user_ids_that_cannot_be_used_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="first-last"):
        UidRange.read({"TRAINYARD_RUNNER_UIDS": text})


def test_users_of_their_own_can_be_switched_off(folders: Folders) -> None:
    assert UidRange.read({"TRAINYARD_RUNNER_UIDS": "off"}) is None
    assert find_isolation(folders, None, {})[1].level == "shared"
