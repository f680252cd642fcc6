"""A process's state after its start."""

import subprocess
import sys

from tests.ops.conftest import ROOT


def test_garbage_is_collected_after_a_start_but_not_looked_for_in_what_was_imported() -> None:
    says = "import gc; print(gc.isenabled(), gc.get_freeze_count() > len(gc.get_objects()))"
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", says]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "True True", done.stderr
