"""Servers that build static files at the same time, and one that is killed meanwhile."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.ops.conftest import ROOT, wait_for

START = """
import django
django.setup()
from django.conf import settings
from webapp.ops import static_files
static_files.use()
print(settings.STATIC_ROOT)
"""


def start(home: Path) -> "subprocess.Popen[str]":
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
    environment = {
        **inherited,
        "TRAINYARD_HOME": str(home),
        "TRAINYARD_PUBLIC_URL": "https://yard.example",
        "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
    }
    return subprocess.Popen(
        [sys.executable, "-c", START], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )


def folder_of(server: "subprocess.Popen[str]") -> Path:
    printed, _ = server.communicate(timeout=240)
    assert server.returncode == 0
    return Path(printed.strip())


def content(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    # The compressed files have the time of the compression in them.
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.suffix not in (".gz", ".br")
    }


def test_a_killed_build_leaves_nothing_and_two_at_once_build_one_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    killed = start(home)
    unfinished = home / "static" / ".building"
    wait_for(lambda: len(list(unfinished.rglob("*.js"))) > 20, "a half-built folder", interval=0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not [path for path in (home / "static").iterdir() if not path.name.startswith(".")]

    servers = [start(home), start(home)]
    first, second = (folder_of(server) for server in servers)
    assert first == second
    assert not unfinished.exists()
    undisturbed = folder_of(start(tmp_path / "other"))
    assert content(first) == content(undisturbed)
    app = next((first / "js").glob("app.????????????.js")).read_text()
    assert 'import "./theme.js"' not in app
    assert list((first / "css").glob("app.*.css.gz"))
