"""Releases, files and generations that a prediction server keeps over restarts."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.serving.releases.test_releases import FakeServer, FakeVersion, release, turn, version
from workers.serving.releases.state import StateFile
from workers.serving.versions.artifacts import ArtifactRefused, Artifacts


@pytest.fixture
def fake(tmp_path: Path) -> FakeServer:
    return FakeServer(tmp_path)


async def test_a_restart_resumes_the_last_releases(fake: FakeServer) -> None:
    await fake.serving(release(1, 1))
    await fake.publish(release(2, 2))
    again = fake.catalog = fake.start()
    again.resume()
    await turn()
    await fake.loaded[0].ready()
    assert (fake.loads(), fake.answers()) == ([1, 2], 1)
    await fake.loaded[1].ready()
    assert fake.answers() == 2


async def test_a_restart_still_knows_the_newest_generation(fake: FakeServer) -> None:
    await fake.serving(release(5, 1))
    fake.catalog = fake.start()
    fake.catalog.resume()
    await fake.publish(release(4, 2))
    assert fake.loads() == [1]


async def test_a_restart_keeps_the_files_of_all_endpoints(fake: FakeServer) -> None:
    await fake.serving(release(1, 1))
    await fake.serving(release(1, 2).model_copy(update={"model": "n"}))
    files = [fake.home / "artifacts" / f"{version(number).digest}.keras" for number in (1, 2)]
    for file in files:
        file.write_bytes(b"verified")
    fake.catalog = fake.start()
    fake.catalog.resume()
    assert [file.exists() for file in files] == [True, True], "they cannot be fetched without the dashboard"


async def test_a_restart_keeps_the_release_that_served_until_it_serves_again(fake: FakeServer) -> None:
    await fake.serving(release(1, 1))
    await fake.publish(release(2, 2))
    state = (fake.home / "state.json").read_bytes()
    for _ in range(2):
        fake.catalog = fake.start()
        fake.catalog.resume()
        await turn()
        assert (fake.home / "state.json").read_bytes() == state
    await fake.loaded[0].ready()
    await fake.loaded[1].fails()
    assert fake.answers() == 1


async def test_a_release_is_served_although_the_disk_is_full(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as full:
        full.setattr(StateFile, "write", fail)
        await fake.serving(release(1, 1))
    assert fake.answers() == 1
    await fake.serving(release(2, 2))
    assert f'"{version(2).digest}"' in (fake.home / "state.json").read_text()


async def test_a_version_that_is_loaded_again_while_it_is_unloaded_is_reported_once(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def drain(version: FakeVersion, seconds: float) -> None:
        version.state = "UNLOADING"
        await asyncio.Future()

    monkeypatch.setattr(FakeVersion, "unload", drain)
    await fake.serving(release(1, 1))
    await fake.serving(release(2, 2))
    await fake.publish(release(3, 1, 2))
    await fake.loaded[-1].ready()
    assert fake.report["versions"] == {"1": "AVAILABLE", "2": "AVAILABLE"}


async def test_a_modified_state_file_is_not_trusted(fake: FakeServer) -> None:
    await fake.serving(release(1, 1))
    path = fake.home / "state.json"
    path.write_text(path.read_text().replace('"production": 1', '"production": null'))
    fake.catalog = fake.start()
    fake.catalog.resume()
    assert fake.catalog.endpoints == {}


class OneFile:
    def __init__(self, file: bytes) -> None:
        self.file, self.asked = file, 0

    async def artifact(self, digest: str) -> AsyncIterator[bytes]:
        self.asked += 1
        yield self.file[:3]
        yield self.file[3:]


MODEL = b"model bytes"


DIGEST = hashlib.sha256(MODEL).hexdigest()


async def test_artifacts_are_fetched_once_and_verified_each_time(tmp_path: Path) -> None:
    source = OneFile(MODEL)
    artifacts = Artifacts(tmp_path, None, source)
    path = await artifacts.obtain(DIGEST, len(MODEL))
    assert (await artifacts.obtain(DIGEST, len(MODEL)), source.asked) == (path, 1)
    path.write_bytes(b"altered")
    assert (await artifacts.obtain(DIGEST, len(MODEL))).read_bytes() == MODEL
    artifacts.keep_only([])
    assert list(tmp_path.iterdir()) == []


async def test_different_or_too_many_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactRefused, match="the bytes have digest"):
        await Artifacts(tmp_path, None, OneFile(b"other bytes")).obtain(DIGEST, 100)
    with pytest.raises(ArtifactRefused, match="longer than the approved 4 bytes"):
        await Artifacts(tmp_path, None, OneFile(MODEL)).obtain(DIGEST, 4)
    with pytest.raises(ArtifactRefused, match="is not a sha256"):
        await Artifacts(tmp_path, None, OneFile(MODEL)).obtain("../../etc/passwd", 4)
    assert list(tmp_path.iterdir()) == []


async def test_a_local_store_is_read_without_a_request(tmp_path: Path) -> None:
    store = tmp_path / "store" / DIGEST[:2]
    store.mkdir(parents=True)
    (store / DIGEST).write_bytes(MODEL)
    source = OneFile(MODEL)
    path = await Artifacts(tmp_path / "cache", tmp_path / "store", source).obtain(DIGEST, len(MODEL))
    assert (path.read_bytes(), source.asked) == (MODEL, 0)
