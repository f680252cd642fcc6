"""Runs a peer's search in its own process, with the fastest thread setting on this machine."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]


class Found(NamedTuple):
    """Duration and result of one search."""

    seconds: float
    score: float
    trainings: int
    epochs: int
    distinct: int


class Setting(NamedTuple):
    """Number of threads and cores that a script is started with."""

    name: str
    environment: dict[str, str] = {}
    before: tuple[str, ...] = ()


ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "NPROC": "1",  # the size of XLA's pool of threads
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
DEFAULT = Setting("default")
SETTINGS = (
    DEFAULT,
    Setting("one thread", ONE_THREAD),
    Setting("one core", before=("taskset", "-c", str(min(os.sched_getaffinity(0))))),
)
AT_ONCE = (
    DEFAULT,
    Setting("one thread per trial", ONE_THREAD),
    Setting("one trial at once", {"TRIALS_AT_ONCE": "1"}),
)


class Peer:
    """A library's script that runs searches.

    Args:
        name: of the library; the script is `NAME_search`.
        folder: for its files.
        packages: a folder to import the library from, if it is not installed.
    """

    def __init__(self, name: str, folder: Path, packages: Path | None = None) -> None:
        self.name = name
        self._folder = folder
        self._path = [str(packages.resolve())] if packages else []
        self._settings = AT_ONCE if name == "ray_tune" else SETTINGS
        self.setting = DEFAULT

    def choose(self, rows: Path, search: dict[str, Any], seed: int) -> None:
        """Run one search with every setting and use the fastest from then on."""
        plan = self._folder / "choosing.json"
        plan.write_text(json.dumps(search))
        seconds = {}
        for setting in self._settings:
            seconds[setting.name] = self._search(setting, rows, plan, seed).seconds
        self.setting = min(self._settings, key=lambda setting: seconds[setting.name])
        times = ", ".join(f"{name} {took:.1f} s" for name, took in seconds.items())
        print(f"{self.name}, {search['max_trials']} trials: {times}; uses {self.setting.name}", flush=True)

    def search(self, rows: Path, plan: Path, seed: int) -> Found:
        """Run one search with the chosen setting."""
        return self._search(self.setting, rows, plan, seed)

    def _search(self, setting: Setting, rows: Path, plan: Path, seed: int) -> Found:
        folder = self._folder / self.name
        shutil.rmtree(folder, ignore_errors=True)
        script = [sys.executable, "-m", f"benchmarks.peers.{self.name}_search"]
        path = [*self._path, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {"KERAS_BACKEND": "jax", "PYTHONPATH": os.pathsep.join(path), **setting.environment}
        began = time.perf_counter()
        done = subprocess.run(
            [*setting.before, *script, str(rows), str(plan), str(seed), str(folder)],
            cwd=ROOT,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - began
        if done.returncode:
            raise SystemExit(f"{self.name} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return Found(seconds, **json.loads(done.stdout.splitlines()[-1]))
