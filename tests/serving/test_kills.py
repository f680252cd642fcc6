"""SIGKILL of a child and of the router: no wrong answer is given, and no process is left behind."""

import asyncio
import time
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
def test_a_stopped_child_is_not_ready_and_is_replaced(
    server: ServerProcess, dashboard: FakeDashboard, telling: dict[int, ReleasedVersion]
) -> None:
    dashboard.publish(release(telling, "stopped", 1, 1))
    dashboard.serves("stopped", 1)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        child = until(lambda: server.child_of("stopped"))
        until(lambda: client.get("/v2/health/ready").status_code == 200)
        child.suspend()
        until(lambda: client.get("/v2/health/ready").status_code == 503)
        assert client.get("/v2/models/stopped/ready").status_code == 503
        (status,) = client.get("/v1/models/stopped").json()["model_version_status"]
        assert status["state"] == "LOADING"
        # A request that is sent meanwhile waits for the next process.
        answer = client.post("/v1/models/stopped:predict", content=b'{"instances": [[1, 1, 1, 1]]}')
        assert answer.json() == {"predictions": [[4.0, 1.0]]}
        until(lambda: client.get("/v2/health/ready").status_code == 200)
    assert not child.is_running()
    dashboard.publish(Release(model="stopped", generation=2, production=None, versions=(), issued_at="x"))
    dashboard.serves("stopped", 2)


@pytest.mark.chaos
def test_a_child_that_stops_for_a_moment_is_kept(
    server: ServerProcess, dashboard: FakeDashboard, telling: dict[int, ReleasedVersion]
) -> None:
    dashboard.publish(release(telling, "paused", 1, 1))
    dashboard.serves("paused", 1)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        child = until(lambda: server.child_of("paused"))
        child.suspend()
        until(lambda: client.get("/v2/models/paused/ready").status_code == 503)
        child.resume()
        until(lambda: client.get("/v2/models/paused/ready").status_code == 200)
        assert server.child_of("paused") == child
    dashboard.publish(Release(model="paused", generation=2, production=None, versions=(), issued_at="x"))
    dashboard.serves("paused", 2)


def is_idle(process: psutil.Process) -> bool:
    """Return whether the process uses no CPU time for a moment."""
    before = process.cpu_times().user
    time.sleep(1)
    return 0 < before == process.cpu_times().user


@pytest.mark.chaos
def test_a_stopped_spare_child_delays_no_load(
    server: ServerProcess, dashboard: FakeDashboard, telling: dict[int, ReleasedVersion]
) -> None:
    def spares() -> list[psutil.Process]:
        text = httpx.get(f"{server.url}/monitoring/prometheus/metrics").text
        serving = {int(line.split()[-1]) for line in text.splitlines() if "child_pid{" in line}
        # The router's other children parse and encode large bodies.
        models = [one for one in server.children() if "workers.serving.child" in one.cmdline()]
        return [one for one in models if one.pid not in serving]

    (spare,) = until(lambda: len(found := spares()) == 1 and found)  # the others end
    until(lambda: is_idle(spare))  # its imports are done
    spare.suspend()
    time.sleep(2.5)  # as long as it takes to notice
    dashboard.publish(release(telling, "spared", 1, 1))
    dashboard.serves("spared", 1)
    assert not spare.is_running()
    dashboard.publish(Release(model="spared", generation=2, production=None, versions=(), issued_at="x"))
    dashboard.serves("spared", 2)


@pytest.mark.chaos
def test_a_killed_router_leaves_no_child_and_starts_again_without_the_dashboard(
    tmp_path: Path, model_files: dict[str, bytes]
) -> None:
    dashboard = FakeDashboard()
    version = dashboard.add(3, model_files["telling-1"])
    with running(tmp_path, dashboard) as first:
        dashboard.publish(Release(model="m", generation=7, production=3, versions=(version,), issued_at="x"))
        dashboard.serves("m", 7)
        for instances in ([[1, 1, 1, 1]], [[1, 1, 1, 1]] * 3, [[1]]):
            httpx.post(f"{first.url}/v1/models/m:predict", json={"instances": instances})
        until(lambda: [*dashboard.requests("m").values()] == [{"ok": 2, "failed": 1, "rows": 4}])
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
        # Counted while the dashboard was down, under a run that is higher than the killed one's.
        later = FakeDashboard(int(dashboard.url.rpartition(":")[2]))
        until(lambda: [*later.requests("m").values()] == [{"ok": 1, "failed": 0, "rows": 1}])
        assert min(later.requests("m")) > max(dashboard.requests("m"))
        later.close()


def test_an_ended_router_ends_its_children(dashboard: FakeDashboard, tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, dashboard)
    children = until(server.children)
    server.stop()
    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []
