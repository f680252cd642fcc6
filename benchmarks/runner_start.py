"""Measures the time from starting a runner to its first loss: forked, or as a new interpreter.

Run `python -m benchmarks.runner_start [--pairs 10]`. Both train the same small network for one epoch, with
empty compile caches; pairs alternate, so that load on the machine affects both. The output is medians of the
wall time, of the runner's CPU time and of its private memory, and their ratios. The fork server is warm; the
time to start it is printed first.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from jobs.contracts.control import Start
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.search import Objective
from jobs.contracts.task_parts import DatasetFile
from jobs.kinds.profile.payload import ProfileTask
from jobs.kinds.train.payload import TrainTask
from workers.runner.environment import Environment
from workers.supervise.fork_servers import ForkServers
from workers.supervise.runner_pool import RunnerKey, RunnerPool
from workers.supervise.runner_process import RunnerProcess
from workers.supervise.secret_masking import SecretMasker

SPEC = ExperimentSpec.model_validate(
    {
        "version": 1,
        "data": {"dataset": "digits"},
        "model": {"kind": "template", "template": "mlp", "args": {"units": 32}},
        "fit": {"epochs": 1, "batch_size": 128},
    }
)
KEY = RunnerKey(1, Environment(threads=1))


class Cost(NamedTuple):
    wall: float  # seconds from requesting a runner to its first metric
    cpu: float  # seconds of the runner alone
    memory: float  # MiB of private memory


class Listener:
    """Reads a runner's events until one of the given kind."""

    def __init__(self, kind: str) -> None:
        self._kind, self.received = kind, asyncio.Event()
        self.last: dict[str, object] = {}

    def __call__(self, line: bytes) -> None:
        event = json.loads(line)
        if event["type"] in (self._kind, "failed"):
            self.last = event
            self.received.set()


async def profile(pool: RunnerPool, folder: Path) -> DatasetFile:
    """Profile the data, as a worker does."""
    task = ProfileTask(folder=str(folder / "profile"), source="bundled", bundled="digits")
    runner = await pool.take(KEY, needs_jax=False)
    done = await run_until(runner, task, "result")
    await pool.discard(runner)
    result = done["result"]
    assert isinstance(result, dict)
    path = folder / "profile" / result["path"]
    return DatasetFile(path=str(path), digest=result["digest"], profile=result["profile"])


async def run_until(runner: RunnerProcess, task: ProfileTask | TrainTask, kind: str) -> dict[str, object]:
    """Start a task and return its first event of a kind."""
    folder = Path(task.folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spec.json").write_text(task.model_dump_json(by_alias=True))
    listener = Listener(kind)
    runner.set_listener(listener)
    runner.send(Start(task=str(folder / "spec.json")))
    await listener.received.wait()
    assert listener.last["type"] == kind, listener.last
    return listener.last


async def measure(pool: RunnerPool, data: DatasetFile, folder: Path) -> Cost:
    """Start a runner, wait for its first epoch, and end it."""
    task = TrainTask(
        folder=str(folder),
        spec=SPEC,
        dataset=data,
        objective=Objective(metric="val_loss", direction="min"),
        model_name="measured",
        retrain=None,
        checkpoints=str(folder / "checkpoints"),
        compile_cache=str(folder / "cache"),
        fence=1,
        threads=1,
    )
    began = time.perf_counter()
    runner = await pool.take(KEY)
    await run_until(runner, task, "points")
    wall = time.perf_counter() - began
    process = psutil.Process(runner.pid)
    times, memory = process.cpu_times(), process.memory_full_info()
    await pool.discard(runner)
    return Cost(wall, times.user + times.system, memory.uss / 2**20)


async def compare(pairs: int, folder: Path) -> tuple[float, list[Cost], list[Cost]]:
    """Return the seconds to start the fork server, and the costs of forked and of executed runners."""
    fork_servers = ForkServers(folder / "forking", 3600.0, "workers.runner")
    forking = RunnerPool(folder / "forking", 1, 3600.0, 2**40, SecretMasker(), fork_servers=fork_servers)
    executing = RunnerPool(folder / "executing", 1, 3600.0, 2**40, SecretMasker())
    data = await profile(executing, folder)
    began = time.perf_counter()
    await forking.discard(await forking.take(KEY))
    server = time.perf_counter() - began
    forked, executed = [], []
    for pair in range(pairs):
        forked.append(await measure(forking, data, folder / f"forked-{pair}"))
        executed.append(await measure(executing, data, folder / f"executed-{pair}"))
    await forking.close()
    return server, forked, executed


def report(forked: Sequence[Cost], executed: Sequence[Cost]) -> None:
    """Print medians and ratios."""
    print(f"{'':24}{'forked':>10}{'executed':>10}{'ratio':>8}")
    names = ("wall to first epoch, s", "CPU of the runner, s", "own memory, MiB")
    for name, ours, theirs in zip(names, zip(*forked, strict=True), zip(*executed, strict=True), strict=True):
        a, b = statistics.median(ours), statistics.median(theirs)
        print(f"{name:24}{a:10.2f}{b:10.2f}{b / a:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.runner_start", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory() as folder:
        server, forked, executed = asyncio.run(compare(pairs, Path(folder)))
    print(f"{pairs} pairs on {os.cpu_count()} cores; the fork server was ready after {server:.2f} s")
    report(forked, executed)


if __name__ == "__main__":
    main()
