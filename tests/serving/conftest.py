"""One dashboard and server with its children for all tests that need real ones: a child starts slowly.

They end with this package. The server polls the dashboard every few seconds, each time in a new thread of the
tests' process, and later tests count threads.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from jobs.messages.release import Release, ReleasedVersion

from .fakes import FakeDashboard, ServerProcess, running

# Keras reads it when a test imports a model's modules.
os.environ.setdefault("KERAS_BACKEND", "jax")

CODE_MEMORY = 2**30
"""Bytes. What uses up less memory ends sooner."""


@pytest.fixture(scope="package")
def model_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("models")
    script = Path(__file__).with_name("make_models.py")
    subprocess.run([sys.executable, str(script), str(folder)], check=True, env=dict(os.environ), timeout=120)
    return {path.stem: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="package")
def dashboard() -> Iterator[FakeDashboard]:
    fake = FakeDashboard()
    yield fake
    fake.close()


@pytest.fixture(scope="package")
def telling(dashboard: FakeDashboard, model_files: dict[str, bytes]) -> dict[int, ReleasedVersion]:
    """The model that answers [v · sum(x), v], versions 1 and 2."""
    return {
        number: dashboard.add(number, model_files[f"telling-{number}"], class_labels=("sum", "version"))
        for number in (1, 2)
    }


@pytest.fixture(scope="package")
def place() -> Iterator[Path]:
    """A folder that any user can enter, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="serving-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="package")
def wheels(place: Path) -> Path:
    """The folder with the packages that the server can install."""
    folder = place / "wheels"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="package")
def server(
    dashboard: FakeDashboard,
    telling: dict[int, ReleasedVersion],
    model_files: dict[str, bytes],
    wheels: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ServerProcess]:
    """Serves `telling` (production 2, standby 1, label old → 1) and `two_sided` (production 1)."""
    dashboard.publish(
        Release(
            model="telling",
            generation=1,
            production=2,
            standby=(1,),
            labels={"old": 1},
            versions=tuple(telling.values()),
            issued_at="2026-01-01T00:00:00Z",
        )
    )
    two_sided = dashboard.add(1, model_files["two_sided"])
    dashboard.publish(
        Release(
            model="two_sided",
            generation=1,
            production=1,
            versions=(two_sided,),
            issued_at="2026-01-01T00:00:00Z",
        )
    )
    variables = {"TRAINYARD_PACKAGE_FOLDER": str(wheels)}
    options = ("--request-seconds", "200", "--code-memory-bytes", str(CODE_MEMORY))
    environments = ("--environments", str(wheels.parent / "environments"))
    with running(
        tmp_path_factory.mktemp("server"), dashboard, *options, *environments, variables=variables
    ) as process:
        dashboard.serves("telling", 1)
        dashboard.serves("two_sided", 1)
        dashboard.is_warm("telling", 1, 2)
        yield process


@pytest.fixture(scope="package")
def client(server: ServerProcess) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=30) as http:
        yield http
