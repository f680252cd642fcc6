"""The node's folder, its lock, and the clean-up after a dead node."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workers.node import node_folder
from workers.node.node_folder import NodeFolder, WorkerNameInUse, clean_up_dead_nodes
from workers.system.pid_file import write_pid_file


def leave_runner(folder: NodeFolder) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    place = folder.runners / "1"
    place.mkdir(parents=True)
    write_pid_file(place, process.pid)
    return process


def die(folder: NodeFolder) -> None:
    """Release the lock, as the kernel does when a node dies."""
    os.close(folder._lock)


def test_two_living_nodes_never_share_a_name(tmp_path: Path) -> None:
    NodeFolder.claim(tmp_path, "node")
    with pytest.raises(WorkerNameInUse, match="--name"):
        NodeFolder.claim(tmp_path, "node")
    assert NodeFolder.claim_numbered(tmp_path, "node").name == "node-2"


def test_runners_of_a_dead_node_are_killed_and_its_worker_is_returned(tmp_path: Path) -> None:
    dead = NodeFolder.claim(tmp_path, "dead")
    runner = leave_runner(dead)
    dead.write_worker_id(17, "dead")
    die(dead)
    folder = NodeFolder.claim(tmp_path, "own")
    assert clean_up_dead_nodes(folder) == [(17, "dead", os.getpid())]
    assert runner.wait(timeout=60) == -9
    assert not dead.root.exists()


def test_a_node_that_starts_again_returns_its_previous_worker(tmp_path: Path) -> None:
    before = NodeFolder.claim(tmp_path, "node")
    before.write_worker_id(17, "node")
    die(before)
    assert [dead.id for dead in clean_up_dead_nodes(NodeFolder.claim(tmp_path, "node"))] == [17]


def test_a_truncated_worker_file_is_ignored(tmp_path: Path) -> None:
    dead = NodeFolder.claim(tmp_path, "dead")
    (dead.root / "worker").write_text("1")
    die(dead)
    assert clean_up_dead_nodes(NodeFolder.claim(tmp_path, "own")) == []


def test_a_living_nodes_runners_are_left_alone(tmp_path: Path) -> None:
    living = NodeFolder.claim(tmp_path, "living")
    runner = leave_runner(living)
    assert clean_up_dead_nodes(NodeFolder.claim(tmp_path, "own")) == []
    assert runner.poll() is None
    runner.kill()
    runner.wait()


def test_a_process_that_reuses_the_pid_is_left_alone(tmp_path: Path) -> None:
    dead = NodeFolder.claim(tmp_path, "dead")
    stranger = leave_runner(dead)
    note = dead.runners / "1" / "process.json"
    note.write_text(f'{{"pid": {stranger.pid}, "born": 1.0}}')
    die(dead)
    clean_up_dead_nodes(NodeFolder.claim(tmp_path, "own"))
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_a_runner_that_ends_during_the_clean_up_does_not_stop_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = NodeFolder.claim(tmp_path, "dead")
    runner = leave_runner(dead)
    die(dead)

    def too_late(pid: int, _signal: int) -> None:
        runner.kill()
        runner.wait()
        raise ProcessLookupError(pid)

    monkeypatch.setattr(os, "killpg", too_late)
    assert clean_up_dead_nodes(NodeFolder.claim(tmp_path, "own")) == []
    assert not dead.root.exists()


def test_a_long_home_still_gets_a_socket(tmp_path: Path) -> None:
    folder = NodeFolder.claim(tmp_path / ("x" * 100), "node")
    assert len(os.fsencode(folder.socket)) <= 107


def test_a_folder_that_another_starting_node_deletes_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    living = NodeFolder.claim(tmp_path, "own")
    dead = [tmp_path / "nodes" / name for name in ("a", "b")]
    for folder in dead:
        folder.mkdir()

    def delete_all(_: Path) -> list[int]:
        for folder in dead:
            shutil.rmtree(folder, ignore_errors=True)
        return []

    monkeypatch.setattr(node_folder, "end_orphans", delete_all)
    assert clean_up_dead_nodes(living) == []
    assert [folder.name for folder in (tmp_path / "nodes").iterdir()] == ["own"]
