"""How releases are verified, rolled out and stored."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from jobs.messages.release import Release, ReleasedVersion
from tests.serving.fakes import Signer
from workers.model_process.errors import BadRequest, NotFound, Unavailable
from workers.serving.protocols.target import Target
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.endpoint import Endpoint
from workers.serving.releases.state import StateFile
from workers.serving.releases.verification import ReleaseVerifier
from workers.serving.version_status import State as VersionState
from workers.serving.version_status import VersionStatus
from workers.serving.versions.artifacts import ArtifactRefused, Artifacts
from workers.serving.versions.version import LoadedVersion


def version(number: int) -> ReleasedVersion:
    return ReleasedVersion(number=number, digest=f"{number:064x}", bytes=1, signature={})


def release(generation: int, production: int | None, *standby: int, **labels: int) -> Release:
    numbers = sorted({*standby, *labels.values(), *(() if production is None else (production,))})
    return Release(
        model="m", generation=generation, production=production, standby=standby, labels=labels,
        versions=tuple(version(number) for number in numbers), issued_at="2026-01-01T00:00:00Z",
    )  # fmt: skip


class FakeVersion:
    """A version that the test declares warm."""

    def __init__(self, approved: ReleasedVersion) -> None:
        self.approved = approved
        self.warm, self.load_attempted = asyncio.Event(), asyncio.Event()
        self.unloaded = False
        self.error: str | None = None
        self.state: VersionState = "LOADING"

    @property
    def status(self) -> VersionStatus:
        return VersionStatus(self.approved.number, self.state, self.error)

    async def ready(self) -> None:
        self.state = "AVAILABLE"
        self.warm.set()
        self.load_attempted.set()
        await turn()

    async def fails(self) -> None:
        self.state, self.error = "END", "no such bytes"
        self.load_attempted.set()
        await turn()

    async def unload(self, drain_seconds: float) -> None:
        self.unloaded = True


class FakeServer:
    """A catalog whose versions are fakes."""

    def __init__(self, home: Path) -> None:
        self.signer = Signer()
        self.home = home
        self.loaded: list[FakeVersion] = []
        self.catalog = self.start()

    def start(self) -> Catalog:
        self.loaded.clear()

        def load(model: str, approved: ReleasedVersion) -> LoadedVersion:
            self.loaded.append(FakeVersion(approved))
            return cast(LoadedVersion, self.loaded[-1])

        return Catalog(
            verifier=ReleaseVerifier.from_text(self.signer.public),
            state_file=StateFile(self.home / "state.json"),
            artifacts=Artifacts(self.home / "artifacts", None, NoSource()),
            new_endpoint=lambda model, changed: Endpoint(model, load=load, changed=changed, drain_seconds=1),
            changed=lambda: None,
        )

    async def publish(self, new_release: Release) -> None:
        self.catalog.accept_all([self.signer.sign(new_release).model_dump(mode="json")])
        await turn()

    async def serving(self, new_release: Release) -> None:
        await self.publish(new_release)
        for one in self.loaded:
            await one.ready()

    def loads(self) -> list[int]:
        return [one.approved.number for one in self.loaded]

    def answers(self, **target: Any) -> int:
        return self.catalog.pick(Target("m", **target)).version.approved.number

    @property
    def report(self) -> dict[str, Any]:
        return self.catalog.endpoints["m"].report("r").model_dump()


class NoSource:
    async def artifact(self, digest: str) -> AsyncIterator[bytes]:
        if digest:
            raise ArtifactRefused(digest)
        yield b""


async def turn() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def fake(tmp_path: Path) -> FakeServer:
    return FakeServer(tmp_path)


async def test_no_version_answers_before_it_is_warm(fake: FakeServer) -> None:
    with pytest.raises(NotFound, match=r"Latest\(m\)"):
        fake.answers()
    await fake.publish(release(1, 1))
    with pytest.raises(Unavailable):
        fake.answers()
    assert not fake.catalog.is_ready
    await fake.loaded[0].ready()
    assert fake.answers() == 1
    assert fake.catalog.is_ready


async def test_a_server_is_not_ready_before_it_knows_what_to_serve(fake: FakeServer) -> None:
    earlier = fake.catalog
    assert not earlier.is_ready
    earlier.accept_all([])
    assert fake.catalog.is_ready
    await fake.serving(release(1, 1))
    fake.catalog = fake.start()
    fake.catalog.resume()
    await turn()
    await fake.loaded[0].ready()
    assert fake.catalog.is_ready


async def test_the_current_version_answers_until_the_next_one_is_warm(fake: FakeServer) -> None:
    await fake.serving(release(1, 1))
    await fake.publish(release(2, 2))
    assert (fake.answers(), fake.report["generation"], fake.report["loading"]) == (1, 1, 2)
    await fake.loaded[1].ready()
    assert (fake.answers(), fake.report["generation"], fake.report["loading"]) == (2, 2, None)
    assert fake.loaded[0].unloaded


async def test_a_rollback_to_a_warm_version_needs_no_load(fake: FakeServer) -> None:
    await fake.serving(release(1, 1))
    await fake.publish(release(2, 2, 1))
    await fake.loaded[1].ready()
    await fake.publish(release(3, 1, 2))
    assert fake.answers() == 1
    assert fake.loads() == [1, 2]


async def test_an_endpoint_that_is_taken_down_answers_as_if_it_did_not_exist(fake: FakeServer) -> None:
    await fake.serving(release(1, 1, staging=2))
    await fake.publish(release(2, None))
    assert fake.report["generation"] == 2
    for target in (
        Target("m"),
        Target("m", version=1),
        Target("m", label="staging"),
        Target("m", label="no"),
    ):
        with pytest.raises(NotFound):
            fake.catalog.pick(target)
    assert fake.catalog.is_ready


async def test_a_rollback_does_not_wait_for_a_version_that_is_not_warm(fake: FakeServer) -> None:
    await fake.serving(release(1, 1))
    await fake.publish(release(2, 2, 1))
    await fake.publish(release(3, 1))
    assert (fake.answers(), fake.report["generation"]) == (1, 3)
    assert fake.loaded[1].unloaded


async def test_a_version_that_cannot_load_changes_nothing_and_is_reported(fake: FakeServer) -> None:
    await fake.serving(release(1, 1))
    await fake.publish(release(2, 2))
    await fake.loaded[1].fails()
    assert (fake.answers(), fake.report["generation"], fake.report["error"]) == (1, 1, "no such bytes")


async def test_a_standby_that_cannot_load_does_not_block_the_others(fake: FakeServer) -> None:
    await fake.publish(release(1, 3, 1, 2))
    await fake.loaded[0].ready()
    assert fake.loads() == [3, 1]
    await fake.loaded[1].fails()
    assert (fake.loads(), fake.answers()) == ([3, 1, 2], 3)


async def test_versions_and_labels_select_a_version(fake: FakeServer) -> None:
    await fake.serving(release(1, 2, 1, old=1))
    assert [fake.answers(), fake.answers(label="production"), fake.answers(version=1)] == [2, 2, 1]
    assert fake.catalog.pick(Target("m", label="old")).variant == "old"
    assert fake.catalog.pick(Target("m", version=1)).variant == "standby"
    with pytest.raises(BadRequest, match="Unrecognized servable version label: other"):
        fake.answers(label="other")


async def test_a_version_that_is_not_released_is_not_found(fake: FakeServer) -> None:
    await fake.serving(release(1, 1))
    await fake.publish(release(2, 2))
    for number in (0, 2, 9):
        with pytest.raises(NotFound, match=rf"Specific\(m, {number}\)"):
            fake.answers(version=number)


async def test_without_production_the_endpoint_is_down(fake: FakeServer) -> None:
    await fake.serving(release(1, 1))
    await fake.publish(release(2, None))
    with pytest.raises(NotFound):
        fake.answers()
    assert (fake.loaded[0].unloaded, fake.catalog.is_ready) == (True, True)
