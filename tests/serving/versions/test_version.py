"""A version whose load fails is tried again, and has ended once its process has."""

import asyncio
from pathlib import Path

import pytest

from jobs.messages.release import ReleasedVersion
from workers.serving.metrics import Metrics
from workers.serving.settings import Limits
from workers.serving.traffic import Traffic
from workers.serving.versions.artifacts import MODEL
from workers.serving.versions.child_process import ChildCommand, ChildFailed
from workers.serving.versions.child_starter import ChildStarter
from workers.serving.versions.sandboxed_model import SandboxSettings
from workers.serving.versions.sandboxes import Sandboxes
from workers.serving.versions.seen_sizes import SeenSizesFolder
from workers.serving.versions.version import ArtifactCache, LoadedVersion, VersionContext


class _BrokenCache:
    async def obtain(self, digest: str, size: int, suffix: str = MODEL) -> Path:
        raise RuntimeError(f"a bug with {digest} of {size} bytes")


class _Cache:
    def __init__(self, file: Path) -> None:
        self._file = file

    async def obtain(self, digest: str, size: int, suffix: str = MODEL) -> Path:
        return self._file


class _SlowlyEndingChild:
    """Fails to load; its end takes until `may_end` is set."""

    def __init__(self) -> None:
        self.is_ending, self.may_end = asyncio.Event(), asyncio.Event()

    async def load(self, *_: object) -> None:
        raise ChildFailed("no model")

    async def silence(self, _: float) -> None:
        await asyncio.Event().wait()

    async def stop(self) -> None:
        self.is_ending.set()
        await self.may_end.wait()


def loaded(tmp_path: Path, artifacts: ArtifactCache) -> LoadedVersion:
    command = ChildCommand(tmp_path)
    starter = ChildStarter(command, forks=False)
    context = VersionContext(
        artifacts=artifacts,
        child_starter=starter,
        sandboxes=Sandboxes(SandboxSettings(tmp_path, command, 2**30, tmp_path, starter.fork_server)),
        limits=Limits(),
        metrics=Metrics(),
        traffic=Traffic(1),
        seen_sizes=SeenSizesFolder(tmp_path / "sizes"),
        changed=lambda: None,
    )
    return LoadedVersion("m", ReleasedVersion(number=1, digest="0" * 64, bytes=1, signature={}), context)


def state(version: LoadedVersion) -> str:
    return version.state


async def test_an_unforeseen_failure_of_a_load_is_a_failed_load(tmp_path: Path) -> None:
    version = loaded(tmp_path, _BrokenCache())
    async with asyncio.timeout(10):
        await version.load_attempted.wait()
    assert state(version) == "END"
    assert version.error == "internal error; the log of the prediction server has the cause"
    await version.unload(0.1)


async def test_a_version_has_ended_once_its_process_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = _SlowlyEndingChild()

    async def start(_: ChildStarter) -> _SlowlyEndingChild:
        return child

    monkeypatch.setattr(ChildStarter, "start", start)
    monkeypatch.setattr("workers.serving.versions.version.read_table", lambda path: None)
    version = loaded(tmp_path, _Cache(tmp_path / "model.keras"))
    async with asyncio.timeout(10):
        await child.is_ending.wait()
        unload = asyncio.create_task(version.unload(0.0))
        finished, _ = await asyncio.wait([unload], timeout=0.2)
        assert not finished
        assert state(version) == "UNLOADING"
        child.may_end.set()
        await unload
    assert state(version) == "END"
