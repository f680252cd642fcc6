"""The home on a disk that is full: new work waits with a reason, what runs loses nothing."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.harness import TRAINING, Round
from tests.flow.specs import spec
from tests.flow.yard import QUICK, RunningYard
from tests.ops.conftest import wait_for
from webapp.demo.client import DemoError

pytestmark = pytest.mark.timeout(3600)
MEBIBYTE = 2**20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256m,mode=700", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a tmpfs can only be mounted by root: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def yard(disk: Path, tmp_path: Path) -> Iterator[RunningYard]:
    """A yard whose home lies on that disk; new work needs 64 MiB."""
    yard = RunningYard(disk / "home", **(QUICK | {"TRAINYARD_MIN_FREE_BYTES": str(64 * MEBIBYTE)}))
    yard.output = tmp_path / "up.out"
    try:
        yard.open()
        yield yard
    finally:
        yard.end()


def leave(disk: Path, spare: int) -> Path:
    """Take all space but `spare` bytes with one file."""
    ballast = disk / "ballast"
    free = os.statvfs(disk)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - spare)
    return ballast


def leave_nothing(disk: Path) -> Path:
    """Write until no byte more fits, while others write too."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (MEBIBYTE, 4096):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass
    return ballast


def test_nothing_is_lost_on_a_full_disk_and_everything_goes_on_once_there_is_room(
    disk: Path, yard: RunningYard
) -> None:
    seen = Round(yard, seed=0)

    ballast = leave(disk, 32 * MEBIBYTE)  # less than new work needs
    wait_for(lambda: yard.ada.get("/workers")["items"][0]["info"].get("no_space"), "the worker to notice")
    waiting = seen.submit_one("waiting", spec(fit={"epochs": 3, "batch_size": 32}))
    job = yard.until(waiting, lambda job: "nearly full" in job["why_waiting"], "its reason to wait")
    assert job["state"] == "queued"
    ballast.unlink()
    yard.until_completed(waiting)

    running = seen.submit_one("running", TRAINING | {"fit": {**TRAINING["fit"], "epochs": 1500}})
    yard.until(running, lambda job: job["progress"]["done"] >= 1, "its first epoch")
    ballast = leave_nothing(disk)
    # Either a write fails and says so, or there was just room for the heartbeat that reports it.
    wait_for(lambda: _is_noticed(yard) or _is_reported(yard), "a full disk to be noticed")
    ballast.unlink()
    yard.until_completed(running)
    seen.look()


def _is_noticed(yard: RunningYard) -> bool:
    said = yard.said().lower()
    return "disk is full" in said or "no space left" in said


def _is_reported(yard: RunningYard) -> bool:
    with contextlib.suppress(DemoError):  # the dashboard, too, may find no room for an answer
        return bool(yard.ada.get("/workers")["items"][0]["info"].get("no_space"))
    return False
