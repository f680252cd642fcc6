"""Installs the packages of a task's code before its runner starts."""

import asyncio
import contextlib
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from jobs.messages.events import Phase
from jobs.messages.sandbox import LevelState
from jobs.messages.task import OwnCode, Task
from jobs.spec.checks.packages import python_problem
from jobs.states import Outcome
from workers.confinement.environments import uv_command
from workers.confinement.environments.building import Builder, BuildLimits
from workers.confinement.environments.environments import Environments, limit_bytes
from workers.confinement.environments.failures import BuildFailed, BuildStopped
from workers.confinement.environments.folder import Held
from workers.confinement.environments.request import NeededPackages
from workers.confinement.environments.uv_command import NoInstaller
from workers.confinement.isolation.access import Isolation
from workers.confinement.sandbox.launch import Owner
from workers.supervise.attempt.stop_request import StopRequest
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.events.event_recorder import EventRecorder
from workers.supervise.events.line_log import LineLog
from workers.supervise.pool.sandboxes import Sandboxes

SECONDS_VARIABLE = "TRAINYARD_PACKAGE_SECONDS"
"""The time after which an installation is ended."""
SOURCE = "packages"
MAX_LINES = 5_000
"""Lines of an installation in the log of a job; the record of the environment has the last ones."""
MAX_AT_ONCE = 64


def build_limits(memory: int, environment: Mapping[str, str] = os.environ) -> BuildLimits:
    """Return the limits for installations.

    Args:
        memory: a slot's memory in bytes, which the run does not use yet.
        environment: the worker's.

    Raises:
        ValueError: a value is not a number.
    """
    text = environment.get(SECONDS_VARIABLE) or f"{BuildLimits.seconds:.0f}"
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{SECONDS_VARIABLE}={text!r}: give a number of seconds, such as 1800")
    return BuildLimits(float(text), limit_bytes(environment), max(memory, 2**30))


