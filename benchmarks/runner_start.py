"""Measures the time from starting a runner to its first loss: forked, or as a new interpreter.

Run `python -m benchmarks.runner_start [--pairs 10]`. Both train the same small network for one epoch, with
empty compile caches; pairs alternate, so that load on the machine affects both. The output is medians of the
wall time, of the runner's CPU time and of its private memory, and their ratios. The fork server is warm; the
time to start it is printed first.

Then it measures the same for runners in a sandbox, as those of code of users: a fork, and a new interpreter.
Their CPU time is that after the task was requested, with that of the fork server and of the processes outside
of the sandbox.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.control import Start
from jobs.messages.sandbox import Level
from jobs.messages.task import DatasetFile, OwnCode, OwnCodeFile
from jobs.messages.training import TrainTask
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.search import Objective
from workers.confinement.isolation.access import Isolation
from workers.confinement.isolation.check import Folders, parents_of
from workers.confinement.isolation.users import RunnerUsers, UidRange
from workers.confinement.isolation.view import View
from workers.confinement.sandbox.launch import Owner
from workers.confinement.sandbox.levels import allowed_levels, find_levels
from workers.runner.environment import Environment
from workers.supervise.attempt.hand_over import hand_over_in_sandbox
from workers.supervise.limits.sandbox_limits import SandboxLimits
from workers.supervise.pool.fork_servers import ForkServers
from workers.supervise.pool.launcher import RUNNER
from workers.supervise.pool.runner_pool import RunnerKey, RunnerPool
from workers.supervise.pool.runner_process import RunnerProcess
from workers.supervise.pool.runner_sandbox import SandboxNeeds
from workers.supervise.pool.sandboxes import Sandboxes
from workers.system.secret_masking import SecretMasker

SPEC = ExperimentSpec.model_validate(
    {
        "version": 1,
        "data": {"dataset": "digits"},
        "model": {"kind": "template", "template": "mlp", "args": {"units": 32}},
        "fit": {"epochs": 1, "batch_size": 128},
    }
)
KEY = RunnerKey(1, Environment(threads=1))
OBJECTIVE = Objective(metric="val_loss", direction="min")


class Cost(NamedTuple):
    wall: float  # seconds from requesting a runner to its first metric
    cpu: float  # seconds of the runner alone
    memory: float  # MiB of private memory


type Row = tuple[float, ...]


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
        objective=OBJECTIVE,
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


@contextlib.asynccontextmanager
async def sandboxed_pool(folder: Path) -> AsyncIterator[RunnerPool]:
    """A pool that starts runners in the strongest sandbox of this machine."""
    node = folder / "node"
    shared = (node / "attempts", folder / "store" / "checkpoints", folder / "cache")
    folders = Folders(folder, folder / "store", folder / "users", node / "runners", shared)
    sandboxes, isolation = Sandboxes(node / "attempts"), None
    folders.runners.mkdir(parents=True)
    if sandboxes.have_own_users and (uids := UidRange.read(os.environ)) is not None:
        folder.chmod(0o711)
        isolation = Isolation(RunnerUsers(uids, folders.locks), View(), parents_of(folders))
        isolation.open_parents()
        with contextlib.closing(isolation.create_access(folders.runners / "levels")) as access:
            owner = Owner(access.user.uid, access.group)
            states = await asyncio.to_thread(
                find_levels, lambda: owner, parent=folders.runners, allowed=allowed_levels()
            )
    else:
        states = await asyncio.to_thread(find_levels, parent=folders.runners, allowed=allowed_levels())
    sandboxes.states.set_result(states)
    servers = ForkServers(folders.runners, 3600.0, RUNNER)
    pool = RunnerPool(
        folders.runners, 1, 3600.0, 2**40, fork_servers=servers, isolation=isolation, sandboxes=sandboxes
    )
    try:
        yield pool
    finally:
        await pool.close()


def needs_of(folder: Path, number: int) -> SandboxNeeds:
    """Return the needs of a job with a small file of code."""
    file = folder / "model.py"
    file.write_text("def build_model(hp): ...\n")
    return SandboxNeeds(
        project=1,
        code=OwnCode(
            digest=str(number),
            files=(OwnCodeFile(path="model.py", place=str(file)),),
            minimum=Level.PROCESS,
            network=False,
        ),
        checkpoints=str(folder / "store" / "checkpoints" / f"job-{number}"),
        compile_cache=str(folder / "cache" / f"code-{number}"),
        limits=SandboxLimits().run_limits(4 * 2**30),
    )


class Sandboxed(NamedTuple):
    begun: float  # seconds from requesting a runner until the task begins
    wall: float  # seconds to its first metric
    cpu: float  # seconds of its processes meanwhile


async def measure_sandboxed(pool: RunnerPool, data: DatasetFile, folder: Path, number: int) -> Sandboxed:
    """Start a runner in a sandbox, wait for its first epoch, and end it."""
    # The compile cache is a part of the needs: here it is empty for each runner.
    needs = needs_of(folder, number)
    key = KEY._replace(root=number, sandbox=needs)
    before = cpu_of_all()
    task = TrainTask(
        folder="replaced", spec=SPEC, dataset=data, objective=OBJECTIVE, model_name="measured", retrain=None,
        checkpoints=needs.checkpoints, compile_cache=needs.compile_cache, threads=1, code=needs.code,
    )  # fmt: skip
    began = time.perf_counter()
    runner = await pool.take(key)
    assert runner.sandbox is not None
    start = hand_over_in_sandbox(task, number, runner.sandbox)
    started = Listener("started")
    listener = Listener("points")

    def on_line(line: bytes) -> None:
        started(line)
        listener(line)

    runner.set_listener(on_line)
    runner.send(start)
    await started.received.wait()
    begun = time.perf_counter() - began
    await listener.received.wait()
    wall = time.perf_counter() - began
    assert listener.last["type"] == "points", listener.last
    cpu = cpu_of_all() - before
    await pool.discard(runner)
    return Sandboxed(begun, wall, cpu)


def cpu_of_all() -> float:
    """Return the CPU seconds of all processes that this one has started and that run."""
    times = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return sum(usage.user + usage.system for usage in times)


async def measure_new(pool: RunnerPool, data: DatasetFile, folder: Path, number: int) -> Sandboxed:
    """Measure a runner that is a new interpreter."""
    servers, pool.fork_servers = pool.fork_servers, None
    try:
        return await measure_sandboxed(pool, data, folder, number)
    finally:
        pool.fork_servers = servers


async def compare_sandboxed(rounds: int, folder: Path) -> tuple[Level, Sandboxed, list[list[Sandboxed]]]:
    """Return the level, the cost of the first run, and those of forks and new interpreters."""
    folder.mkdir()
    executing = RunnerPool(folder / "profiling", 1, 3600.0, 2**40, SecretMasker())
    data = await profile(executing, folder)
    ways = (measure_sandboxed, measure_new)
    costs: list[list[Sandboxed]] = [[] for _ in ways]
    numbers = itertools.count()
    async with sandboxed_pool(folder) as pool:
        first = await measure_sandboxed(pool, data, folder, next(numbers))
        for _ in range(rounds):
            for measured, way in zip(costs, ways, strict=True):
                measured.append(await way(pool, data, folder, next(numbers)))
        assert pool.sandboxes is not None
        level = await pool.sandboxes.require(Level.PROCESS)
    return level, first, costs


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


def report(heads: Sequence[str], names: Sequence[str], costs: Sequence[Sequence[Row]]) -> None:
    """Print medians, and their ratios to the first ones."""
    print(f"{'':24}" + "".join(f"{head:>18}" for head in heads))
    for at, name in enumerate(names):
        medians = [statistics.median(row[at] for row in rows) for rows in costs]
        print(f"{name:24}" + "".join(f"{median:10.2f} ({median / medians[0]:5.2f})" for median in medians))


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.runner_start", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--only", choices=("forked", "sandboxed"), help="measure only these runners")
    options = parser.parse_args()
    pairs = options.pairs
    print(f"{pairs} pairs on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)
        if options.only != "sandboxed":
            server, forked, executed = asyncio.run(compare(pairs, folder))
            print(f"the fork server was ready after {server:.2f} s")
            names = ("wall to first epoch, s", "CPU of the runner, s", "own memory, MiB")
            report(("forked", "executed"), names, (forked, executed))
        if options.only != "forked":
            level, first, costs = asyncio.run(compare_sandboxed(pairs, folder / "sandboxed"))
            print(f"in a sandbox of the level {level}")
            names = ("wall to its start, s", "wall to first epoch, s", "CPU meanwhile, s")
            report(("forked", "new"), names, costs)
            print(f"the first one, with the start of the fork server: {first}")


if __name__ == "__main__":
    main()
