"""Runs the attacks in `hostile.py` at one level, and collects those that succeeded.

Tests call it as root, or as a user without privileges through `unprivileged.py`.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jobs.messages.sandbox import MIB, Level, Limits, SandboxRequest
from tests.sandbox.fork_server import REFUSE
from tests.sandbox.forks import Forks
from workers.confinement.sandbox import seccomp
from workers.confinement.sandbox.launch import Owner, Starter, Streams, launch_at, spawn
from workers.confinement.sandbox.process import SandboxProcess
from workers.confinement.sandbox.watch import Watch

HOSTILE = Path(__file__).with_name("hostile.py")
SECRET = {"TRAINYARD_SECRET": "secret", "DATABASE_URL": "postgres://secret"}
CLAIM = Callable[[], Owner | None]
# Seconds, for a busy machine.
WAIT = 60.0
OPEN_FILES = 64
BOMBS = ("memory", "files_in_memory", "hidden", "fork", "disk", "empty_files", "deleted", "flood")
BOMBS_OF_FORKS = ("memory", "hidden", "fork")
ROOTS = (Level.BUBBLEWRAP,)
"""The levels at which a run has a root folder of its own."""
LIMITS = Limits(
    memory_of_all=128 * MIB, processes_of_all=8, disk_of_all=8 * MIB, output_of_all=MIB, file_bytes=64 * MIB,
    open_files=OPEN_FILES, cpu_seconds=10,
)  # fmt: skip


@dataclass
class Bomb:
    """How a run ended that used too much."""

    breach: str | None
    message: str
    used: int
    received: int
    left: int
    status: int


@dataclass
class Results:
    """What happened at one level."""

    record: dict[str, Any]
    attacks: dict[str, dict[str, bool]]
    own: dict[str, bool]
    facts: dict[str, Any]
    connections: dict[str, bool]
    connections_record: dict[str, Any]
    threads: int
    shared_memory: int
    bombs: dict[str, Bomb] = field(default_factory=dict)
    harmless: Bomb | None = None
    left: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    temporary_left: bool = False
    without_joining: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> str:
        """Return it for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Results":
        """Read another process's results."""
        fields = json.loads(text)
        fields["bombs"] = {name: Bomb(**bomb) for name, bomb in fields["bombs"].items()}
        fields["harmless"] = fields["harmless"] and Bomb(**fields["harmless"])
        return cls(**fields)


class Yard:
    """An installation with secrets and servers, beside a run's folders."""

    def __init__(self, root: Path, stack: ExitStack, owner: Owner | None) -> None:
        root.chmod(0o711)
        self.root = root
        self.home, self.own, self.inputs = root / "home", root / "own", root / "inputs"
        self.open_to_all = root / "open"
        self.owner = owner
        for folder, mode in ((self.home, 0o700), (self.own, 0o700), (self.inputs, 0o755)):
            folder.mkdir()
            folder.chmod(mode)
        self.open_to_all.mkdir()
        self.open_to_all.chmod(0o777)
        artifacts = self.home / "artifacts" / "ab"
        artifacts.mkdir(parents=True)
        self.private = [self.home / name for name in ("release.key", "secret.key", "db.sqlite3")]
        self.private.append(artifacts / "abcd")
        for file in self.private:
            file.write_text("secret")
            file.chmod(0o600)
        (self.inputs / "hostile.py").write_bytes(HOSTILE.read_bytes())
        (self.inputs / "hostile.py").chmod(0o644)
        if owner is not None:
            os.chown(self.own, *owner)
        self.dashboard, self.broker = (
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)
        )
        # In a folder that is open to all, so that only the sandbox keeps it from the run.
        self.socket = self.open_to_all / "redis.sock"
        local = stack.enter_context(socket.socket(socket.AF_UNIX))
        local.bind(str(self.socket))
        local.listen()
        self.socket.chmod(0o777)
        self.datagrams = self.open_to_all / "log.sock"
        log = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        log.bind(str(self.datagrams))
        self.datagrams.chmod(0o777)
        self.abstract = f"trainyard-test-{os.getpid()}"
        hidden = stack.enter_context(socket.socket(socket.AF_UNIX))
        hidden.bind(f"\0{self.abstract}")
        hidden.listen()
        ignore = (
            "import signal, time; signal.signal(signal.SIGUSR1, signal.SIG_IGN); print(1, flush=True); "
            "time.sleep(300)"
        )
        self.victim = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", ignore], env=SECRET, stdout=subprocess.PIPE
        )
        stack.callback(self.victim.wait)
        stack.callback(self.victim.kill)
        assert self.victim.stdout is not None
        stack.callback(self.victim.stdout.close)
        self.victim.stdout.readline()

    def request(self, **changes: Any) -> SandboxRequest:
        return SandboxRequest(
            readable=(str(self.inputs),), writable=(str(self.own),), folder=str(self.own),
            environment={"GIVEN": "1", "PYTHONPATH": str(self.inputs)},
            limits=LIMITS.model_copy(update=changes.pop("limits", {})), **changes,
        )  # fmt: skip

    def targets(self, level: Level, python: str) -> dict[str, Any]:
        """Return the attacks' targets."""
        closed = [self.home, self.inputs, Path(sys.prefix)]
        private = list(self.private)
        folders = [self.home, self.home / "artifacts"]
        # At the level `process`, files that are open to all users stay open.
        if level is not Level.PROCESS:
            closed.append(self.open_to_all)
            folders.append(self.open_to_all)
            private.append(Path("/etc/shadow"))
        allowed = {"GIVEN", "PYTHONPATH", "PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "LC_CTYPE"}
        column = seccomp.MACHINES[os.uname().machine].column
        return {
            "private": list(map(str, private)), "folders": list(map(str, folders)),
            "closed": list(map(str, closed)),
            "unchangeable": [str(self.inputs / "hostile.py"), str(self.private[0])],
            "ports": [server.getsockname()[1] for server in (self.dashboard, self.broker)],
            "socket": str(self.socket), "datagrams": str(self.datagrams),
            "abstract": self.abstract, "victim": self.victim.pid, "python": python,
            "worker": os.getpid(), "allowed": sorted(allowed), "readable": str(self.inputs / "hostile.py"),
            "calls": {name: numbers[column] for name, numbers in seccomp._ALWAYS.items() if numbers[column]},
            "limits": {"memory": LIMITS.memory_of_all, "open_files": OPEN_FILES},
        }  # fmt: skip


@contextmanager
def yard(owner: Owner | None) -> Iterator[Yard]:
    with ExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="trainyard-sandbox-"))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        yield Yard(root, stack, owner)


