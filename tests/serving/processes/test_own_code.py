"""Versions that need user code: each child in a sandbox, and no effect on other models."""

import os
import re
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobs.messages.environments import InstalledPackage
from jobs.messages.release import Release, ReleasedCode
from tests.environments.packages import wheel
from tests.present import present
from tests.serving.fakes import HTTP, FakeDashboard, ServerProcess, running, until
from tests.serving.own_code import HARMLESS, served, version_with
from workers.confinement.environments.environments import Environments
from workers.confinement.environments.failures import BuildFailed
from workers.confinement.environments.request import NeededPackages
from workers.serving.versions.code_packages import PackagesMissing, install

ROW = b'{"instances": [[1, 1, 1, 1]]}'


def predictions(url: str, model: str, body: bytes = ROW) -> Any:
    answer = HTTP.post(f"{url}/v1/models/{model}:predict", content=body)
    return answer.json().get("predictions", answer.json().get("error"))


def process_of(
    dashboard: FakeDashboard, model: str, version: int, *, fact: str = "memory_bytes"
) -> dict[str, Any]:
    """Return a version's process in the newest report, once that has a fact about it."""

    def find_process() -> dict[str, Any] | None:
        processes = dashboard.last_report(model).get("processes", ())
        return next(
            (process for process in processes if process["version"] == version and process[fact]), None
        )

    return until(find_process)


def ended(dashboard: FakeDashboard, model: str, generation: int) -> None:
    """Take a model down."""
    dashboard.publish(
        Release(model=model, generation=generation, production=None, versions=(), issued_at="x")
    )
    dashboard.serves(model, generation)


def test_a_version_that_needs_code_answers_from_a_sandbox(
    server: ServerProcess, dashboard: FakeDashboard, model_files: dict[str, bytes]
) -> None:
    dashboard.publish(served("own", 1, version_with(dashboard, 1, model_files["own"])))
    dashboard.serves("own", 1)
    assert predictions(server.url, "own") == [[4.0, 7.0]]
    process = process_of(dashboard, "own", 1)
    assert process["sandbox"] in {"bubblewrap", "landlock"}
    assert process["memory_bytes"] > 20 * 2**20
    assert process_of(dashboard, "telling", 2)["sandbox"] is None
    outer = psutil.Process(process["pid"])
    inside = outer.children(recursive=True)
    # A fork has the command line of its fork server.
    assert any("--fork-server" in inner.cmdline() for inner in inside)
    # Which has imported KerasTuner, and so scikit-learn, for this model and later ones.
    forks = server.fork_server()
    assert forks is not None
    assert any("/sklearn/" in part.path for part in forks.memory_maps())
    threads = {path.read_text().strip() for path in Path(f"/proc/{forks.pid}/task").glob("*/comm")}
    assert threads == {"ty-modelforks"}  # a fork would lack a thread of pyarrow
    ended(dashboard, "own", 2)
    _, alive = psutil.wait_procs([outer, *inside], timeout=30)
    assert alive == []


def test_the_code_decides_together_with_the_file_what_is_loaded(
    server: ServerProcess, dashboard: FakeDashboard, model_files: dict[str, bytes]
) -> None:
    first = version_with(dashboard, 1, model_files["own"])
    changed = version_with(dashboard, 1, model_files["own"], HARMLESS.replace("7", "8"))
    assert first.digest == changed.digest
    assert first.identity != changed.identity
    dashboard.publish(served("changed", 1, first))
    dashboard.serves("changed", 1)
    assert predictions(server.url, "changed") == [[4.0, 7.0]]
    dashboard.publish(served("changed", 2, changed))
    dashboard.serves("changed", 2)
    assert predictions(server.url, "changed") == [[4.0, 8.0]]
    ended(dashboard, "changed", 3)


