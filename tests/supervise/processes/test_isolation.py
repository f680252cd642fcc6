"""Runners with their own users, started as root: the files that they can reach, and their end."""

import contextlib
import fcntl
import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.task import Task
from jobs.store import LocalStore
from tests.supervise.conftest import Bench, until
from tests.supervise.processes.conftest import UIDS, isolate
from workers.confinement.isolation import acl, check
from workers.confinement.isolation.access import Isolation
from workers.confinement.isolation.check import Folders
from workers.confinement.isolation.users import RunnerUsers
from workers.confinement.isolation.view import View
from workers.system import kernel

MISSING = [
    name for name, bit in kernel.CAPABILITIES.items() if not kernel.effective_capabilities() >> bit & 1
]
needs_capabilities = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")
CAN_MOUNT = bool(kernel.effective_capabilities() >> kernel.CAP_SYS_ADMIN & 1)
needs_mounts = pytest.mark.skipif(bool(MISSING) or not CAN_MOUNT, reason="needs CAP_SYS_ADMIN")


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
    folder = bench.node.attempts / "1"
    private = [home / "secret.key", home / "release.key", home / "db.sqlite3", stored, stored.parent, other]
    private += [
        other / "spec.json",
        other / "work",
        folder / "spool.jsonl",
        folders.runners / "1" / "stdout.log",
    ]
    private += [folders.locks, bench.node.attempts, Path(f"/proc/{os.getpid()}/environ")]
    private += [Path(f"/proc/{pid}/{name}") for pid in bench.pids for name in ("environ", "mem", "fd")]
    allowed = folder / "spec.json"
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
