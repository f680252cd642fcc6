"""Runners with their own users: the files that they leave, and which users are given."""

import errno
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.supervise.conftest import Bench
from tests.supervise.processes.conftest import ROOT, UIDS, isolate
from tests.supervise.processes.test_isolation import needs_capabilities, needs_mounts, reported
from workers.confinement.isolation import acl, check, users
from workers.confinement.isolation.access import Isolation, RunnerAccess, clean_up
from workers.confinement.isolation.check import Folders, find_isolation
from workers.confinement.isolation.users import RunnerUsers, UidRange, lock
from workers.confinement.isolation.view import View
from workers.supervise.attempt import runner_turn


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
    """Return a runner's access after its worker was killed, and a folder that it was given."""
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


OTHER_NAMESPACE = """
import os, sys
from pathlib import Path
from workers.confinement.isolation.users import lock
os.unshare(os.CLONE_NEWNET)
user = lock(Path(sys.argv[1]), int(sys.argv[2]))
print(user is not None, flush=True)
user is None or user.claim.record_home()
sys.stdin.read()
"""


def locked_in_another_network(locks: Path, uid: int) -> subprocess.Popen[str]:
    """Start a process that claims an id for a home, as in a container with a network of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", OTHER_NAMESPACE, str(locks), str(uid)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip


@needs_mounts
def test_an_id_is_claimed_by_one_home_of_the_machine_also_in_another_network(tmp_path: Path) -> None:
    uid = UIDS.last - 1
    with locked_in_another_network(tmp_path / "other", uid) as other:
        assert other.stdout is not None and other.stdin is not None
        assert other.stdout.readline() == "True\n"
        assert lock(tmp_path / "ours", uid) is None
        other.stdin.close()
        other.wait(30)
    free = lock(tmp_path / "ours", uid)
    assert free is not None
    free.release()


@needs_mounts
def test_processes_of_another_home_are_left_alone_and_their_id_is_not_used(tmp_path: Path) -> None:
    uid = UIDS.last - 2
    with locked_in_another_network(tmp_path / "other", uid) as other:
        assert other.stdin is not None
        other.stdin.close()
        other.wait(30)
    left = subprocess.Popen(["sleep", "60"], user=uid, extra_groups=())
    try:
        ours = RunnerUsers(UidRange(uid - 1, uid), tmp_path / "ours")
        with pytest.raises(OSError, match="in use"):
            ours.claim()
        assert left.poll() is None
        # The home that had the id last may end the processes that are left.
        claimed = RunnerUsers(UidRange(uid - 1, uid), tmp_path / "other").claim()
        assert left.wait(30) == -signal.SIGKILL
        claimed.release()
    finally:
        left.kill()
        left.wait()


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
