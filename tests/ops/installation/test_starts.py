"""A process's state after its start."""

import os
import subprocess
import sys
from pathlib import Path

from tests.ops.conftest import ROOT


def test_garbage_is_collected_after_a_start_but_not_looked_for_in_what_was_imported(tmp_path: Path) -> None:
    says = "import gc; print(gc.isenabled(), gc.get_freeze_count() > len(gc.get_objects()))"
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", says]
    # The program begins with an installation's database, which is not read here.
    (tmp_path / "trainyard.sqlite3").touch()
    variables = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
    variables |= {"TRAINYARD_HOME": str(tmp_path), "DJANGO_SETTINGS_MODULE": "webapp.settings.main"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert done.stdout.strip() == "True True", done.stderr