class Exercise:
    """Starts attacks at one level, in new interpreters or as forks."""

    def __init__(self, yard: Yard, level: Level, python: str, forks: Forks | None = None) -> None:
        self.yard, self.level, self.python, self.forks = yard, level, python, forks

    def start(
        self, attack: str, details: dict[str, Any] | None = None, *, output: bool = True, **changes: Any
    ) -> SandboxProcess:
        """Start an attack."""
        stdout = subprocess.PIPE if output else subprocess.DEVNULL
        with (self.yard.home / "release.key").open() as inherited, Path(os.devnull).open() as kept_open:
            asked = {"name": self._name(attack), "kept": kept_open.fileno(), **(details or {})}
            code = str(self.yard.inputs / "hostile.py")
            starter: Starter
            command, starter = [self.python, "-I", "-S", code], spawn
            streams = Streams(stdout=stdout, stderr=subprocess.STDOUT)
            if self.forks is not None:
                command, starter = [sys.executable, "-m", "hostile"], self.forks.starter
                streams = streams._replace(keep=(kept_open.fileno(),))
            os.set_inheritable(inherited.fileno(), True)
            os.environ.update(SECRET)
            try:
                return launch_at(
                    self.level, self.yard.request(**changes), [*command, attack, json.dumps(asked)],
                    owner=self.yard.owner, streams=streams, scratch=self.yard.root, start=starter,
                )  # fmt: skip
            finally:
                for name in SECRET:
                    del os.environ[name]

    def _name(self, attack: str) -> str:
        """Return the process name for an attack. A fork has its parent's command line."""
        return f"{self.yard.root.name[-8:]}{attack[:7]}"

    def run(
        self, attack: str, details: dict[str, Any] | None = None, **changes: Any
    ) -> tuple[Any, SandboxProcess]:
        """Run an attack, and return its output."""
        with self.start(attack, details, **changes) as process:
            status = process.wait(WAIT)
            assert process.stdout is not None
            printed = process.stdout.read()
            assert status == 0, printed.decode()
        return json.loads(printed), process

    def explode(self, attack: str, size: int = 48 * MIB) -> Bomb:
        """Run an attack on a resource until the watch ends it."""
        received: list[bytes] = []
        # A fork has the memory of its parent, so the limit of each process would end it too early.
        limits = {} if self.forks is None else {"process_memory": 4 * LIMITS.memory_of_all}
        with self.start(attack, {"size": size}, limits=limits) as process:
            watch = Watch(process, [str(self.yard.own)], interval=0.05)
            assert process.stdout is not None
            watch.read(process.stdout, received.append)
            watch.start()
            status = watch.wait(WAIT)
            ended = watch.ended
        left = self.remaining(attack)
        for file in self.yard.own.iterdir():
            file.unlink()
        if ended is None:
            return Bomb(None, "", 0, sum(map(len, received)), left, status)
        return Bomb(ended.breach, ended.message, ended.used, sum(map(len, received)), left, status)

    def remaining(self, attack: str, *, seconds: float = 5.0) -> int:
        """Return how many processes an attack has left, and kill them."""
        deadline = time.monotonic() + seconds
        while (pids := list(_running(self._name(attack)))) and time.monotonic() < deadline:
            time.sleep(0.02)
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return len(pids)


