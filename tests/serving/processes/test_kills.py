"""SIGKILL of a child and of the router: no wrong answer is given, and no process is left behind."""

import asyncio
from pathlib import Path

import httpx2
import psutil
import pytest

from jobs.messages.release import Release, ReleasedVersion
from tests.present import present
from tests.serving.fakes import HTTP, FakeDashboard, ServerProcess, running, until
from tests.serving.load import Load
from tests.serving.own_code import served, version_with
from tests.serving.processes.test_swaps import release


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
            child = present(await asyncio.to_thread(until, lambda: server.child_of("killed")))
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
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        child = present(until(lambda: server.child_of("stopped")))
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
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        child = present(until(lambda: server.child_of("paused")))
        child.suspend()
        until(lambda: client.get("/v2/models/paused/ready").status_code == 503)
        child.resume()
        until(lambda: client.get("/v2/models/paused/ready").status_code == 200)
        assert server.child_of("paused") == child
    dashboard.publish(Release(model="paused", generation=2, production=None, versions=(), issued_at="x"))
    dashboard.serves("paused", 2)


def test_children_survive_their_fork_server_and_the_next_start_makes_another(
    server: ServerProcess,
    dashboard: FakeDashboard,
    telling: dict[int, ReleasedVersion],
    model_files: dict[str, bytes],
) -> None:
    dashboard.publish(served("sandboxed", 1, version_with(dashboard, 1, model_files["own"])))
    dashboard.serves("sandboxed", 1)
    first, child = present(until(server.fork_server)), until(lambda: server.child_of("telling", 2))
    sandbox = until(lambda: server.child_of("sandboxed"))
    first.kill()
    until(lambda: not present(first).is_running() or present(first).status() == psutil.STATUS_ZOMBIE)
    dashboard.publish(release(telling, "forked", 1, 1))
    dashboard.serves("forked", 1)
    second = present(until(server.fork_server))
    assert second != first
    # The new child has the fork server's command line: it is a fork, and no new interpreter.
    assert present(until(lambda: server.child_of("forked"))).cmdline() == second.cmdline()
    assert server.child_of("telling", 2) == child
    assert server.child_of("sandboxed") == sandbox
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        answer = client.post("/v1/models/telling:predict", content=b'{"instances": [[1, 1, 1, 1]]}')
        assert answer.json() == {"predictions": [[8.0, 2.0]]}
        answer = client.post("/v1/models/sandboxed:predict", content=b'{"instances": [[1, 1, 1, 1]]}')
        assert answer.json() == {"predictions": [[4.0, 7.0]]}
    dashboard.publish(served("sandboxed", 2))
    dashboard.publish(Release(model="forked", generation=2, production=None, versions=(), issued_at="x"))
    dashboard.serves("forked", 2)


@pytest.mark.chaos
def test_a_stopped_fork_server_is_replaced(
    server: ServerProcess, dashboard: FakeDashboard, telling: dict[int, ReleasedVersion]
) -> None:
    stopped = present(until(server.fork_server))
    stopped.suspend()
    dashboard.publish(release(telling, "unforked", 1, 1))
    dashboard.serves("unforked", 1)
    assert "--fork-server" not in present(until(lambda: server.child_of("unforked"))).cmdline()
    until(lambda: not present(stopped).is_running() or present(stopped).status() == psutil.STATUS_ZOMBIE)
    dashboard.publish(Release(model="unforked", generation=2, production=None, versions=(), issued_at="x"))
    dashboard.serves("unforked", 2)


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
            HTTP.post(f"{first.url}/v1/models/m:predict", json={"instances": instances})
        until(lambda: [*dashboard.requests("m").values()] == [{"ok": 2, "failed": 1, "rows": 4}])
        children = first.children()
        assert {"ty-model", "ty-modelforks"} <= {child.name() for child in children}
        dashboard.close()
        first.kill()
        _, alive = psutil.wait_procs(children, timeout=30)
        assert alive == []
    with running(tmp_path, dashboard) as again, httpx2.Client(base_url=again.url) as client:
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