@dataclass
class Packages:
    """Provides the packages that code needs on this machine.

    Attributes:
        environments: has them.
        sandboxes: this machine's sandboxes.
        limits: for each installation.
        isolation: returns the object that gives processes their own users; None if runners share one.
    """

    environments: Environments
    sandboxes: Sandboxes
    limits: BuildLimits
    isolation: Callable[[], Isolation | None]
    # Not those of asyncio: a build lasts for minutes.
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(MAX_AT_ONCE, SOURCE))

    async def place(self, code: OwnCode, *, for_engine: bool) -> OwnCode:
        """Return code with the interpreter that its packages will have, before they are installed.

        Raises:
            BuildFailed: they cannot be installed; the text is the cause.
        """
        if problem := python_problem(code.requires_python, platform.python_version()):
            raise BuildFailed(problem, code="package_python")
        if not code.requirements:
            return code
        choose = partial(self.environments.choose, NeededPackages.for_code(code, for_engine=for_engine))
        digest = await asyncio.get_running_loop().run_in_executor(self._threads, choose)
        update = {
            "python": self.environments.folder.python(digest),
            "environment": digest,
            "own_versions": not for_engine,
        }
        return code.model_copy(update=update)

    async def install(
        self, task: Task, recorder: EventRecorder, stop: StopRequest, ending: "asyncio.Future[AttemptEnd]"
    ) -> "Installed | AttemptEnd":
        """Install a task's packages, unless they are; the output becomes the attempt's log lines.

        Args:
            task: with its interpreters, see `place`.
            recorder: the attempt's.
            stop: ends the installation when the run has to yield.
            ending: ends it when the run has ended.

        Returns:
            The environments, to be released after the run; the run's end, if it cannot begin.
        """
        done = Installed()
        with contextlib.ExitStack() as undo:
            undo.callback(done.release)
            if task.code is not None and task.code.requirements:
                result = await self._install(task.code, task.runs_in_engine(), recorder, stop, ending)
                if isinstance(result, AttemptEnd):
                    return result
                done.add(task.code, result)
            for model in task.models:
                if model.code is None or not model.code.requirements or model.failure:
                    continue
                result = await self._install(model.code, True, recorder, stop, ending)
                if isinstance(result, AttemptEnd) and result.outcome is Outcome.FAILED:
                    done.failures[model.name] = result.message
                elif isinstance(result, AttemptEnd):
                    return result
                else:
                    done.add(model.code, result)
            undo.pop_all()
        return done

    async def _install(
        self,
        code: OwnCode,
        for_engine: bool,
        recorder: EventRecorder,
        stop: StopRequest,
        ending: "asyncio.Future[AttemptEnd]",
    ) -> "Held | AttemptEnd | None":
        """Return the environment for code; None if the run has ended meanwhile."""
        states = asyncio.ensure_future(asyncio.shield(self.sandboxes.states))
        stopped, stopping = threading.Event(), asyncio.ensure_future(stop.wait())
        building = asyncio.ensure_future(self._ensure(code, for_engine, states, recorder, stopped))
        first: list[asyncio.Future[Any]] = [building, ending, stopping]
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            building.add_done_callback(_release)
            raise
        finally:
            stopped.set()
            stopping.cancel()
            states.cancel()
        await asyncio.wait({building})
        return _result(building, stop, ended=ending.done())

    async def _ensure(
        self,
        code: OwnCode,
        for_engine: bool,
        states: "asyncio.Future[tuple[LevelState, ...]]",
        recorder: EventRecorder,
        stopped: threading.Event,
    ) -> Held:
        try:
            await states
        except asyncio.CancelledError:
            raise BuildStopped from None
        recorder.add(Phase(time=time.time(), name="installing packages"))
        loop = asyncio.get_running_loop()
        lines = LineLog(SOURCE, recorder, MAX_LINES)
        ensure = partial(
            self.environments.ensure,
            NeededPackages.for_code(code, for_engine=for_engine),
            self._builder,
            digest=code.environment,
            minimum=code.minimum,
            receive=partial(_in_loop, loop, lines.add),
            stopped=stopped,
        )
        return await loop.run_in_executor(self._threads, ensure)

    def _builder(self) -> Builder:
        """Return this machine's builder, in a thread.

        Raises:
            BuildFailed: nothing can be installed here.
        """
        try:
            uv = uv_command.find_uv()
        except NoInstaller as error:
            raise BuildFailed(f"No packages can be installed: {error}.", code="package_installer") from None
        isolation = self.isolation() if self.sandboxes.have_own_users else None
        claim = contextlib.nullcontext if isolation is None else partial(_claimed, isolation)
        return Builder(self.sandboxes.states.result(), uv, claim, self.limits)

    def close(self) -> None:
        """End the threads. All runs must have ended."""
        self._threads.shutdown(wait=False)


class Installed:
    """The environments for a task.

    Attributes:
        failures: why models cannot be executed, by their names.
        recorded: the code whose packages are recorded with the attempt, the first one, and these.
    """

    def __init__(self) -> None:
        self.failures: dict[str, str] = {}
        self.recorded: tuple[OwnCode, Held] | None = None
        self._held: list[Held] = []

    def add(self, code: OwnCode, held: Held | None) -> None:
        """Keep an environment until the run has ended."""
        if held is not None:
            self._held.append(held)
            self.recorded = self.recorded or (code, held)

    def release(self) -> None:
        """Let the environments be removed when their space is needed."""
        for held in self._held:
            held.release()
        self._held.clear()


def _in_loop(loop: asyncio.AbstractEventLoop, receive: Callable[[str], None], line: str) -> None:
    # The loop of a node that ends may be closed.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(receive, line)


@contextlib.contextmanager
def _claimed(isolation: Isolation) -> Iterator[Owner]:
    """Give a build its own user."""
    with isolation.users.claimed() as user:
        yield Owner(user.uid, isolation.users.group)


def _release(building: "asyncio.Future[Held]") -> None:
    if not building.cancelled() and building.exception() is None:
        building.result().release()


def _result(
    building: "asyncio.Future[Held]", stop: StopRequest, *, ended: bool
) -> "Held | AttemptEnd | None":
    error = building.exception()
    if error is None and not ended and not stop.requested:
        return building.result()
    if error is None:
        building.result().release()
    if ended:
        return None
    if stop.requested:
        return stop.ending()
    if isinstance(error, BuildFailed):
        return AttemptEnd(Outcome.FAILED, error.code, error.message)
    assert error is not None  # noqa: S101  a run that did not end has one
    return AttemptEnd.from_error(error)
