"""A database that a part uses is neither restored nor moved, until the part ends or is killed."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobs import database_use
from tests.ops.conftest import ROOT, wait_for
from tests.ops.database_users import using
from tests.ops.test_backup import Installation, full
from webapp.ops.database import live_parts
from webapp.ops.errors import OpsError
from webapp.settings import databases

__all__ = ["full"]

PARTS = {
    "web": ["-m", "webapp", "web", "--port", "0"],
    "web --migrate": ["-m", "webapp", "web", "--port", "0", "--migrate"],
    "scheduler": ["-m", "webapp", "scheduler"],
    "worker": ["-m", "workers.node", "--pool", "default"],
    "chief": ["-m", "workers.chief", "--project", "a", "--name", "b"],
    "fetch": ["-m", "jobs.fetching", "1", "1"],
}


def variables(home: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
    return {
        **inherited,
        "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
        "TRAINYARD_HOME": str(home),
    }


def refusal(installation: Installation, saved: Path) -> str | None:
    try:
        installation.restore(saved, force=True)
    except OpsError as error:
        return str(error)
    return None


def test_a_web_server_that_was_started_alone_is_named_until_it_is_killed(tmp_path: Path) -> None:
    served = Installation(tmp_path / "home")
    with closing(served.connect()) as connection:
        connection.execute("CREATE TABLE jobs_project (id INTEGER)")
        connection.execute("CREATE TABLE point (value INTEGER)")
    served.secret_key.write_text("secret")
    served.artifacts.mkdir()
    saved = served.back_up(tmp_path / "all.tar")
    Path(served.database["NAME"]).unlink()
    served.secret_key.unlink()
    command = [sys.executable, *PARTS["web --migrate"]]
    with subprocess.Popen(command, cwd=ROOT, env=variables(served.home.root)) as server:
        try:

            def named() -> bool:
                assert server.poll() is None
                file = database_use.lock_file(served.database, served.home.root)
                return file.exists() and "webapp.ops.web_server" in live_parts._holders(file)

            wait_for(named, "the server uses the database")
            before = Path(served.database["NAME"]).stat().st_ino
            message = refusal(served, saved) or ""
            assert f"the process {server.pid} (-m webapp.ops.web_server --fd" in message
            assert "Stop all parts" in message
            assert Path(served.database["NAME"]).stat().st_ino == before
        finally:
            server.send_signal(signal.SIGKILL)
    assert refusal(served, saved) is None
    assert served.points() == 0


@pytest.mark.parametrize("forks", [False, True])
def test_a_killed_process_leaves_no_lock_also_if_a_fork_of_it_lives_on(
    full: Installation, tmp_path: Path, forks: bool
) -> None:
    saved = full.back_up(tmp_path / "all.tar")
    with using(full.database, tmp_path / "another home", forks=forks) as part:
        assert f"the process {part.pid} (-c" in (refusal(full, saved) or "")
        part.kill()
        part.wait()
        assert refusal(full, saved) is None


@pytest.mark.parametrize("arguments", PARTS.values(), ids=PARTS)
def test_no_part_starts_on_a_database_that_is_being_replaced(arguments: list[str], tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    database: dict[str, Any] = databases.sqlite(home / "trainyard.sqlite3")
    with live_parts.exclusive(database, home):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=variables(home),
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
    assert "is being restored or moved by another process" in done.stderr
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_the_parts_of_a_home_with_a_database_server_share_a_file_of_the_home(tmp_path: Path) -> None:
    database = {"ENGINE": "django.db.backends.postgresql", "NAME": "yard"}
    with using(database, tmp_path) as part, pytest.raises(OpsError, match=f"the process {part.pid} "):
        live_parts.exclusive(database, tmp_path).__enter__()
    with live_parts.exclusive(database, tmp_path):
        pass
