"""Runs external searches: a chief, and a plain KerasTuner script."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.flow.rows import read
from tests.flow.yard import PROJECT
from tests.ops.conftest import PATIENCE, ROOT, Yard, wait_for

SCRIPT = ROOT / "tests" / "chief" / "script.py"
ENDED, INTERRUPTED = "scripts", "interrupted scripts"


class Chief:
    """One search's chief, and the scripts that it leads."""

    def __init__(self, yard: Yard, folder: Path, name: str, *options: str) -> None:
        self.folder = folder / name
        self.folder.mkdir()
        self._output = self.folder / "chief.out"
        command = [sys.executable, "manage.py", "chief", "--project", PROJECT, "--name", name, "--by", "ada"]
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [*command, "--grace", "1", *options],
                cwd=ROOT,
                env=yard.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def output(self) -> str:
        """Return its output, once it serves."""

        def serves() -> str:
            text = self._output.read_text()
            assert self.process.poll() is None, f"the chief has ended: {text}"
            return text if "ORACLE_PORT" in text else ""

        return wait_for(serves, "a chief")

    def start_script(self) -> subprocess.Popen[bytes]:
        """Start a script that asks this chief for trials."""
        exports = [line.removeprefix("export ") for line in self.output().splitlines() if "export" in line]
        variables = dict(line.split("=") for line in exports)
        environment = {**os.environ, **variables, "KERASTUNER_TUNER_ID": "a", "KERAS_BACKEND": "jax"}
        command = [sys.executable, str(SCRIPT), str(self.folder)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)

    def begun(self) -> list[Path]:
        """Return a file for each trial that the script has begun."""
        return list(self.folder.glob("a-has-*"))


def free_port() -> str:
    """Return a free port: the chief's earlier port may be in use by now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


def run_to_the_end(yard: Yard, folder: Path) -> None:
    """Let a script run all trials in a search."""
    chief = Chief(yard, folder, ENDED, "--max-trials", "4")
    assert chief.start_script().wait(PATIENCE) == 0
    assert chief.process.wait(PATIENCE) == 0


def interrupt(yard: Yard, folder: Path) -> None:
    """Kill a chief and its script while one of the later trials runs."""
    chief = Chief(yard, folder, INTERRUPTED, "--max-trials", "12")
    hold = chief.folder / "hold-a"
    hold.touch()
    script = chief.start_script()
    wait_for(chief.begun, "the script's first trial")
    hold.unlink()
    wait_for(lambda: len(chief.begun()) > 1, "the script's second trial")
    hold.touch()
    query = """SELECT 1 FROM jobs_trial JOIN jobs_job ON jobs_job.id = job_id
        WHERE title = ? AND jobs_trial.state = 'running'"""
    wait_for(lambda: read(yard.home, query, INTERRUPTED), "a trial that is held", seconds=20)
    script.kill()
    chief.process.kill()
