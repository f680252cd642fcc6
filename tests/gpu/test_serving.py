"""Serving on a real GPU: versions share its memory, and a full memory is a temporary error."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from jobs.messages.release import Release
from tests.runner.forks import ROOT
from tests.serving.fakes import FakeDashboard, running
from workers.serving.versions.child_process import child_environment

pytestmark = pytest.mark.gpu

# Fills seven eighths of the memory of a version, in several arrays, and keeps it until its input ends.
FILL = """
import sys, jax, jax.numpy as jnp
limit = jax.devices("gpu")[0].memory_stats()["bytes_limit"]
arrays = [jnp.zeros(limit // 8, "uint8").block_until_ready() for _ in range(7)]
print("full", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def model_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("models")
    script = ROOT / "tests" / "serving" / "make_models.py"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, str(script), str(folder)], check=True, env=environment, timeout=120)
    return {path.stem: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def dashboard() -> Iterator[FakeDashboard]:
    fake = FakeDashboard()
    yield fake
    fake.close()


def test_two_versions_that_use_their_whole_part_fit_at_the_same_time() -> None:
    command, environment = [sys.executable, "-c", FILL], child_environment()
    versions = [
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        for version in versions:
            assert version.stdout is not None
            assert version.stdout.readline() == "full\n"
    finally:
        for version in versions:
            version.communicate("")


def test_a_swap_of_two_versions_on_a_gpu_loses_no_request(
    tmp_path: Path, dashboard: FakeDashboard, model_files: dict[str, bytes]
) -> None:
    versions = tuple(dashboard.add(number, model_files[f"telling-{number}"]) for number in (1, 2))
    with running(tmp_path, dashboard) as server:
        for generation, production, standby in ((1, 1, ()), (2, 2, (1,)), (3, 1, (2,))):
            dashboard.publish(
                Release(
                    model="telling",
                    generation=generation,
                    production=production,
                    standby=standby,
                    versions=versions[: 1 + len(standby)],
                    issued_at="x",
                )
            )
            dashboard.serves("telling", generation)
            answer = httpx2.post(
                f"{server.url}/v1/models/telling:predict", json={"instances": [[1, 1, 1, 1]]}, timeout=60
            )
            assert answer.json()["predictions"][0] == [4.0 * production, float(production)]


def test_a_full_gpu_is_answered_with_503_and_when_to_try_again(
    tmp_path: Path, dashboard: FakeDashboard, model_files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINYARD_SERVING_GPU_FRACTION", "0.02")
    version = dashboard.add(1, model_files["attention"])
    with running(tmp_path, dashboard, "--request-seconds", "200") as server:
        dashboard.publish(
            Release(model="attention", generation=1, production=1, versions=(version,), issued_at="x")
        )
        dashboard.serves("attention", 1)
        url = f"{server.url}/v1/models/attention:predict"
        # The scores of attention over 60,000 positions have 29 GB.
        full = httpx2.post(url, json={"instances": [[[0.0] * 4] * 60_000]}, timeout=200)
        assert (full.status_code, full.headers.get("retry-after")) == (503, "1"), full.text
        small = httpx2.post(url, json={"instances": [[[0.0] * 4] * 3]}, timeout=200)
        assert small.status_code == 200, small.text
