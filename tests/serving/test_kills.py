"""SIGKILL of a child and of the router: no wrong answer is given, and no process is left behind."""

import asyncio
from pathlib import Path

import httpx
import psutil
import pytest

from jobs.contracts.release import Release, ReleasedVersion

from .fakes import FakeDashboard, ServerProcess, running, until
from .load import Load
from .test_swaps import release


@pytest.mark.chaos
@pytest.mark.timeout(900)
async def test_a_child_killed_under_load_costs_no_answer(
    server: ServerProcess, dashboard: FakeDashboard, telling: dict[int, ReleasedVersion]
) -> None:
    dashboard.publish(release(telling, "killed", 1, 1))
    await asyncio.to_thread(dashboard.serves, "killed", 1)
    load = Load(server.url, "killed", clients=8)

    async def kill_it_three_times() -> None:
        for _ in range(3):
            before = len(load.answers)
            child = await asyncio.to_thread(until, lambda: server.child_of("killed"))
            child.kill()
            async with asyncio.timeout(200):
                while len(load.answers) < before + 200:
                    await asyncio.sleep(0.02)

    await load.during(kill_it_three_times)
    assert load.wrong == []
    assert len(load.answers) > 600
    dashboard.publish(Release(model="killed", generation=2, production=None, versions=(), issued_at="x"))
    await asyncio.to_thread(dashboard.serves, "killed", 2)


@pytest.mark.chaos
def test_a_killed_router_leaves_no_child_and_starts_again_without_the_dashboard(
    tmp_path: Path, model_files: dict[str, bytes]
) -> None:
    dashboard = FakeDashboard()
    version = dashboard.add(3, model_files["telling-1"])
    with running(tmp_path, dashboard) as first:
        dashboard.publish(Release(model="m", generation=7, production=3, versions=(version,), issued_at="x"))
        dashboard.serves("m", 7)
        children = first.children()
        assert children
        dashboard.close()
        first.kill()
        _, alive = psutil.wait_procs(children, timeout=30)
        assert alive == []
    with running(tmp_path, dashboard) as again, httpx.Client(base_url=again.url) as client:
        until(lambda: client.get("/v2/health/ready").status_code == 200)
        answer = client.post("/v1/models/m:predict", content=b'{"instances": [[1, 1, 1, 1]]}')
        assert answer.json() == {"predictions": [[4.0, 1.0]]}
        assert answer.headers["x-trainyard-model-version"] == "3"


def test_an_ended_router_ends_its_children(dashboard: FakeDashboard, tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, dashboard)
    children = until(server.children)
    server.stop()
    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []
