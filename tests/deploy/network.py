"""Machines on one computer: each has a network, a host name, a list of hosts and a disk of its own.

A machine is a network namespace without a name, which this process holds by a descriptor. Each of its
programs also has a mount namespace, in which the machine's folder is `/srv`. Programs are killed when this
process ends, for whatever reason, and the kernel removes namespaces that nothing uses: so a killed run
leaves nothing, and two runs at the same time do not meet.
"""

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.ops.conftest import ROOT
from tests.ops.guide_commands import Command

REQUIRED = "TRAINYARD_REQUIRE_NAMESPACES"
PROGRAMS = ("ip", "nsenter", "unshare", "setpriv", "hostname", "nginx", "redis-server", "openssl")
NETWORK = "10.77.0."
_ENTER = 'mount --bind "$0" /srv && mount --bind "$1" /etc/hosts && hostname "$2" && shift 2 && exec "$@"'
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def postgres_programs() -> Path | None:
    """Return the folder of PostgreSQL's programs; None if it is not installed."""
    found = shutil.which("initdb") or max(Path("/usr/lib/postgresql").glob("*/bin/initdb"), default=None)
    return Path(found).resolve().parent if found else None


def require_namespaces() -> None:
    """Skip a test where this user cannot have network namespaces, or fail if they are required.

    Without root, `unshare --map-root-user` would give namespaces, but PostgreSQL refuses to run as the only
    user that they have.
    """
    missing = [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]
    if postgres_programs() is None:
        missing.append("PostgreSQL")
    reason = f"not installed: {', '.join(missing)}" if missing else ""
    if not missing:
        command = ["unshare", "--net", "--mount", "--uts", "true"]
        reason = subprocess.run(command, capture_output=True, text=True).stderr.strip()
    if reason and os.environ.get(REQUIRED) == "1":
        pytest.fail(f"{REQUIRED}=1, but network namespaces cannot be used: {reason}")
    if reason:
        pytest.skip(f"network namespaces cannot be used: {reason} ({REQUIRED}=1 forbids this)")


