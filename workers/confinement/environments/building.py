"""Builds an environment: runs the installer in a sandbox that reaches only the package index."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from jobs.messages.sandbox import (
    MIB,
    Level,
    LevelState,
    Limits,
    SandboxRecord,
    SandboxRequest,
    choose_level,
    refusal,
)
from workers.confinement.environments import engine_packages, failures, inside, uv_command
from workers.confinement.environments.failures import BuildFailed, BuildStopped
from workers.confinement.environments.file_hosts import find_file_hosts
from workers.confinement.environments.index import PackageIndex
from workers.confinement.environments.inside import Plan
from workers.confinement.environments.proxy import IndexProxy
from workers.confinement.environments.request import EnvironmentRequest
from workers.confinement.sandbox import landlock
from workers.confinement.sandbox.launch import Owner, Streams, launch
from workers.confinement.sandbox.process import SandboxProcess
from workers.confinement.sandbox.watch import Watch
from workers.system.line_splitter import LineSplitter
from workers.system.secret_masking import SecretMasker

VENV, REQUEST = "venv", "request"
"""The environment itself, and the files for the installer."""
GIB = 2**30
MAX_LINE = 1000
MAX_LINES = 20_000
"""Lines of the output that are looked at for the cause of a failure."""
PAUSE = 0.2
"""Seconds between two checks whether the run that waits has ended."""
PROCESSES = 256
CPU_SECONDS = 4 * 3600
_FROM_SOURCE = re.compile(r"^\s*(?:Building|Built) (?P<name>[\w.\-]+)")
"""The lines with which uv names a package that is built from its source."""
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True)
class BuildLimits:
    """Limits one build.

    Attributes:
        seconds: until it is ended.
        bytes: for the environment and its build's files.
        memory: bytes for all its processes.
    """

    seconds: float = 1800.0
    bytes: int = 20 * GIB
    memory: int = 4 * GIB

    def sandbox_limits(self) -> Limits:
        """Return the limits for its sandbox."""
        return Limits(
            memory_of_all=self.memory,
            processes_of_all=PROCESSES,
            disk_of_all=self.bytes,
            output_of_all=32 * MIB,
            file_bytes=self.bytes,
            cpu_seconds=CPU_SECONDS,
        )


class Built(NamedTuple):
    """A build that has ended well.

    Attributes:
        sandbox: the sandbox that it had.
        from_source: the packages that were built from source, by name.
    """

    sandbox: SandboxRecord
    from_source: frozenset[str]


@dataclass(frozen=True)
class Builder:
    """Builds environments on this machine.

    Attributes:
        states: this machine's sandbox levels.
        claim: gives a build its own user, if the worker is root.
        limits: for each build.
        uv: the path to uv.
    """

    states: Sequence[LevelState]
    uv: str
    claim: Callable[[], AbstractContextManager[Owner | None]] = nullcontext
    limits: BuildLimits = field(default_factory=BuildLimits)

    def build(
        self,
        request: EnvironmentRequest,
        index: PackageIndex,
        folder: Path,
        *,
        minimum: Level,
        receive: Callable[[str], None],
        stopped: threading.Event,
    ) -> Built:
        """Build an environment in `folder / "venv"`. It belongs to the build's user, see `seal`.

        Args:
            request: its contents.
            index: where packages come from.
            folder: an empty folder.
            minimum: the weakest sandbox in which it may be built.
            receive: is called with each line of the output, in another thread.
            stopped: is set when the result is not needed any more.

        Raises:
            BuildFailed: it could not be built.
            BuildStopped: `stopped` is set.
            OSError: the disk is full.
        """
        level = choose_level(self.states, minimum)
        if level is None:
            raise BuildFailed(
                f"The packages could not be installed: {refusal(self.states, minimum)}.", code="sandbox"
            )
        index = index._replace(hosts=index.hosts | find_file_hosts(index))
        way = _way_to(index, level)
        run = _Installation(self, request, index, folder, way)
        (folder / VENV).mkdir(mode=0o755)
        (folder / REQUEST).mkdir(mode=0o700)
        try:
            with self.claim() as owner, way.proxy(index, folder / REQUEST) as proxy:
                record = run.run(owner, proxy, minimum=minimum, receive=receive, stopped=stopped)
        finally:
            # It may have the password of an index.
            shutil.rmtree(folder / REQUEST, ignore_errors=True)
        return Built(record, frozenset(run.from_source))


class _Way(NamedTuple):
    """How a sandbox reaches the index.

    Attributes:
        network: whether the sandbox has a network, on which it may connect to the proxy's port alone.
        by_path: whether the proxy has a socket with a path instead of a port.
        wheels_only: why only wheels are installed; empty if sources may be built, too.
    """

    network: bool
    by_path: bool
    wheels_only: str = ""

    @contextmanager
    def proxy(self, index: PackageIndex, folder: Path) -> Iterator[IndexProxy | None]:
        """Serve the only connection to the index, if there is any."""
        if not index.hosts:
            yield None
            return
        place = folder if self.by_path else None
        with IndexProxy(index.hosts, folder=place, upstream=index.upstream) as serving:
            yield serving


def _way_to(index: PackageIndex, level: Level) -> _Way:
    reason = ""
    if index.has_password:
        reason = "the address of the package index has a password, which the build of a source could read"
    own_root = level is Level.BUBBLEWRAP
    if own_root or not index.hosts:
        return _Way(network=False, by_path=own_root, wheels_only=reason)
    # In the view of the machine, connections are restricted to the port of the proxy.
    restricted = level is Level.LANDLOCK and landlock.version() >= 4
    if not restricted:
        reason = "the sandbox of this worker cannot restrict the network, and only sources execute code"
    return _Way(network=True, by_path=False, wheels_only=reason)


class _Installation:
    """One execution of the installer in its sandbox."""

    def __init__(
        self, builder: Builder, request: EnvironmentRequest, index: PackageIndex, folder: Path, way: _Way
    ) -> None:
        self._builder = builder
        self._request = request
        self._index = index
        self._venv, self._files = folder / VENV, folder / REQUEST
        self._scratch = folder
        self._way = way
        self._masker = SecretMasker(index.passwords)
        self._splitter = LineSplitter(4 * MAX_LINE)
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self.from_source: set[str] = set()

    def run(
        self,
        owner: Owner | None,
        proxy: IndexProxy | None,
        *,
        minimum: Level,
        receive: Callable[[str], None],
        stopped: threading.Event,
    ) -> SandboxRecord:
        self._write_files(proxy, owner)
        command = [sys.executable, "-I", inside.__file__, str(self._files / "plan.json")]
        streams = Streams(stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with launch(
            self._sandbox(minimum, proxy), command, self._builder.states,
            owner=owner, streams=streams, scratch=self._scratch,
        ) as process:  # fmt: skip
            watch = Watch(process, [str(self._venv)])
            assert process.stdout is not None  # noqa: S101  it is a pipe
            watch.read(process.stdout, lambda chunk: self._read(chunk, receive))
            watch.start()
            status = self._wait(watch, process, stopped)
        self._emit(self._splitter.rest(), receive)
        if watch.ended is not None:
            raise BuildFailed(f"The packages could not be installed: {watch.ended.message}.", code="packages")
        if status != 0:
            raise failures.cause(
                list(self._lines),
                wheels_only=self._way.wheels_only,
                constraints=self._request.constraints,
                refused=() if proxy is None else proxy.refused,
                unreachable=() if proxy is None else proxy.unreachable,
            )
        return process.record

    def _write_files(self, proxy: IndexProxy | None, owner: Owner | None) -> None:
        (self._files / "requirements.txt").write_text("".join(f"{line}\n" for line in self._request.lines))
        (self._files / "constraints.txt").write_text(
            "".join(f"{line}\n" for line in self._request.constraints)
        )
        by_path = proxy is not None and self._way.by_path
        plan = Plan(
            folder=str(self._venv),
            packages=engine_packages.folders(),
            requirements=str(self._files / "requirements.txt"),
            constraints=str(self._files / "constraints.txt"),
            uv=self._builder.uv,
            options=list(uv_command.options(self._index, wheels_only=bool(self._way.wheels_only))),
            socket=str(self._files / IndexProxy.NAME) if by_path else "",
            port=proxy.port if proxy is not None else 0,
        )
        (self._files / "plan.json").write_text(json.dumps(plan))
        for path in (*self._files.iterdir(), self._files, self._venv):
            # Files of this process have the modes of its umask.
            if path.is_file():
                path.chmod(0o600)
            if owner is not None:
                os.chown(path, *owner)

    def _sandbox(self, minimum: Level, proxy: IndexProxy | None) -> SandboxRequest:
        index, network = self._index, self._way.network
        # uv may be in the home of the user that started the worker.
        program = Path(self._builder.uv)
        variables = {"LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1", "PYTHONNOUSERSITE": "1"}
        return SandboxRequest(
            minimum=minimum,
            readable=(str(self._files), *index.readable, str(program), str(program.resolve())),
            writable=(str(self._venv),),
            folder=str(self._venv),
            network=network,
            ports=(proxy.port,) if network and proxy is not None else (),
            tcp_only=network,
            environment=variables | uv_command.variables(index),
            limits=self._builder.limits.sandbox_limits(),
        )

    def _wait(self, watch: Watch, process: SandboxProcess, stopped: threading.Event) -> int:
        seconds = self._builder.limits.seconds
        deadline = time.monotonic() + seconds
        while True:
            try:
                return watch.wait(PAUSE)
            except subprocess.TimeoutExpired:
                if stopped.is_set():
                    process.kill()
                    watch.stop()
                    raise BuildStopped from None
                if time.monotonic() > deadline:
                    process.kill()
                    watch.stop()
                    raise BuildFailed(
                        f"The installation of the packages took longer than {seconds:.0f} s.",
                        code="package_time",
                    ) from None

    def _read(self, chunk: bytes, receive: Callable[[str], None]) -> None:
        for raw in self._splitter.feed(chunk):
            self._emit(raw, receive)

    def _emit(self, raw: bytes, receive: Callable[[str], None]) -> None:
        # A progress bar writes its states one over another: keep the last one.
        text = _TERMINAL.sub("", raw.decode(errors="replace")).rstrip().rsplit("\r", 1)[-1]
        # Where this installation has its files is of no use for readers of the log.
        text = self._masker.mask(text).replace(f"{self._files}{os.sep}", "").replace(str(self._venv), VENV)
        line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)[:MAX_LINE]
        if built := _FROM_SOURCE.match(line):
            self.from_source.add(canonicalize_name(built["name"]))
        if line:
            self._lines.append(line)
            receive(line)


def seal(folder: Path) -> int:
    """Give everything in a folder to this process, readable for all and writable for none; return its bytes.

    Special files are deleted: a build may have left pipes at which a reader would wait.
    """
    total = 0
    for _, folders, files, descriptor in os.fwalk(folder, topdown=False, follow_symlinks=False):
        for name in (*folders, *files):
            total += _seal_entry(name, descriptor)
    _take_ownership(folder)
    folder.chmod(0o555)
    return total


def _seal_entry(name: str, parent: int) -> int:
    facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if not (stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode) or stat.S_ISLNK(facts.st_mode)):
        os.unlink(name, dir_fd=parent)
        return 0
    if os.geteuid() == 0:
        os.chown(name, 0, 0, dir_fd=parent, follow_symlinks=False)
    if not stat.S_ISLNK(facts.st_mode):
        executable = stat.S_ISDIR(facts.st_mode) or facts.st_mode & 0o111
        os.chmod(name, 0o555 if executable else 0o444, dir_fd=parent)
    return facts.st_blocks * 512


def _take_ownership(folder: Path) -> None:
    if os.geteuid() == 0:
        os.chown(folder, 0, 0)