def _running(name: str) -> Iterator[int]:
    """Yield the pids of living processes with a name."""
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            status = (folder / "status").read_text() if folder.name.isdecimal() else ""
            if status.startswith(f"Name:\t{name}\n") and "State:\tZ" not in status:
                yield int(folder.name)


def exercise(
    level: Level, owner: Owner | None, python: str = sys.executable, *, forked: bool = False
) -> Results:
    """Run the attacks at a level, in new interpreters or as forks."""
    with ExitStack() as stack:
        with yard(owner) as place:
            left = _outlive(Exercise(place, level, python), forked=forked)
        forks = stack.enter_context(Forks()) if forked else None
        with yard(owner) as place:
            targets = place.targets(level, python)
            printed, process = Exercise(place, level, python, forks).run("attacks", targets)
        # Another one: at the weakest level, attacks may have deleted its files.
        place = stack.enter_context(yard(owner))
        attacker = Exercise(place, level, python, forks)
        allowed, other = (one.getsockname()[1] for one in (place.dashboard, place.broker))
        asked = {"allowed_port": allowed, "port": other, "abstract": place.abstract}
        connections, connected = attacker.run("connections", asked, network=True, ports=(allowed,))
        threads = {"processes_of_all": 1}
        most = attacker.run("count_forks", {"most": 80}, limits=threads)[0]
        shared = attacker.run("shared_memory", {"most": 40})[0] if level in ROOTS else 0
        results = Results(
            process.record.model_dump(mode="json"), printed["succeeded"], printed["own"], printed["facts"],
            connections, connected.record.model_dump(mode="json"), most, shared,
        )  # fmt: skip
        # The others use the same measurements.
        for bomb in BOMBS_OF_FORKS if forked else BOMBS:
            results.bombs[bomb] = attacker.explode(bomb)
        results.harmless = attacker.explode("neglect")
        _end_in_ways(attacker, results)
        results.left["its worker"] = left
        results.temporary_left = process.temporary.exists()
        if forks is not None:
            results.left["its fork server"] = _outlive_server(attacker, forks)
        if forked and level is Level.BUBBLEWRAP:
            attacker.forks = stack.enter_context(Forks(REFUSE))
            targets = place.targets(level, sys.executable)
            results.without_joining = attacker.run("attacks", targets)[0]
    return results


def _end_in_ways(attacker: Exercise, results: Results) -> None:
    with attacker.start("survive") as process:
        results.statuses["survive"] = process.wait(WAIT)
        results.left["its own end"] = attacker.remaining("survive")
    with attacker.start("stay") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
        results.left["a kill"] = attacker.remaining("stay", seconds=0)
        results.statuses["stay"] = process.wait(WAIT)
    with attacker.start("stay") as process:
        assert process.stdout is not None
        process.stdout.readline()
        # As the supervisor ends a runner, and the kernel one that uses too much memory.
        os.killpg(process.pid, signal.SIGKILL)
        results.left["a kill of the process outside"] = attacker.remaining("stay")
    with attacker.start("large_file", limits={"file_bytes": MIB}) as process:
        results.statuses["large file"] = process.wait(WAIT)
        results.left["large"] = (attacker.yard.own / "large").stat().st_size


def _outlive(attacker: Exercise, *, forked: bool) -> int:
    """Kill a worker, and return how many processes its sandbox leaves."""
    reading, writing = os.pipe()
    worker = os.fork()
    if worker == 0:
        os.close(reading)
        try:
            if forked:
                attacker.forks = Forks().__enter__()
            process = attacker.start("stay")
            assert process.stdout is not None
            os.write(writing, process.stdout.readline())
            signal.pause()
        finally:
            os._exit(1)
    os.close(writing)
    try:
        assert os.read(reading, 16) == b"ready\n"
    finally:
        os.close(reading)
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
    return attacker.remaining("stay")


def _outlive_server(attacker: Exercise, forks: Forks) -> int:
    """Kill the fork server, and return how many processes its sandbox leaves."""
    with attacker.start("stay") as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(forks.server.pid, signal.SIGKILL)
        # Before the attack ends by itself.
        assert process.wait(WAIT / 2) == -signal.SIGKILL
        return attacker.remaining("stay")