class Machine:
    """One machine. Its address ends with its number."""

    def __init__(self, network: "Network", name: str, number: int) -> None:
        self.name, self.address = name, f"{NETWORK}{number}"
        self.disk = network.folder / name
        self.disk.mkdir()
        self.disk.chmod(0o755)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._network, self._number = network, number
        self._namespace = _new_namespace()
        self._connect()

    def _connect(self) -> None:
        network, port, path = self._network, f"port{self._number}", self.namespace
        network.ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", path)
        network.ip("link", "set", port, "master", "switch", "up")
        self.ip("link", "set", "lo", "up")
        self.ip("addr", "add", f"{self.address}/24", "dev", "eth0")
        self.ip("link", "set", "eth0", "up")

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of all programs; none is of an installation."""
        return self._network.environment

    @property
    def namespace(self) -> str:
        """The path of the network namespace, for programs started by this process."""
        return f"/proc/{os.getpid()}/fd/{self._namespace}"

    @property
    def enter(self) -> tuple[str, ...]:
        """The arguments before a command that runs on this machine and dies with this process."""
        place = (str(self.disk), str(self._network.hosts), self.name)
        namespaces = ("nsenter", f"--net={self.namespace}", "unshare", "--mount", "--uts")
        # The kernel sends no signal if this process has died before.
        dying = (
            "setpriv",
            "--pdeathsig",
            "KILL",
            "sh",
            "-euc",
            '[ "$PPID" = "$0" ] && exec "$@"',
            str(os.getpid()),
        )
        return (*namespaces, "sh", "-euc", _ENTER, *place, *dying)

    def ip(self, *arguments: str) -> None:
        """Change the machine's network."""
        _call("nsenter", f"--net={self.namespace}", "ip", *arguments)

    def start(self, name: str, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Start a program, whose output is in the file `log(name)`."""
        with self.log(name).open("ab") as file:
            process = subprocess.Popen(
                [*self.enter, *command],
                cwd=ROOT,
                env=self.environment,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self.processes[name] = process
        return process

    def start_command(
        self, name: str, command: Command, environment: Mapping[str, str], program: Path = ROOT
    ) -> None:
        """Start a command of the guide as it is written, in the folder of the program."""
        self.processes[name] = command.start(
            log=self.log(name),
            prefix=self.enter,
            cwd=program,
            environment={**self.environment, **environment},
        )

    def run(self, *command: str, timeout: float = 240, environment: Mapping[str, str] | None = None) -> str:
        """Run a program to its end, and return its output.

        Raises:
            AssertionError: it failed.
        """
        done = subprocess.run(
            [*self.enter, *command],
            cwd=ROOT,
            env={**self.environment, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, f"{command} on {self.name}: {done.stdout}{done.stderr}"
        return done.stdout

    def log(self, name: str) -> Path:
        """Return the file of a program's output."""
        return self._network.folder / f"{self.name}.{name}.log"

    def printed(self, name: str) -> str:
        """Return a program's output."""
        return self.log(name).read_text(errors="replace") if self.log(name).exists() else ""

    # Faults

    def kill(self, name: str) -> None:
        """Kill a program with all below it, as if the power had failed."""
        process = self.processes.pop(name)
        below: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            below = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        for each in below:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        process.wait()

    def stop(self, name: str, *, number: int = signal.SIGTERM) -> int:
        """Let a program end, and return its exit status."""
        process = self.processes.pop(name)
        process.send_signal(number)
        return process.wait(90)

    def cut(self) -> None:
        """Drop all packets from and to the machine, silently."""
        self._network.ip("link", "set", f"port{self._number}", "down")

    def join(self) -> None:
        """End `cut`."""
        self._network.ip("link", "set", f"port{self._number}", "up")

    @contextmanager
    def slow(self, name: str, *, pause: float = 1.0, work: float = 0.1) -> Iterator[None]:
        """Let a program work only a part of the time, as on an overloaded machine: each answer is late."""
        process = psutil.Process(self.processes[name].pid)
        over = threading.Event()

        def hinder() -> None:
            while not over.is_set():
                stopped = _signal([process, *process.children(recursive=True)], signal.SIGSTOP)
                over.wait(pause)
                _signal(stopped, signal.SIGCONT)
                over.wait(work)

        thread = threading.Thread(target=hinder, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def end(self) -> None:
        """Kill all programs."""
        for name in list(self.processes):
            self.kill(name)

    def close(self) -> None:
        self.end()
        os.close(self._namespace)


class Network:
    """A switch, and the machines at it."""

    def __init__(self, folder: Path, names: Mapping[str, int], aliases: Mapping[str, str]) -> None:
        self.folder = folder
        self.hosts = folder / "hosts"
        named = [(name, names[name]) for name in names] + [
            (alias, names[of]) for alias, of in aliases.items()
        ]
        lines = ["127.0.0.1 localhost", *(f"{NETWORK}{number} {name}" for name, number in named)]
        self.hosts.write_text("\n".join(lines) + "\n")
        self.hosts.chmod(0o644)
        self.addresses = {name: f"{NETWORK}{number}" for name, number in named}
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TRAINYARD_", "DJANGO_"))
        }
        self.environment = {**kept, "PATH": _PATH}
        self._namespace = _new_namespace()
        self.ip("link", "add", "switch", "type", "bridge")
        self.ip("link", "set", "switch", "up")
        self.machines = {name: Machine(self, name, number) for name, number in names.items()}

    def __getitem__(self, name: str) -> Machine:
        return self.machines[name]

    def ip(self, *arguments: str) -> None:
        """Change the switch."""
        _call("nsenter", f"--net=/proc/{os.getpid()}/fd/{self._namespace}", "ip", *arguments)

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """Let this thread, and those that it starts, use the network of a machine."""
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        target = os.open(self[name].namespace, os.O_RDONLY)
        os.setns(target, os.CLONE_NEWNET)
        try:
            yield
        finally:
            os.setns(own, os.CLONE_NEWNET)
            os.close(own)
            os.close(target)

    def close(self) -> None:
        with ExitStack() as ends:
            ends.callback(os.close, self._namespace)
            for machine in self.machines.values():
                ends.callback(machine.close)


def _signal(processes: Sequence[psutil.Process], number: int) -> Sequence[psutil.Process]:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    return processes


def _new_namespace() -> int:
    """Return the descriptor of a new network namespace."""
    descriptors: list[int] = []

    def make() -> None:
        # Of this thread alone.
        os.unshare(os.CLONE_NEWNET)
        descriptors.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))

    _in_thread(make)
    return descriptors[0]


def _in_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PATH": _PATH})
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
