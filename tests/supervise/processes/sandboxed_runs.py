"""Runs hostile tasks on runners in sandboxes: `python -m tests.supervise.processes.sandboxed_runs LEVEL...`.

It prints each level's findings as JSON. Tests start it as root, and as a user without privileges; `hold`
before a level starts two runs and waits to be killed.
"""

import asyncio
import json
import os
import shutil
import socket
import sys
import tempfile
import traceback
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.sandbox import MIB, Level, LevelState
from jobs.messages.task import ModelWithCode, OwnCode, OwnCodeFile
from jobs.store import LocalStore
from tests.present import present
from tests.sandbox.conftest import UIDS, python
from tests.sandbox.fork_server import COMMAND
from tests.supervise.conftest import FAKE, QUICK, Bench, FakeRepository, until
from workers.confinement.isolation.access import Isolation
from workers.confinement.isolation.check import Folders, parents_of
from workers.confinement.isolation.users import RunnerUsers
from workers.confinement.isolation.view import View
from workers.confinement.sandbox.launch import Owner
from workers.confinement.sandbox.levels import find_levels
from workers.confinement.sandbox.view import CODE_ROOT
from workers.runner.environment import Environment
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt.node_context import NodeContext
from workers.supervise.limits.sandbox_limits import SandboxLimits
from workers.supervise.pool.fork_server import RunnerForkServer
from workers.supervise.pool.fork_servers import ForkServers
from workers.supervise.pool.runner_pool import RunnerKey, RunnerPool
from workers.supervise.pool.runner_process import RunnerProcess
from workers.supervise.pool.sandboxes import Sandboxes
from workers.system.environment import runner_environment

MODEL = "tests.supervise.fake_model"
LIMITS = SandboxLimits(processes=20, disk_gib=16 * MIB / 2**30, output_mib=4, file_gib=1)
MEMORY = 512 * MIB


@dataclass
class Yard:
    """A node, and an installation with secrets around it."""

    bench: Bench
    home: Path
    level: Level
    digest: str

    def script(
        self,
        attempt: int,
        *steps: list[Any],
        minimum: Level = Level.PROCESS,
        code: str = "1",
        beside: bool = False,
    ) -> None:
        """Give an attempt a task with code, or with a model beside it that needs the code."""
        store = LocalStore(self.home / "artifacts")
        place = str(store.path(self.digest))
        own_code = OwnCode(
            digest=code, files=(OwnCodeFile(path="package/model.py", place=place),), minimum=minimum,
            network=False, python=python(),
        )  # fmt: skip
        self.bench.repository.tasks[attempt] = ProfileTask(
            folder="replaced", checkpoints=str(store.checkpoint_root / "job-1"), source="bundled",
            path=place, bundled=json.dumps(steps), code=None if beside else own_code,
            models=(ModelWithCode(name="model", file=place, code=own_code),) if beside else (),
        )  # fmt: skip

    def data(self) -> str:
        """Return the path of the data that all tasks read."""
        return str(LocalStore(self.home / "artifacts").path(self.digest))

    async def run(
        self, attempt: int, *steps: list[Any], root: int | None = None, **options: Any
    ) -> dict[str, Any]:
        """Run a task, and return its end with the lines that it printed."""
        self.script(attempt, *steps, **options)
        end = await self.bench.run(attempt=attempt, root=root or attempt)
        assert end is not None
        lines = [line.line[:2000] for line in self.bench.repository.lines(attempt)[:100]]
        record = self.bench.repository.sandboxes.get(attempt)
        return {
            "outcome": end.outcome, "code": end.code, "message": end.message, "lines": lines,
            "sandbox": None if record is None else record.model_dump(mode="json"),
        }  # fmt: skip


class LightForkServers(ForkServers):
    """Starts fork servers that import little."""

    async def _start(self, _environment: Environment) -> RunnerForkServer:
        folder = self.folder / f"forkserver-{next(self._numbers)}"
        folder.mkdir(mode=0o700)
        server = await RunnerForkServer.spawn(
            [*COMMAND, self.module, MODEL], variables=runner_environment(folder), cwd=folder,
            output=folder / "output.log",
        )  # fmt: skip
        server.folder, server._module = folder, self.module
        await server.imported()
        return server


