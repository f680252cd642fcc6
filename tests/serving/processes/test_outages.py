"""Outages of the dashboard: known callers are answered, also after a restart, and others get 503 at once."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jobs.messages.release import Release
from tests.serving.fakes import FakeDashboard, ServerProcess, running, until
from workers.serving.known_callers import KnownCallers

KNOWN, NEW, LATER = "ty_known", "ty_new", "ty_later"
BODY = b'{"instances": [[1, 1, 1, 1]]}'
NEEDS_TOKENS = ("--host", "0.0.0.0")


@pytest.fixture
def own_dashboard(model_files: dict[str, bytes]) -> Iterator[FakeDashboard]:
    dashboard = FakeDashboard()
    version = dashboard.add(3, model_files["telling-1"])
    dashboard.tokens |= {token: ["predict"] for token in (KNOWN, NEW, LATER)}
    dashboard.publish(Release(model="m", generation=7, production=3, versions=(version,), issued_at="x"))
    yield dashboard
    dashboard.outage = ""
    dashboard.close()


def ask(server: ServerProcess, token: str) -> tuple[int, float]:
    """Return the status of the answer, and the seconds that it took."""
    began = time.monotonic()
    answer = httpx2.post(
        f"{server.url}/v1/models/m:predict",
        content=BODY,
        headers={"authorization": f"Bearer {token}"},
        timeout=60,
        trust_env=False,
    )
    return answer.status_code, time.monotonic() - began


def answers_of(home: Path) -> KnownCallers:
    return KnownCallers(home / "home" / "callers", 3600)


def ready(server: ServerProcess) -> Any:
    return httpx2.get(f"{server.url}/v2/health/ready", timeout=10, trust_env=False)


def begin(outage: str, dashboard: FakeDashboard) -> None:
    if outage == "refusal":
        dashboard.close()
    else:
        dashboard.outage = "silent" if outage == "silence" else "slow"


@pytest.mark.chaos
@pytest.mark.parametrize("outage", ["refusal", "silence", "slowness"])
def test_known_callers_are_answered_in_an_outage_and_after_a_restart_in_it(
    own_dashboard: FakeDashboard, tmp_path: Path, outage: str
) -> None:
    with running(tmp_path, own_dashboard, *NEEDS_TOKENS) as server:
        own_dashboard.serves("m", 7)
        until(lambda: ask(server, KNOWN)[0] == 200)
        until(lambda: not answers_of(tmp_path).is_empty)
        begin(outage, own_dashboard)
        server.kill()
    with running(tmp_path, own_dashboard, *NEEDS_TOKENS) as again:
        until(lambda: ready(again).status_code == 200)
        until(lambda: ask(again, NEW)[0] == 503)
        for _ in range(50):
            status, seconds = ask(again, KNOWN)
            assert (status, seconds < 1) == (200, True)
        status, seconds = ask(again, LATER)
        assert (status, seconds < 1) == (503, True)
        if outage == "refusal":
            return
        own_dashboard.outage = ""
        until(lambda: ask(again, NEW)[0] == 200, 60)
        del own_dashboard.tokens[KNOWN]
        revoked = time.monotonic()
        until(lambda: ask(again, KNOWN)[0] == 401, 30)
        assert time.monotonic() - revoked < 10


@pytest.mark.chaos
def test_a_killed_server_leaves_a_whole_file_of_callers(own_dashboard: FakeDashboard, tmp_path: Path) -> None:
    """It is killed at other moments of its saves: each time, the file has an old or a new content."""
    for number in range(4):
        with running(tmp_path, own_dashboard, *NEEDS_TOKENS) as server:
            own_dashboard.tokens[f"ty_{number}"] = ["predict"]
            until(lambda: ready(server).status_code == 200)
            assert ask(server, f"ty_{number}")[0] == 200
            time.sleep(1.3 * number)
            server.kill()
        known = answers_of(tmp_path)
        file = tmp_path / "home" / "callers"
        assert not (file.exists() and known.is_empty)
    own_dashboard.close()
    with running(tmp_path, own_dashboard, *NEEDS_TOKENS) as again:
        until(lambda: ready(again).status_code == 200)
        assert ask(again, "ty_3")[0] == 200


@pytest.mark.chaos
def test_two_servers_of_one_home_report_under_two_names(own_dashboard: FakeDashboard, tmp_path: Path) -> None:
    with running(tmp_path, own_dashboard):
        second = ServerProcess(tmp_path, own_dashboard, instance=2)
        reports = until(lambda: _by_instance(own_dashboard, 1, 2))
        assert reports[1]["replica"] != reports[2]["replica"]
        assert (tmp_path / "home-2" / "state.json").exists()
        second.stop()
        assert _by_instance(own_dashboard, 2)[2]["stops"]
        assert not _by_instance(own_dashboard, 1)[1]["stops"]


def _by_instance(dashboard: FakeDashboard, *instances: int) -> dict[int, dict[str, Any]]:
    """Return the last report of each of these servers; nothing while one has sent none."""
    last = {report["instance"]: report for report in dashboard.reports}
    return last if set(instances) <= set(last) else {}
