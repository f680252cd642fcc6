"""A chief and two unmodified scripts as processes on a real database, without scheduler and broker."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from django.db import connection

from jobs.models import Job, Membership, Project, Role, Trial
from tests.ops.conftest import ROOT, wait_for
from tests.people import make_person
from webapp.ops.parent_death import argv_dying_with_parent

HERE = Path(__file__).parents[1]
SECONDS = 60.0

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(300),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="its processes open the test's database file"),
]


class ChiefProcess:
    """`manage.py chief`, with a short grace period for disconnected scripts."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.log = folder / f"chief-{len(list(folder.glob('chief-*')))}.log"
        command = [sys.executable, "manage.py", "chief", "--project", "yard", "--name", "parabola"]
        self.process = subprocess.Popen(
            argv_dying_with_parent([*command, "--by", "ada", "--grace", "0.5", *options]),
            cwd=ROOT,
            env=os.environ
            | {
                "DJANGO_SETTINGS_MODULE": "webapp.settings.test",
                "TRAINYARD_DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
                "TRAINYARD_REDIS_URL": "unix:///nowhere/valkey.sock",
            },
            stdout=self.log.open("ab"),
            stderr=subprocess.STDOUT,
        )

    @property
    def port(self) -> int:
        """The port it listens on, once it is printed."""

        def printed() -> int | None:
            match = re.search(r"ORACLE_PORT=(\d+)", self.log.read_text())
            assert match or self.process.poll() is None, self.log.read_text()
            return int(match[1]) if match else None

        return wait_for(printed, "the chief", SECONDS)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Scripts:
    """Scripts that share one import of KerasTuner."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.parent = subprocess.Popen(
            argv_dying_with_parent([sys.executable, str(HERE / "forked.py"), str(folder)]),
            env=os.environ
            | {
                "KERAS_BACKEND": "jax",
                "KERASTUNER_ORACLE_IP": "127.0.0.1",
                "KERASTUNER_ORACLE_PORT": str(port),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "scripts.log").open("ab"),
            text=True,
        )

    def start(self, script: str) -> psutil.Process:
        assert self.parent.stdin is not None and self.parent.stdout is not None
        self.parent.stdin.write(f"{script}\n")
        self.parent.stdin.flush()
        while not (line := self.parent.stdout.readline()).strip().isdigit():
            assert line, (self.folder / "scripts.log").read_text()
        return psutil.Process(int(line))

    def close(self) -> None:
        for child in psutil.Process(self.parent.pid).children():
            with suppress(psutil.NoSuchProcess):
                child.kill()
        self.parent.kill()
        self.parent.wait()


@pytest.fixture
def project(db: None) -> Project:
    ada = make_person("ada")
    project = Project.objects.create(slug="yard", name="The yard", created_by=ada)
    Membership.objects.create(project=project, user=ada, role=Role.MEMBER)
    return project


@pytest.fixture
def start(tmp_path: Path, project: Project) -> Iterator[Callable[..., ChiefProcess]]:
    started: list[ChiefProcess] = []

    def begin(*options: str) -> ChiefProcess:
        started.append(ChiefProcess(tmp_path, *options))
        return started[-1]

    yield begin
    for chief in started:
        chief.kill()


def held(folder: Path, script: str) -> list[str]:
    """Return the trials that a script has had, in order."""
    files = sorted(folder.glob(f"{script}-has-*"), key=lambda file: file.stat().st_mtime_ns)
    return [file.name.rpartition("has-")[2] for file in files]


def test_scripts_and_the_chief_itself_are_killed_and_no_trial_is_lost(
    tmp_path: Path, start: Callable[..., ChiefProcess]
) -> None:
    chief = start("--max-trials", "5")
    scripts = Scripts(tmp_path, chief.port)
    try:
        hold_a, hold_b = tmp_path / "hold-a", tmp_path / "hold-b"
        hold_a.touch()
        hold_b.touch()
        doomed = scripts.start("a")
        wait_for(lambda: held(tmp_path, "a"), "a's first trial", SECONDS)
        scripts.start("b")
        doomed.kill()  # during the trial that would have defined the space
        wait_for(lambda: held(tmp_path, "b"), "b to take it over", SECONDS)
        assert (held(tmp_path, "a"), held(tmp_path, "b")) == (["1-1"], ["1-2"])

        port = chief.port
        chief.kill()  # b trains meanwhile and makes no call
        again = start("--max-trials", "5")
        assert again.port == port
        hold_a.unlink()
        hold_b.unlink()
        scripts.start("a")
        assert again.process.wait(SECONDS) == 0
        best = wait_for(lambda: _read(tmp_path / "best-a"), "a's end", SECONDS)
    finally:
        scripts.close()
    search = Job.objects.called("search").get()
    trials = list(Trial.objects.order_by("number"))
    assert search.state == "completed", again.log.read_text()
    assert [trial.state for trial in trials] == ["completed"] * 5
    assert [trial.restarts for trial in trials] == [1, 0, 0, 0, 0]
    assert all(trial.score is not None and {"x", "kind"} <= set(trial.values) for trial in trials)
    assert int(best.partition("-")[0]) == search.results_json["best_trial"]["number"]


def _read(file: Path) -> str:
    return file.read_text() if file.exists() else ""
