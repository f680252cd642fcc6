"""Environments are built once, kept while they are used, and removed when long unused."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs.messages.environments import EnvironmentFacts
from workers.confinement.environments.folder import USED, EnvironmentFolder
from workers.confinement.isolation.view import CODE_ROOT

SIZE = 1000


def build(folder: EnvironmentFolder, digest: str, *, used: float) -> None:
    """Make a 1,000-byte environment that was last used so many seconds ago."""
    with folder.alone(digest):
        place = folder.clear(digest)
        (place / "venv").mkdir()
        (place / "venv" / "module.py").write_text("")
        (place / "venv").chmod(0o555)
        folder.complete(
            EnvironmentFacts(
                digest=digest,
                requirements=("einops",),
                python="3.13.0",
                platform="linux",
                for_engine=True,
                packages=(),
                bytes=SIZE,
                seconds=1.0,
                built=time.time(),
                installer="pip",
                source="a folder",
                level="bubblewrap",
            )
        )
    then = time.time() - used
    os.utime(folder.root / digest / USED, (then, then))


@pytest.fixture
def folder(tmp_path: Path) -> EnvironmentFolder:
    return EnvironmentFolder(tmp_path / "environments")


def names(folder: EnvironmentFolder) -> list[str]:
    return [facts.digest for facts in folder.present()]


def test_the_longest_unused_are_removed_above_the_limit(folder: EnvironmentFolder) -> None:
    for digest, used in (("a", 30), ("b", 20), ("c", 10)):
        build(folder, digest, used=used)
    assert folder.evict(2 * SIZE) == ["a"]
    assert names(folder) == ["b", "c"]
    assert not (folder.root / "a").exists()


def test_an_environment_in_use_stays(folder: EnvironmentFolder) -> None:
    build(folder, "a", used=30)
    build(folder, "b", used=20)
    held = folder.hold("a")
    assert held is not None
    assert folder.evict(0) == ["b"]
    held.release()
    assert folder.evict(0) == ["a"]


def test_a_use_is_recorded_at_its_begin_and_its_end(folder: EnvironmentFolder) -> None:
    build(folder, "a", used=3600)
    held = folder.hold("a")
    assert held is not None
    assert folder.used()["a"] > time.time() - 60
    os.utime(folder.root / "a" / USED, (0, 0))
    held.release()
    assert folder.used()["a"] > time.time() - 60


BUILDER = """
import sys
from pathlib import Path
from workers.confinement.environments.folder import EnvironmentFolder
folder = EnvironmentFolder(Path(sys.argv[1]))
with folder.alone("a"):
    place = folder.clear("a")
    (place / "venv").mkdir()
    (place / "venv" / "half").write_text("half")
    print("building", flush=True)
    sys.stdin.read()
"""


def test_a_builder_that_is_killed_leaves_nothing_that_counts_as_built(folder: EnvironmentFolder) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BUILDER, str(folder.root)], cwd=CODE_ROOT, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as builder:  # fmt: skip
        assert builder.stdout is not None
        assert builder.stdout.readline() == b"building\n"
        assert not folder.is_idle("a")
        with folder.alone("a") as is_alone:
            assert not is_alone
        builder.send_signal(signal.SIGKILL)
    assert folder.hold("a") is None
    assert folder.is_idle("a")
    assert folder.evict(10 * SIZE) == []
    assert not (folder.root / "a").exists()


def test_a_folder_has_one_identity(folder: EnvironmentFolder) -> None:
    assert folder.place() == EnvironmentFolder(folder.root).place()
    assert len(folder.place()) == 16
