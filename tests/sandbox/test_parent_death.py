"""How a process ends when its parent dies."""

import subprocess
import sys
import time

from workers.confinement.sandbox.view import CODE_ROOT

VARIABLES = {"PYTHONPATH": str(CODE_ROOT)}
CHILD = """
import os, time
from workers.system.parent_death import die_with_parent
die_with_parent(os.getppid())
print("begins", flush=True)
time.sleep(60)
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
ORPHAN = "from workers.system.parent_death import die_with_parent; die_with_parent(1 << 22)"


def test_a_process_is_killed_when_its_parent_dies() -> None:
    command = [sys.executable, "-c", PARENT, CHILD]
    parent = subprocess.Popen(command, env=VARIABLES, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout as output:
        assert output.readline() == "begins\n"
        parent.kill()
        parent.wait()
        killed = time.monotonic()
        # The child has a copy of the pipe, so the end of the pipe is that of the child.
        assert output.read() == ""
    assert time.monotonic() - killed < 30


def test_a_process_whose_parent_died_before_ends() -> None:
    command = [sys.executable, "-c", ORPHAN]
    ended = subprocess.run(command, env=VARIABLES, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "the process that started this one (pid 4194304) has ended" in ended.stderr