class ForkingPool(RunnerPool):
    """Forks also the runners for tasks that need no JAX, as a fake runner's."""

    async def take(self, key: RunnerKey, *, needs_jax: bool = True) -> RunnerProcess:
        return await super().take(key)


@asynccontextmanager
async def yard(
    level: Level, module: str = FAKE, fork_servers: type[ForkServers] = LightForkServers
) -> AsyncIterator[Yard]:
    """A node that offers one level."""
    root = Path(tempfile.mkdtemp(prefix="trainyard-runners-"))
    root.chmod(0o711)
    home = root / "home"
    home.mkdir(mode=0o700)
    for name in ("secret.key", "release.key", "db.sqlite3"):
        (home / name).write_text("secret")
        (home / name).chmod(0o600)
    (home / "upload").write_text("def build_model(hp): ...\n")
    repository = FakeRepository({}, LocalStore(home / "artifacts"))
    digest = repository.store.put(home / "upload").digest
    other = repository.store.put(home / "secret.key").digest
    assert other != digest
    node = home / "nodes" / "host"
    shared = (node / "attempts", repository.store.checkpoint_root, home / "compile-cache")
    folders = Folders(home, repository.store.root, home / "runner-users", node / "runners", shared)
    sandboxes = Sandboxes(node / "attempts", readable=(str(CODE_ROOT / "tests"),))
    isolation = None
    if os.geteuid() == 0:
        users = RunnerUsers(UIDS, folders.locks)
        # Runners without code see the Python of the tests, which may be in the closed home of a user.
        isolation = Isolation(users, View.hiding((home,), shared), parents_of(folders))
        isolation.open_parents()
        user = users.claim()
        owner = Owner(user.uid, users.group)
        states = await asyncio.to_thread(
            find_levels, lambda: owner, python(), parent=folders.runners, allowed=(level,)
        )
        user.release()
    else:
        folders.runners.mkdir(parents=True)
        states = await asyncio.to_thread(find_levels, parent=folders.runners, allowed=(level,))
    sandboxes.states.set_result(states)
    pool = ForkingPool(
        folders.runners, 2, 60.0, 2**30, module=module, model_module=MODEL, isolation=isolation,
        sandboxes=sandboxes, fork_servers=fork_servers(folders.runners, 60.0, module),
    )  # fmt: skip
    context = NodeContext(
        repository, pool, Devices(), replace(QUICK, grace=0.5, first_progress=15.0), *shared,
        threads_per_slot=1, memory_per_slot=MEMORY, sandbox_limits=LIMITS,
    )  # fmt: skip
    try:
        yield Yard(Bench(context, repository), home, level, digest)
    finally:
        await pool.close()
        shutil.rmtree(root, ignore_errors=True)


def left_of(home: Path, *, besides: Iterable[int] = ()) -> list[str]:
    """Return the command lines of user processes that run for a node, and of its forks."""
    lines = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            place = str((folder / "cwd").readlink())
        except OSError:
            continue
        others = not folder.name.isdecimal() or int(folder.name) in (os.getpid(), *besides)
        if not others and (str(home) in words or place.startswith(str(home))):
            lines.append(words)
    return lines


