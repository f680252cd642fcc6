"""Runs a peer's search in a process of its own, with the threads that suit it best on this machine."""

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
    """What one search took and found."""

    seconds: float
    score: float
    trainings: int
    epochs: int
    distinct: int


class Setting(NamedTuple):
    """How a script is started: with how many threads, on which cores."""

    name: str
    environment: dict[str, str] = {}
    before: tuple[str, ...] = ()


ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "NPROC": "1",  # the size of XLA's pool of threads
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
AS_IT_COMES = Setting("as it comes")
SETTINGS = (
    AS_IT_COMES,
    Setting("one thread", ONE_THREAD),
    Setting("one core", before=("taskset", "-c", str(min(os.sched_getaffinity(0))))),
)
AT_ONCE = (
    AS_IT_COMES,
    Setting("one thread a trial", ONE_THREAD),
    Setting("one trial at once", {"TRIALS_AT_ONCE": "1"}),
)


class Peer:
    """A script that searches.

    Args:
        name: of the library; the script is `NAME_search`.
        folder: where it may write.
        packages: a folder to import the library from, if it is not installed.
    """

    def __init__(self, name: str, folder: Path, packages: Path | None = None) -> None:
        self.name = name
        self._folder = folder
        self._path = [str(packages.resolve())] if packages else []
        self._settings = AT_ONCE if name == "ray_tune" else SETTINGS
        self.setting = AS_IT_COMES

    def choose(self, rows: Path, search: dict[str, Any], seed: int) -> None:
        """Search once under every setting and keep the quickest for all that follows."""
        plan = self._folder / "choosing.json"
        plan.write_text(json.dumps(search))
        seconds = {}
        for setting in self._settings:
            seconds[setting.name] = self._search(setting, rows, plan, seed).seconds
        self.setting = min(self._settings, key=lambda setting: seconds[setting.name])
        said = ", ".join(f"{name} {took:.1f} s" for name, took in seconds.items())
        print(f"{self.name}, {search['max_trials']} trials: {said}; runs {self.setting.name}", flush=True)

    def search(self, rows: Path, plan: Path, seed: int) -> Found:
        """Search once."""
        return self._search(self.setting, rows, plan, seed)

    def _search(self, setting: Setting, rows: Path, plan: Path, seed: int) -> Found:
        own = self._folder / self.name
        shutil.rmtree(own, ignore_errors=True)
        script = [sys.executable, "-m", f"benchmarks.peers.{self.name}_search"]
        path = [*self._path, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {"KERAS_BACKEND": "jax", "PYTHONPATH": os.pathsep.join(path), **setting.environment}
        began = time.perf_counter()
        done = subprocess.run(
            [*setting.before, *script, str(rows), str(plan), str(seed), str(own)],
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
