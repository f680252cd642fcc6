"""A node records its environments in the database, from the threads that build them."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async

from jobs.models import PackageEnvironment
from tests import factories
from tests.environments.test_folder import build
from tests.environments.test_pages import facts
from workers.confinement.environments.environments import BYTES_VARIABLE, Environments
from workers.confinement.environments.folder import EnvironmentFolder
from workers.node.db_threads import DatabaseThread
from workers.node.environment_records import EnvironmentRecords

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def states() -> dict[str, str]:
    return dict(PackageEnvironment.objects.values_list("digest", "state"))


async def test_builds_uses_and_removals_of_a_node_reach_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BYTES_VARIABLE, "1500")
    worker = await sync_to_async(factories.make_worker)()
    folder = EnvironmentFolder(tmp_path / "environments")
    records = EnvironmentRecords(folder, DatabaseThread("test"))
    records.worker_id = worker.pk
    for digest, used in (("a", 30), ("b", 10)):
        await asyncio.to_thread(records.building, facts(digest))
        await asyncio.to_thread(partial(build, folder, digest, used=used))
        await asyncio.to_thread(records.ready, facts(digest, built=1000.0), "log")
    await asyncio.to_thread(records.building, facts("c"))

    async def has(expected: dict[str, str]) -> None:
        for _ in range(200):
            if await states() == expected:
                return
            await asyncio.sleep(0.02)
        assert await states() == expected

    await has({"a": "ready", "b": "ready", "c": "building"})
    await records.keep_house(Environments(folder))
    # Above the limit, the longest unused is removed; no worker builds the third any more.
    await has({"a": "removed", "b": "ready", "c": "failed"})
