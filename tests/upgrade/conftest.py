"""Starts an installation on each older version's home directory, with its unfinished work."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple

import pytest

from tests.flow.yard import QUICK
from tests.upgrade import scripts
from tests.upgrade.answers import Body
from tests.upgrade.interrupted_work import STEPS
from tests.upgrade.make_home import ANSWERS
from tests.upgrade.old_yard import OldYard
from tests.upgrade.scripts import Chief
from webapp.demo.client import Client

HOMES = ("home-9f1c899", "home-5d9f311e")


class Upgraded(NamedTuple):
    """An installation that was started on an old home directory.

    Attributes:
        yard: the running installation.
        before: the old version's answers when its work was interrupted.
        script: the process that runs the external search's remaining trials.
    """

    yard: OldYard
    before: Body
    script: "Popen[bytes]"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/upgrade/" in item.path.as_posix():
            item.add_marker(pytest.mark.flow)


@pytest.fixture(scope="package", params=HOMES)
def upgraded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    """Unpack a home, start everything on it, and resume the interrupted search with a script."""
    folder = tmp_path_factory.mktemp("upgrade")
    with tarfile.open(Path(__file__).with_name(f"{request.param}.tar.xz")) as tar:
        tar.extractall(folder / "home", filter="data")
    before = json.loads((folder / "home" / ANSWERS).read_text())
    yard = OldYard(folder / "home", **(QUICK | {"TRAINYARD_STANDBY": "0"}))
    processes: list[Popen[bytes]] = []
    try:
        yard.start("--slots", "4")
        yard.urls = yard.ready()
        yard.tokens = before["tokens"]
        yard.ada = Client(yard.urls["web"], yard.tokens["ada"], "ada")
        chief = Chief(yard, folder, scripts.INTERRUPTED, "--port", scripts.free_port())
        processes.append(chief.process)
        processes.append(chief.start_script())
        for step in STEPS:  # these jobs waited in a pool without workers
            yard.change("PATCH", f"/jobs/{before['searches'][step]}", {"pool": "default"})
        yield Upgraded(yard, before, script=processes[-1])
    finally:
        for process in processes:
            process.kill()
            process.wait()
        yard.end()
