"""Builders on this machine, at each sandbox level that it offers."""

import contextlib
import functools
import http.server
import os
import shutil
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jobs.messages.sandbox import Level, LevelState
from tests.sandbox.conftest import claimed, users
from workers.confinement.environments import uv_command
from workers.confinement.environments.building import Builder, BuildLimits
from workers.confinement.environments.environments import Environments
from workers.confinement.environments.folder import EnvironmentFolder, Held
from workers.confinement.environments.index import PackageIndex
from workers.confinement.environments.request import NeededPackages
from workers.confinement.isolation.users import RunnerUsers
from workers.confinement.sandbox.launch import Owner
from workers.confinement.sandbox.levels import find_levels

__all__ = ["users"]


@contextlib.contextmanager
def claim(users: RunnerUsers) -> Iterator[Owner | None]:
    if os.geteuid() != 0:
        yield None
        return
    with claimed(users) as user:
        yield Owner(user.uid, user.uid)


@pytest.fixture(scope="session")
def levels(users: RunnerUsers) -> tuple[LevelState, ...]:
    with claim(users) as owner:
        return find_levels(None if owner is None else lambda: owner)


@pytest.fixture
def builder(users: RunnerUsers, levels: tuple[LevelState, ...]) -> Builder:
    """At the strongest level that this machine has."""
    if not any(state.offered and state.level is not Level.PROCESS for state in levels):
        pytest.skip("this machine offers no sandbox")
    return Builder(levels, uv_command.find_uv(), functools.partial(claim, users), BuildLimits(seconds=120))


@dataclass
class Bench:
    """Environments in a folder, built from wheels in another."""

    root: Path
    builder: Builder
    lines: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    index: PackageIndex | None = None

    @property
    def wheels(self) -> Path:
        folder = self.root / "wheels"
        folder.mkdir(exist_ok=True)
        # A build of a worker that is root has a user of its own.
        folder.chmod(0o755)
        return folder

    @functools.cached_property
    def environments(self) -> Environments:
        return Environments(EnvironmentFolder(self.root / "environments"), read_index=self.read_index)

    def read_index(self) -> PackageIndex:
        return self.index or PackageIndex(links=(str(self.wheels),), readable=(str(self.wheels),))

    def ensure(
        self, *requirements: str, receive: Callable[[str], None] | None = None, for_engine: bool = True,
        **options: Any,
    ) -> Held:  # fmt: skip
        return self.environments.ensure(
            NeededPackages(requirements, for_engine, **options), lambda: self.builder, minimum=Level.PROCESS,
            receive=receive or self.lines.append, stopped=self.stopped,
        )  # fmt: skip


@contextlib.contextmanager
def benches(builder: Builder) -> Iterator[Bench]:
    # Not tmp_path: users of builds cannot enter that of root.
    root = Path(tempfile.mkdtemp(prefix="trainyard-packages-"))
    root.chmod(0o711)
    before = os.umask(0o022)
    new_bench = Bench(root, builder)
    try:
        yield new_bench
    finally:
        new_bench.stopped.set()
        new_bench.environments.evict(0)
        os.umask(before)
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def bench(builder: Builder) -> Iterator[Bench]:
    with benches(builder) as new_bench:
        yield new_bench


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder, and records request paths."""

    asked: list[str]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextlib.contextmanager
def serving(folder: Path, context: ssl.SSLContext | None = None) -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def served(bench: Bench, address: str, *others: str) -> PackageIndex:
    host, _, port = address.removeprefix("http://").partition(":")
    hosts = frozenset({(host, int(port))})
    return PackageIndex(urls=(f"{address}/simple", *others), hosts=hosts, timeout=5)


def python_of(held: Held, program: str) -> str:
    """Return a program's output in an environment."""
    done = subprocess.run([held.python, "-I", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
