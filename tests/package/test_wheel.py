"""An installed wheel: away from the source tree, in an empty folder, it runs the main path."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from jobs import program
from tests.ops.conftest import PATIENCE, ROOT, wait_for

pytestmark = [pytest.mark.flow, pytest.mark.timeout(1200)]

SECONDS = 900
FOLDERS = ("jobs", "transport", "webapp", "workers", "templates", "docs")
INSIDE = ("templates", "docs")
"""These folders are inside of `webapp` in a wheel."""
LEFT_OUT = ("__pycache__", "screenshots", "openapi.json")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This source tree's wheel; no network is used."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = folder.glob("trainyard-*.whl")
    return file


@pytest.fixture(scope="module")
def trainyard(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command in an environment that has the wheel, and sees this one's dependencies."""
    folder = tmp_path_factory.mktemp("installed") / "environment"
    venv.create(folder, symlinks=True)
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    # A prefix, so that isolated processes and sandboxes see the dependencies too.
    line = f"import site; site.PREFIXES.append({sys.prefix!r})"
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n{line}\n")
    python = str(folder / "bin" / "python")
    command = [python, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", str(wheel)]
    done = subprocess.run(command, cwd=folder, env=clean_environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bin" / "trainyard"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder, in which all commands run."""
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(scope="module")
def urls(trainyard: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """The addresses that `trainyard up` prints, with its output so far."""
    output, file = folder / "up.txt", folder / ".trainyard" / "run" / "urls.json"
    command = [str(trainyard), "up", "--port", "0", "--serving-port", "0", "--slots", "1"]
    with output.open("wb") as stream:
        process = subprocess.Popen(
            command, cwd=folder, env=clean_environment(), stdout=stream, stderr=subprocess.STDOUT
        )
    try:

        def published() -> dict[str, Any] | None:
            assert process.poll() is None, output.read_text()
            return json.loads(file.read_text()) if file.exists() else None

        yield wait_for(published, "all parts to start") | {"output": output}
    finally:
        process.send_signal(signal.SIGINT)
        status = process.wait(PATIENCE)
    assert status == 0, output.read_text()


def clean_environment() -> dict[str, str]:
    """Return an environment that names neither the source tree nor an installation."""
    inherited = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")
    environment = {name: os.environ[name] for name in inherited if name in os.environ}
    return environment | {"TRAINYARD_BROKER": "embedded", "TRAINYARD_STANDBY": "0"}


def run(trainyard: Path, folder: Path, *arguments: str, seconds: float = PATIENCE) -> str:
    done = subprocess.run(
        [str(trainyard), *arguments],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_has_every_file_of_the_program(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = [file for name in FOLDERS for file in (ROOT / name).rglob("*") if file.is_file()]
    places = [file.relative_to(ROOT) for file in sources]
    files = [place for place in places if not set(LEFT_OUT) & set(place.parts)]
    missing = [
        str(place)
        for place in files
        if str(Path("webapp" if place.parts[0] in INSIDE else "", place)) not in names
    ]
    assert not missing
    assert not [name for name in names if "tests/" in name or "__pycache__" in name]


def test_its_commands_and_version_are_those_of_the_program(trainyard: Path, folder: Path) -> None:
    assert run(trainyard, folder, "version") == f"{program.program_version()}\n"
    assert not (folder / ".trainyard").exists()
    assert run(trainyard, folder, "up", "--help").startswith("usage: trainyard up ")


def test_pages_help_and_static_files_are_found(trainyard: Path, folder: Path, urls: dict[str, Any]) -> None:
    with httpx.Client(base_url=urls["web"], follow_redirects=True, timeout=30) as browser:
        login = browser.get("/")
        assert login.status_code == 200
        assert "trainyard adduser NAME --reset" in login.text
        for address in re.findall(r'(?:src|href)="(/static/[^"]+)"', login.text):
            assert browser.get(address).status_code == 200, address
        document = browser.get("/api/v1/openapi.json").json()
        assert document["info"]["version"] == program.program_version()
        link = run(trainyard, folder, "adduser", "ada", "--admin").strip()
        entered = browser.get(link)
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', entered.text)
        assert token, entered.text
        assert browser.post(entered.url, data={"csrfmiddlewaretoken": token[1]}).status_code == 200
        help_page = browser.get("/docs/guide/1-first-search")
        assert help_page.status_code == 200
        assert f'<footer class="ty-foot">Trainyard {program.program_version()}</footer>' in help_page.text


def test_the_main_path_runs_to_its_end(trainyard: Path, tmp_path: Path) -> None:
    output = run(trainyard, tmp_path, "demo", "--exit", seconds=SECONDS)
    assert "All steps succeeded:" in output
    assert (tmp_path / ".trainyard" / "trainyard.sqlite3").exists()