async def findings(level: Level) -> dict[str, Any]:
    """Run all tasks at a level."""
    async with yard(level) as place:
        state: LevelState = next(
            candidate
            for candidate in present(place.bench.node.pool.sandboxes).states.result()
            if candidate.level is level
        )
        if not state.offered:
            return {"missing": state.reason}
        repository, pool, home = place.bench.repository, place.bench.node.pool, place.home
        private = [home / name for name in ("secret.key", "release.key", "db.sqlite3")]
        private += [*(home / "artifacts").glob("??/*"), Path("/etc/shadow")]
        server = socket.create_server(("127.0.0.1", 0))
        port = server.getsockname()[1]
        outcomes: dict[str, Any] = {
            "work": await place.run(
                1, ["see_code"], ["read", *map(str, private)], ["connect", port],
                ["artifact", "report.txt", "done"], ["checkpoint", 3], ["cache", "program"],
            ),
        }  # fmt: skip
        outcomes["stored"] = [file.digest for file in repository.files.values()]
        outcomes["checkpoints"] = [
            event.folder for event in repository.events[1] if event.type == "checkpoint"
        ]
        (runner,) = pool.pids
        place.script(2, ["see_code"])
        await place.bench.run(attempt=2, root=1)
        outcomes["reused"] = pool.pids == [runner]
        await place.run(3, ["see_code"])
        outcomes["reused by another job"] = pool.pids == [runner]
        place.script(4, ["see_code"], code="2")
        await place.bench.run(attempt=4, root=1)
        outcomes["reused for other code"] = runner in pool.pids and len(pool.pids) == 1
        outcomes["of other code"] = await place.run(
            30, ["see_code"], ["checkpoint", 9], ["await_recorded", 1], ["cache", "program"], code="3", root=1
        )
        # Also the task, which names the data, and the data themselves.
        task = home / "nodes" / "host" / "attempts" / "16" / "spec.json"
        rows = [str(port), str(task), place.data(), *map(str, private)]
        outcomes["model beside"] = await place.run(16, ["ask_model", *rows], beside=True)
        server.close()
        outcomes["model that exits"] = await place.run(17, ["ask_model", "exit"], beside=True)
        outcomes["exit"] = await place.run(6, ["exit", 0])
        outcomes["crash"] = await place.run(7, ["die"])
        outcomes["memory"] = await place.run(8, ["eat", 700], ["hang"])
        outcomes["processes"] = await place.run(9, ["multiply", 40])
        outcomes["disk"] = await place.run(10, ["fill", "large", 32 * MIB], ["hang"])
        outcomes["output"] = await place.run(11, ["babble"])
        outcomes["extended output"] = await place.run(15, ["extend_output"])
        place.script(12, ["ignore"])
        ignoring = place.bench.start(attempt=12, root=12)
        await until(lambda: repository.events.get(12))
        ignoring.supervisor.drain()
        await ignoring.ended()
        outcomes["ignores the request to stop"] = repository.endings[12].message
        place.bench.with_timing(first_progress=3.0, silence=0.5)
        outcomes["hang"] = await place.run(13, ["hang"])
        place.bench.with_timing(first_progress=15.0, silence=10.0)
        await place.run(14, ["escape"])
        await pool._discard_idle(lambda _runner: True)
        assert pool.fork_servers is not None
        servers = [server.pid for server in pool.fork_servers.servers().values() if server is not None]
        outcomes["left"] = left_of(home, besides=servers)
        await pool.fork_servers.close()
        outcomes["checkpoint folders"] = [
            str(path.relative_to(home / "artifacts" / "checkpoints"))
            for path in (home / "artifacts" / "checkpoints").glob("*/*/*")
        ]
        outcomes["folders left"] = [
            str(path.relative_to(home)) for path in (home / "nodes" / "host").glob("*/*/*")
        ]
    return outcomes


async def refuse() -> dict[str, Any]:
    """Return how a task ends that needs a stronger level than the node has."""
    async with yard(Level.PROCESS) as place:
        return await place.run(1, ["see_code"], minimum=Level.BUBBLEWRAP)


async def hold(level: Level) -> None:
    """Start runs that wait, one with a model beside it; print the node's folder, and wait."""
    async with yard(level) as place:
        place.script(1, ["escape"], ["hold"])
        place.script(2, ["ask_model"], ["hold"], beside=True)
        for attempt in (1, 2):
            place.bench.start(attempt=attempt, root=attempt)
        lines = place.bench.repository.lines
        await until(lambda: lines(1) and lines(2), 30)
        sys.stdout.write(f"{place.home}\n")
        sys.stdout.flush()
        await asyncio.sleep(600)


def main() -> None:
    if sys.argv[1] == "hold":
        asyncio.run(hold(Level(sys.argv[2])))
    elif sys.argv[1] == "refuse":
        sys.stdout.write(json.dumps(asyncio.run(refuse())))
    else:
        sys.stdout.write(json.dumps(_tried(Level(sys.argv[1]))))


def _tried(level: Level) -> dict[str, Any]:
    try:
        return asyncio.run(findings(level))
    except Exception:  # noqa: BLE001  the tests of this level fail with it, and no others
        return {"missing": traceback.format_exc()}


if __name__ == "__main__":
    main()
