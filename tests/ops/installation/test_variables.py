"""A variable that no part reads stops every part at its start, with the name that was probably meant."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ops.conftest import ROOT

PARTS = {
    "up": ["manage.py", "up"],
    "web": ["manage.py", "web", "--port", "0"],
    "scheduler": ["manage.py", "scheduler"],
    "worker": ["manage.py", "worker"],
    "serve": ["manage.py", "serve"],
    "backup": ["manage.py", "backup", "all.tar"],
    "a worker of up": ["-m", "workers.node", "--pool", "default"],
    "a prediction server of up": ["-m", "workers.serving"],
    "a web server of up": ["-m", "webapp.ops.web_server", "--fd", "0"],
    "the chief of a script": ["-m", "workers.chief"],
    "a fetch": ["-m", "jobs.fetching", "1", "1"],
}


@pytest.mark.parametrize("arguments", PARTS.values(), ids=PARTS)
def test_each_part_refuses_a_misspelt_variable_before_it_writes_anything(
    arguments: list[str], tmp_path: Path
) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={
            **inherited,
            "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
            "TRAINYARD_HOME": str(home),
            "TRAINYARD_MAX_UPLOAD_BITES": "12345",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    assert "TRAINYARD_MAX_UPLOAD_BITES is no variable of Trainyard" in done.stderr
    assert "TRAINYARD_MAX_UPLOAD_BYTES" in done.stderr
    assert "configuration.md" in done.stderr
    assert "12345" not in done.stderr
    assert not home.exists()
