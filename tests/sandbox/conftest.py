"""The levels that this machine offers to a worker that is root and to one without privileges."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jobs.messages.fork import Confinement
from jobs.messages.sandbox import Level, LevelState
from tests.sandbox.exercise import Results, exercise
from tests.sandbox.unprivileged import FORKED
from workers.confinement.isolation.users import RunnerUser, RunnerUsers, UidRange
from workers.confinement.isolation.view import CODE_ROOT, View
from workers.confinement.sandbox import landlock
from workers.confinement.sandbox.launch import Owner
from workers.confinement.sandbox.levels import find_levels
from workers.system import kernel

VARIABLE = "TRAINYARD_REQUIRE_SANDBOXES"
"""With `1`, no level may be skipped that the machine could offer to a worker that is root."""
UIDS = UidRange(60600, 61100)
WORKERS = ("root", "user")
CASES = [(worker, level) for worker in WORKERS for level in Level]
WAYS = ("new", "forked")
"""How runs begin: as new interpreters, or as forks of a fork server."""
TIMEOUT = 240


@dataclass
class Cases:
    """Finds the levels, and exercises each once, when the first test asks for it."""

    users: RunnerUsers
    _results: dict[tuple[str, Level, bool], Results] = field(default_factory=dict)
    _states: dict[str, tuple[LevelState, ...]] = field(default_factory=dict)

    def results(self, worker: str, level: Level, *, forked: bool = False) -> Results:
        """Return a level's results; skip the test if the machine does not offer it."""
        self.require(worker, level)
        if (worker, level, forked) not in self._results and worker == "user":
            way = (FORKED,) if forked else ()
            results = _as_user_without_privileges(*way, *Level, users=self.users)["results"]
            for name, values in results.items():
                self._results[worker, Level(name), forked] = Results.from_json(values)
        elif (worker, level, forked) not in self._results:
            with claimed(self.users) as user:
                owner = Owner(user.uid, user.uid)
                self._results[worker, level, forked] = exercise(level, owner, python(), forked=forked)
        return self._results[worker, level, forked]

    def require(self, worker: str, level: Level) -> None:
        """Skip the test if the machine does not offer a level."""
        if os.geteuid() != 0 and worker == "root":
            pytest.skip("needs root")
        if worker not in self._states:
            self._find(worker)
        state = next(candidate for candidate in self._states[worker] if candidate.level is level)
        if not state.offered:
            reason = f"a worker that is {worker} has no {level}: {state.reason}"
            if os.environ.get(VARIABLE) == "1" and worker == "root" and _is_possible(level):
                pytest.fail(f"{reason} ({VARIABLE}=1)")
            pytest.skip(reason)

    def strongest(self) -> tuple[str, Level]:
        """Return who runs the tests, and the strongest level that the machine offers them."""
        worker = "root" if os.geteuid() == 0 else "user"
        if worker not in self._states:
            self._find(worker)
        offered = {state.level for state in self._states[worker] if state.offered}
        return worker, max((level for level in Level if level in offered), key=lambda level: level.strength)

    def _find(self, worker: str) -> None:
        if worker == "root":
            with claimed(self.users) as user:
                self._states[worker] = find_levels(lambda: Owner(user.uid, user.uid), python())
            return
        # No exercise, which takes ten times as long: others need the states alone.
        states = _as_user_without_privileges(users=self.users)["states"]
        self._states[worker] = tuple(map(LevelState.model_validate, states))


def _as_user_without_privileges(*arguments: str, users: RunnerUsers) -> dict[str, Any]:
    """Exercise the given levels; return all levels' states, and the results."""
    findings: dict[str, Any] = json.loads(as_user("tests.sandbox.unprivileged", *arguments, users=users))
    return findings


def _is_possible(level: Level) -> bool:
    """Return whether the kernel allows a level to root. bubblewrap can be installed."""
    if level is Level.LANDLOCK:
        return landlock.version() > 0
    return level is Level.PROCESS or bool(kernel.effective_capabilities() >> kernel.CAP_SYS_ADMIN & 1)


class claimed:  # noqa: N801  read as a function
    """A user id that no other process has."""

    def __init__(self, users: RunnerUsers) -> None:
        self._users = users

    def __enter__(self) -> RunnerUser:
        self._user = self._users.claim()
        return self._user

    def __exit__(self, *_: object) -> None:
        self._user.end_processes()
        self._user.release()


def as_user(module: str, *arguments: str, users: RunnerUsers) -> str:
    """Run a module as a user without privileges, and return its output."""
    command = [sys.executable, "-m", module, *arguments]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CODE_ROOT)}
    if os.geteuid() != 0:
        return _run(command, environment)
    with claimed(users) as user:
        hidden, visible = View.hiding((), ())
        confinement = Confinement(uid=user.uid, group=user.uid, hidden=hidden, visible=visible)
        confined = ["workers.confinement.isolation.run_confined", confinement.model_dump_json()]
        return _run([*command[:2], *confined, *command[2:]], environment)


def _run(command: list[str], environment: dict[str, str]) -> str:
    ended = subprocess.run(
        command, env=environment, cwd="/", capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def python() -> str:
    """Return a Python that any user can run: the tests' may be in a user's closed home."""
    interpreter = Path(sys.executable).resolve()
    closed = [folder for folder in interpreter.parents if not folder.stat().st_mode & 0o001]
    return (shutil.which("python3", path="/usr/bin:/usr/local/bin") if closed else None) or sys.executable


@pytest.fixture(scope="session")
def users(tmp_path_factory: pytest.TempPathFactory) -> RunnerUsers:
    return RunnerUsers(UIDS, tmp_path_factory.mktemp("users"))


@pytest.fixture(scope="session")
def cases(users: RunnerUsers) -> Cases:
    return Cases(users)


@pytest.fixture(params=[(*case, way) for case in CASES for way in WAYS], ids="-".join)
def case(request: pytest.FixtureRequest, cases: Cases) -> Results:
    worker, level, way = request.param
    return cases.results(worker, level, forked=way == "forked")


@pytest.fixture
def owner(users: RunnerUsers) -> Iterator[Owner | None]:
    """A run's user, if the tests are run by root."""
    if os.geteuid() != 0:
        yield None
        return
    with claimed(users) as user:
        yield Owner(user.uid, user.uid)
