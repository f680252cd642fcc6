"""Finds the environment of code, or builds it; several that need the same build it once."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from packaging.utils import canonicalize_name

from jobs.contracts.environments import (
    MAX_LOG,
    MAX_PACKAGES,
    EnvironmentFacts,
    EnvironmentFailure,
    EnvironmentKey,
    InstalledPackage,
)
from jobs.contracts.packages import BadRequirement
from jobs.contracts.sandbox import Level
from workers.environments import index
from workers.environments.building import VENV, Builder, seal
from workers.environments.failures import BuildFailed, BuildStopped
from workers.environments.folder import EnvironmentFolder, Held
from workers.environments.index import NoIndex, PackageIndex
from workers.environments.request import EnvironmentRequest

BYTES_VARIABLE = "TRAINYARD_ENVIRONMENTS_BYTES"
"""The disk space of all environments of a home together."""
DEFAULT_BYTES = 20 * 2**30
WAIT = 0.2
"""Seconds between two looks whether another run has built the environment."""


class Recorder(Protocol):
    """Records builds of environments, such as in the database. Called from several threads."""

    def building(self, key: EnvironmentKey) -> None:
        """A build begins."""

    def ready(self, facts: EnvironmentFacts, log: str) -> None:
        """A build has ended well."""

    def failed(self, key: EnvironmentKey, failure: EnvironmentFailure | None, log: str) -> None:
        """A build has failed; None: it was stopped, because the run that needed it has ended."""


class NoRecorder:
    """Records nothing."""

    def building(self, key: EnvironmentKey) -> None:
        """See `Recorder`."""

    def ready(self, facts: EnvironmentFacts, log: str) -> None:
        """See `Recorder`."""

    def failed(self, key: EnvironmentKey, failure: EnvironmentFailure | None, log: str) -> None:
        """See `Recorder`."""


def limit_bytes(environment: Mapping[str, str] = os.environ) -> int:
    """Return the disk space of all environments.

    Raises:
        ValueError: it is not a whole number.
    """
    text = environment.get(BYTES_VARIABLE)
    if not text:
        return DEFAULT_BYTES
    if not text.isdecimal():
        raise ValueError(f"{BYTES_VARIABLE}={text!r}: give a number of bytes, such as {DEFAULT_BYTES}")
    return int(text)


@dataclass
class Environments:
    """The environments of one home, on this machine.

    Attributes:
        folder: has them.
        recorder: gets the begin and the end of each build.
        read_index: returns where packages come from.
    """

    folder: EnvironmentFolder
    recorder: Recorder = field(default_factory=NoRecorder)
    read_index: Callable[[], PackageIndex] = index.read

    def ensure(
        self,
        requirements: Iterable[str],
        find_builder: Callable[[], Builder],
        *,
        for_engine: bool,
        minimum: Level,
        receive: Callable[[str], None],
        stopped: threading.Event,
    ) -> Held:
        """Return an environment with packages, which is built if it is missing. Call it in a thread.

        Args:
            requirements: of the code.
            find_builder: returns what builds it, if it is missing.
            for_engine: whether models run in it, with the packages of this program.
            minimum: the weakest sandbox in which it may be built.
            receive: is called with each line of the output, in any thread.
            stopped: is set when the environment is not needed any more.

        Raises:
            BuildFailed: it cannot be built; the text is the cause.
            BuildStopped: `stopped` is set.
            OSError: the disk is full.
        """
        request, source = self._request(requirements, for_engine=for_engine)
        announced = False
        while True:
            if stopped.is_set():
                raise BuildStopped
            if (held := self.folder.hold(request.digest)) is not None:
                return held
            with self.folder.alone(request.digest) as is_alone:
                if is_alone and self.folder.facts(request.digest) is None:
                    self._build(request, source, find_builder(), minimum, receive, stopped)
            if not is_alone:
                if not announced:
                    receive("Another run installs the same packages; this one waits for it.")
                    announced = True
                stopped.wait(WAIT)

    def python_of(self, requirements: Iterable[str], *, for_engine: bool) -> str:
        """Return the interpreter that an environment has once it is built.

        Raises:
            BuildFailed: the requirements cannot be installed; the text is the cause.
        """
        return self.folder.python(self._request(requirements, for_engine=for_engine)[0].digest)

    def _request(
        self, requirements: Iterable[str], *, for_engine: bool
    ) -> tuple[EnvironmentRequest, PackageIndex]:
        try:
            source = self.read_index()
            return EnvironmentRequest.of(
                requirements, for_engine=for_engine, constraints=source.constraints
            ), source
        except BadRequirement as error:
            raise BuildFailed(str(error), code="package_requirement") from None
        except NoIndex as error:
            raise BuildFailed(f"No packages can be installed: {error}.", code="package_index") from None

    def evict(self, limit: int) -> list[str]:
        """Remove the longest unused environments above a limit; return their digests."""
        return self.folder.evict(limit)

    def _build(
        self,
        request: EnvironmentRequest,
        source: PackageIndex,
        builder: Builder,
        minimum: Level,
        receive: Callable[[str], None],
        stopped: threading.Event,
    ) -> None:
        digest = request.digest
        key = EnvironmentKey(
            digest=digest,
            requirements=request.requirements,
            python=request.python,
            platform=request.platform,
            for_engine=request.for_engine,
        )
        self.recorder.building(key)
        folder, log, began = self.folder.clear(digest), _Log(receive), time.monotonic()
        log.add(f"Installing {_some(len(request.requirements), 'requirement')} by {builder.installer.name} "
                f"from {source.described()}")  # fmt: skip
        try:
            record = builder.build(request, source, folder, minimum=minimum, receive=log.add, stopped=stopped)
            size = seal(folder / VENV)
        except BaseException as error:
            self.folder.remove(digest)
            failure = _failure(error)
            self.recorder.failed(key, failure, log.text)
            raise
        facts = EnvironmentFacts(
            **key.model_dump(),
            packages=_installed(folder / VENV),
            bytes=size,
            seconds=round(time.monotonic() - began, 1),
            built=time.time(),
            installer=builder.installer.name,
            source=source.described(),
            level=record.level,
        )
        log.add(f"Installed {_some(len(facts.packages), 'package')} in {facts.seconds} s")
        self.folder.complete(facts)
        self.recorder.ready(facts, log.text)


class _Log:
    """The output of a build: each line is passed on, and the last ones are kept."""

    def __init__(self, receive: Callable[[str], None]) -> None:
        self._receive = receive
        self._lines: deque[str] = deque()
        self._size = 0

    def add(self, line: str) -> None:
        self._receive(line)
        self._lines.append(line)
        self._size += len(line) + 1
        while self._size > MAX_LOG and self._lines:
            self._size -= len(self._lines.popleft()) + 1

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)


def _failure(error: BaseException) -> EnvironmentFailure | None:
    if isinstance(error, BuildStopped):
        return None
    if isinstance(error, BuildFailed):
        return EnvironmentFailure(code=error.code, message=error.message)
    return EnvironmentFailure(code="worker_error", message=f"The worker could not build it: {error}")


def _some(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _installed(venv: Path) -> tuple[InstalledPackage, ...]:
    """Return the packages of an environment by the names of their folders.

    No file of it is read: packages of users could have any contents, and links.
    """
    found = {}
    for folder in venv.glob("lib/python*/site-packages/*.dist-info"):
        name, _, version = folder.name.removesuffix(".dist-info").partition("-")
        found[canonicalize_name(name)[:200]] = version[:100]
    return tuple(
        InstalledPackage(name=name, version=version) for name, version in sorted(found.items())[:MAX_PACKAGES]
    )
