"""A version whose load fails in an unforeseen way is tried again."""

import asyncio
from pathlib import Path

from jobs.messages.release import ReleasedVersion
from workers.serving.metrics import Metrics
from workers.serving.settings import Limits
from workers.serving.traffic import Traffic
from workers.serving.versions.artifacts import MODEL
from workers.serving.versions.child_process import ChildCommand
from workers.serving.versions.child_starter import ChildStarter
from workers.serving.versions.sandboxed_model import SandboxSettings
from workers.serving.versions.sandboxes import Sandboxes
from workers.serving.versions.seen_sizes import SeenSizesFolder
from workers.serving.versions.version import LoadedVersion, VersionContext


class _BrokenCache:
    async def obtain(self, digest: str, size: int, suffix: str = MODEL) -> Path:
        raise RuntimeError(f"a bug with {digest} of {size} bytes")


async def test_an_unforeseen_failure_of_a_load_is_a_failed_load(tmp_path: Path) -> None:
    command = ChildCommand(tmp_path)
    starter = ChildStarter(command, forks=False)
    context = VersionContext(
        artifacts=_BrokenCache(),
        child_starter=starter,
        sandboxes=Sandboxes(SandboxSettings(tmp_path, command, 2**30, tmp_path, starter.fork_server)),
        limits=Limits(),
        metrics=Metrics(),
        traffic=Traffic(1),
        seen_sizes=SeenSizesFolder(tmp_path / "sizes"),
        changed=lambda: None,
    )
    approved = ReleasedVersion(number=1, digest="0" * 64, bytes=1, signature={})
    version = LoadedVersion("m", approved, context)
    async with asyncio.timeout(10):
        await version.load_attempted.wait()
    assert version.state == "END"
    assert version.error == "internal error; the log of the prediction server has the cause"
    await version.unload(0.1)
