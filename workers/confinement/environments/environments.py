"""Finds the environment that code needs, or builds it; several that need the same build it once."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jobs.messages.environments import (
    MAX_LOG,
    EnvironmentFacts,
    EnvironmentFailure,
    EnvironmentKey,
    InstalledPackage,
)
from jobs.messages.sandbox import Level
from jobs.spec.checks.packages import BadRequirement
from workers.confinement.environments import contents, engine_packages, index, uv_command
from workers.confinement.environments.building import VENV, Builder, seal
from workers.confinement.environments.failures import BuildFailed, BuildStopped
from workers.confinement.environments.folder import EnvironmentFolder, Held
from workers.confinement.environments.index import NoIndex, PackageIndex
from workers.confinement.environments.request import EnvironmentRequest, NeededPackages

BYTES_VARIABLE = "TRAINYARD_ENVIRONMENTS_BYTES"
"""The disk space of all environments of a home together."""
DEFAULT_BYTES = 20 * 2**30
MOST_DIFFERENCES = 10
"""Packages that a message names."""
WAIT = 0.2
"""Seconds between two looks whether another run has built the environment."""


class Recorder(Protocol):
    """Records when environments are built, such as in the database. Called from several threads."""

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
    """Return the disk space that all environments use.

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
        recorder: records when each build begins and ends.
        read_index: returns where packages come from.
    """

    folder: EnvironmentFolder
    recorder: Recorder = field(default_factory=NoRecorder)
    read_index: Callable[[], PackageIndex] = index.read

    def ensure(
        self,
        needed: NeededPackages,
        find_builder: Callable[[], Builder],
        *,
        minimum: Level,
        receive: Callable[[str], None],
        stopped: threading.Event,
        digest: str = "",
    ) -> Held:
        """Return an environment with packages, which is built if it is missing. Call it in a thread.

        Args:
            needed: the packages.
            find_builder: returns what builds it, if it is missing.
            minimum: the weakest sandbox in which it may be built.
            receive: is called with each output line, in any thread.
            stopped: is set when the environment is not needed any more.
            digest: the environment's, if `choose` has returned it before.

        Raises:
            BuildFailed: it cannot be built with exactly these packages; the text is the cause.
            BuildStopped: `stopped` is set.
            OSError: the disk is full.
        """
        request, source = self._request(needed)
        digest = digest or self._choice(request)
        announced = False
        while True:
            if stopped.is_set():
                raise BuildStopped
            if (held := self.folder.hold(digest)) is not None:
                return _with_packages(held, request)
            with self.folder.alone(digest) as is_alone:
                if is_alone and self.folder.facts(digest) is None:
                    self._build(digest, request, source, find_builder(), minimum, receive, stopped)
            if not is_alone:
                if not announced:
                    receive("Another run installs the same packages; this one waits for it.")
                    announced = True
                stopped.wait(WAIT)

    def choose(self, needed: NeededPackages) -> str:
        """Return the digest of the environment that has the packages, or will have them once it is built.

        Raises:
            BuildFailed: the requirements cannot be installed; the text is the cause.
        """
        return self._choice(self._request(needed)[0])

    def _choice(self, request: EnvironmentRequest) -> str:
        """Return the digest of an environment that has been built with the same packages in any way."""
        if request.installed is None:
            return request.digest
        return self.folder.find(request.base, request.installed) or request.digest

    def _request(self, needed: NeededPackages) -> tuple[EnvironmentRequest, PackageIndex]:
        try:
            source = self.read_index()
            return EnvironmentRequest.for_this_interpreter(needed, constraints=source.constraints), source
        except BadRequirement as error:
            raise BuildFailed(str(error), code="package_requirement") from None
        except NoIndex as error:
            raise BuildFailed(f"No packages can be installed: {error}.", code="package_index") from None

    def evict(self, limit: int) -> list[str]:
        """Remove the longest unused environments above a limit; return their digests."""
        return self.folder.evict(limit)

    def _build(
        self,
        digest: str,
        request: EnvironmentRequest,
        source: PackageIndex,
        builder: Builder,
        minimum: Level,
        receive: Callable[[str], None],
        stopped: threading.Event,
    ) -> None:
        key = EnvironmentKey(
            digest=digest,
            requirements=request.requirements,
            python=request.python,
            platform=request.platform,
            for_engine=request.for_engine,
            base=request.base,
        )
        self.recorder.building(key)
        folder, log, began = self.folder.clear(digest), _Log(receive), time.monotonic()
        what = "requirement" if request.packages is None else "recorded package"
        log.add(f"Installing {_some(len(request.lines), what)} by {uv_command.NAME} "
                f"from {source.described()}")  # fmt: skip
        try:
            built = builder.build(request, source, folder, minimum=minimum, receive=log.add, stopped=stopped)
            size = seal(folder / VENV)
            packages = contents.installed(folder / VENV, built.from_source)
            _require_same(request, packages)
        # Whatever ends a build early is recorded, and the next build begins in an empty folder.
        except BaseException as error:
            self.folder.remove(digest)
            failure = _explain_exact_build(error) if request.packages is not None else error
            self.recorder.failed(key, _failure(failure), log.text)
            if failure is error:
                raise
            raise failure from error
        facts = EnvironmentFacts(
            **key.model_dump(),
            packages=packages,
            bytes=size,
            seconds=round(time.monotonic() - began, 1),
            built=time.time(),
            installer=uv_command.NAME,
            source=source.described(),
            level=built.sandbox.level,
            recorded=request.packages,
        )
        log.add(f"Installed {_some(len(facts.packages), 'package')} in {facts.seconds} s")
        self.folder.complete(facts)
        self.recorder.ready(facts, log.text)


class _Log:
    """Passes on each output line of a build, and keeps the last ones."""

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


def _with_packages(held: Held, request: EnvironmentRequest) -> Held:
    """Return an environment if it has exactly the requested packages.

    Raises:
        BuildFailed: it has others. Another run has built it between the choice and now.
    """
    if request.installed in (None, held.facts.installed):
        return held
    held.release()
    raise BuildFailed(
        "Other versions of the packages were installed while this run began; start it again.",
        code="packages_changed",
    )


def _require_same(request: EnvironmentRequest, installed: Sequence[InstalledPackage]) -> None:
    """Check that exactly the requested packages are installed, and no others."""
    if request.packages is None:
        return
    differ = contents.differences(request.packages, installed, engine_packages.installed())
    if differ:
        more = f"; and {len(differ) - MOST_DIFFERENCES} more" if len(differ) > MOST_DIFFERENCES else ""
        raise BuildFailed("; ".join(differ[:MOST_DIFFERENCES]) + more, code="packages_changed")


def _explain_exact_build(error: BaseException) -> BaseException:
    """Return the failure for a build with exact packages, with its meaning."""
    if not isinstance(error, BuildFailed):
        return error
    cause = error.message.rstrip(".")
    return BuildFailed(
        f"The packages that are recorded for this code cannot be installed again exactly: {cause}.",
        code=error.code,
    )