def test_a_machine_without_a_strong_level_says_so_and_serves_the_others(
    dashboard: FakeDashboard, model_files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server of this test runs as root without users for runs, so it offers no level at all.
    if os.geteuid() != 0:
        pytest.skip("needs root")
    monkeypatch.setenv("TRAINYARD_RUNNER_UIDS", "off")
    strict_dashboard = FakeDashboard()
    with running(tmp_path, strict_dashboard) as server:
        strict_dashboard.publish(served("refused", 1, version_with(strict_dashboard, 1, model_files["own"])))
        strict_dashboard.publish(served("other", 1, strict_dashboard.add(1, model_files["telling-1"])))
        strict_dashboard.serves("other", 1)
        error = until(lambda: strict_dashboard.last_report("refused").get("error"))
        assert "TRAINYARD_RUNNER_UIDS is off" in error
        assert strict_dashboard.last_report("refused")["versions"] == {"1": "END"}
        assert predictions(server.url, "other") == [[4.0, 1.0]]
    strict_dashboard.close()


@pytest.mark.parametrize(
    ("helpers", "message"),
    [
        ("import no_such_package", "No module named .no_such_package.*helpers.py, line 1"),
        ("def answer(x, total):\n    raise OSError('broken')", "broken.*helpers.py, line 2"),
        ("import os\nos._exit(3)", "ended with status 3"),
        ("import sys\nsys.exit(0)", "sys.exit|SystemExit|ended with status"),
    ],
)
def test_code_that_fails_is_the_error_of_its_version(
    server: ServerProcess,
    dashboard: FakeDashboard,
    model_files: dict[str, bytes],
    helpers: str,
    message: str,
) -> None:
    name = f"fails-{abs(hash(helpers))}"
    dashboard.publish(served(name, 1, version_with(dashboard, 1, model_files["own"], helpers)))
    assert re.search(message, present(until(lambda: dashboard.last_report(name).get("error"))))
    assert predictions(server.url, "telling") == [[8.0, 2.0]]
    ended(dashboard, name, 2)


def test_a_killed_sandbox_costs_its_model_no_answer(
    server: ServerProcess, dashboard: FakeDashboard, model_files: dict[str, bytes]
) -> None:
    dashboard.publish(served("killed-own", 1, version_with(dashboard, 1, model_files["own"])))
    dashboard.serves("killed-own", 1)
    outer = present(until(lambda: server.child_of("killed-own")))
    inside = outer.children(recursive=True)
    outer.kill()
    # The request waits for the next child.
    assert predictions(server.url, "killed-own") == [[4.0, 7.0]]
    _, alive = psutil.wait_procs([outer, *inside], timeout=30)
    assert alive == []
    assert until(lambda: server.child_of("killed-own")) != outer
    ended(dashboard, "killed-own", 2)


def test_the_packages_of_the_code_are_installed_for_its_child(
    server: ServerProcess, dashboard: FakeDashboard, model_files: dict[str, bytes], wheels: Path
) -> None:
    wheel(wheels, "tytwelve", code="TWELVE = 12.0\n")
    helpers = "from tytwelve import TWELVE\n" + HARMLESS.replace("7", "TWELVE")
    version = version_with(dashboard, 1, model_files["own"], helpers, requirements=("tytwelve==1.0",))
    missing = version_with(dashboard, 2, model_files["own"], helpers, requirements=("tythirteen==1.0",))
    dashboard.publish(served("missing", 1, missing))
    dashboard.publish(served("packed", 1, version))
    dashboard.serves("packed", 1)
    assert predictions(server.url, "packed") == [[4.0, 12.0]]
    error = until(lambda: dashboard.last_report("missing").get("error"))
    assert "its packages cannot be installed" in error
    assert "tythirteen" in error
    ended(dashboard, "packed", 2)
    ended(dashboard, "missing", 2)


def test_a_server_asks_for_exactly_the_released_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[NeededPackages] = []

    def ensure(_: Environments, wanted: NeededPackages, find_builder: object, **others: object) -> None:
        asked.append(wanted)
        raise BuildFailed("einops 0.8.1 has other files than before.", code="packages_changed")

    monkeypatch.setattr(Environments, "ensure", ensure)
    packages = (InstalledPackage(name="einops", version="0.8.1", digest="e" * 64),)
    code = ReleasedCode(
        digest="c" * 64, files=(), requirements=("einops",), packages=packages, minimum="landlock"
    )
    with pytest.raises(PackagesMissing, match=r"its packages cannot be installed: einops 0\.8\.1 has other"):
        install("digits v1", code, tmp_path, (), nullcontext, threading.Event())
    assert asked == [NeededPackages(("einops",), for_engine=True, packages=packages)]
