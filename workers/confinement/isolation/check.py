"""Finds out, by trying, whether this service can give each runner its own user."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from workers.confinement.isolation.access import Isolation, RunnerAccess
from workers.confinement.isolation.users import VARIABLE, RunnerUsers, UidRange
from workers.confinement.isolation.view import View, ancestors
from workers.system import kernel

Level = Literal["own_user", "shared"]
# Seconds. A probe takes half a second on an idle machine; its finding is valid until the worker starts again.
TIMEOUT = 120.0
_PRIVATE = "Each runner has a user id of its own and sees no files of the service but its own folders."
_CLOSED = "Each runner has a user id of its own and can enter no folders of the service but its own."


class IsolationState(NamedTuple):
    """Whether runners have their own users, and a sentence about it for people."""

    level: Level
    message: str

    @classmethod
    def shared(cls, reason: str) -> "IsolationState":
        """Return the state for runners that have the service's user."""
        return cls("shared", f"Runners share the user of the service and can read its keys: {reason}.")


class ProbeFailed(Exception):
    """A confined process cannot work, or sees too much. The text is the reason."""


@dataclass(frozen=True)
class Folders:
    """A worker's folders.

    Attributes:
        home: everything that belongs to the installation.
        store: the artifacts; it may be outside the home.
        locks: has a lock for each user id in use.
        runners: has a folder for each runner.
        shared: have folders that runners use: for attempts, checkpoints and compiled programs.
    """

    home: Path
    store: Path
    locks: Path
    runners: Path
    shared: tuple[Path, ...]

    def private_entries(self) -> list[Path]:
        """Return files and folders that no runner may read."""
        folders = (self.home, self.store, self.runners)
        return [*folders, *(entry for folder in folders[:2] for entry in folder.iterdir())]


def find_isolation(
    folders: Folders, uids: UidRange | None, environment: Mapping[str, str]
) -> tuple[Isolation | None, IsolationState]:
    """Return how runners are isolated; None if they have the service's user.

    Args:
        folders: this worker's.
        uids: the configured user ids; None if it is switched off.
        environment: for runners.
    """
    if uids is None:
        return None, IsolationState.shared(f"{VARIABLE} is off")
    if sys.platform != "linux":
        return None, IsolationState.shared("this needs Linux")
    granted = kernel.effective_capabilities()
    if missing := [name for name, bit in kernel.CAPABILITIES.items() if not granted >> bit & 1]:
        return None, IsolationState.shared(f"the service does not have {', '.join(missing)}")
    problems = []
    for isolation, message in _candidates(folders, RunnerUsers(uids, folders.locks), granted):
        try:
            _probe(isolation, folders, environment)
        except (ProbeFailed, OSError, subprocess.TimeoutExpired) as error:
            problems.append(str(error))
        else:
            return isolation, IsolationState("own_user", message)
    return None, IsolationState.shared("; ".join(dict.fromkeys(problems)))


def parents_of(folders: Folders) -> tuple[Path, ...]:
    """Return the folders that processes in the machine's view must enter to reach their own."""
    parents = {
        parent
        for folder in (folders.runners, *folders.shared)
        for top in (folders.home, folders.store)
        for parent in ancestors(folder, top)
    }
    return (*sorted(parents), folders.runners, *folders.shared)


def _candidates(folders: Folders, users: RunnerUsers, granted: int) -> Iterator[tuple[Isolation, str]]:
    """Yield the ways to isolate runners, the best first."""
    if granted >> kernel.CAP_SYS_ADMIN & 1:
        view = View.hiding((folders.home, folders.store), folders.shared)
        yield Isolation(users, view, folders.shared), _PRIVATE
    yield Isolation(users, View(), parents_of(folders)), _CLOSED


def _probe(isolation: Isolation, folders: Folders, environment: Mapping[str, str]) -> None:
    """Start a confined process like a runner.

    Raises:
        ProbeFailed: it cannot work, or sees too much.
        OSError: it cannot be started.
    """
    isolation.open_parents()
    folder = folders.runners / "probe"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    access = isolation.create_access(folder)
    # Another worker may probe the same shared folders at this moment. It has another user id.
    scratch = [shared / f"probe-{access.user.uid}" for shared in folders.shared]
    try:
        for path in scratch:
            access.grant(path)
        readable = _run(isolation, access, scratch, folders.private_entries(), environment)
    finally:
        access.close()
        for path in scratch:
            shutil.rmtree(path, ignore_errors=True)
    if readable:
        raise ProbeFailed(f"a runner could read {readable[0]}")


def _run(
    isolation: Isolation,
    access: RunnerAccess,
    needed: list[Path],
    private: list[Path],
    environment: Mapping[str, str],
) -> list[str]:
    paths = {
        "needed": [str(path) for path in (access.home, *needed)],
        "private": [str(path) for path in private],
    }
    confinement = isolation.confinement(access).model_dump_json()
    command = [
        sys.executable,
        "-m",
        "workers.confinement.isolation.run_confined",
        confinement,
        "workers.confinement.isolation.probe",
    ]
    ended = subprocess.run(  # noqa: S603  all parts are this program's own
        [*command, json.dumps(paths)],
        cwd=access.home,
        env={**environment, "HOME": str(access.home)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    if ended.returncode != 0:
        last = (ended.stderr.strip().splitlines() or [f"status {ended.returncode}"])[-1]
        raise ProbeFailed(f"a process with a user of its own cannot work here ({last[:300]})")
    readable: list[str] = json.loads(ended.stdout)
    return readable
