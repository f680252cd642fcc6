"""Two workers that have only the database, the broker and the artifact store in common."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings

from jobs.actions.data import datasets
from jobs.models import Artifact, Attempt, Checkpoint, InstallationSettings, Job, Worker
from jobs.queries.runs import events as event_log
from jobs.store import store
from tests.jobs.yard import Yard, make_yard
from tests.supervise.processes.conftest import NodeProcess
from tests.supervise.processes.test_node import FINAL, points, schedule_until
from workers.engine.killpoint import VARIABLE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]

EPOCHS = 900
"""Of 20 ms each, and some more for their events."""


class Machines:
    """Machines with homes of their own."""

    def __init__(self, start: Callable[..., NodeProcess], place: Path, artifacts: str) -> None:
        self._start, self._place, self._artifacts = start, place, artifacts
        self.nodes: dict[str, NodeProcess] = {}

    def start(self, name: str, **environment: str) -> NodeProcess:
        home = self._place / f"home-{name}"
        home.mkdir(mode=0o700, exist_ok=True)
        own = {"TRAINYARD_TEST_HOME": str(home), "TRAINYARD_ARTIFACTS": self._artifacts}
        self.nodes[name] = self._start(name=name, **own | environment)
        schedule_nothing_until(lambda: Worker.objects.filter(name=name, state="up").exists())
        return self.nodes[name]


def schedule_nothing_until(condition: Callable[[], object]) -> None:
    job = Job(state="completed")
    job.refresh_from_db = lambda *_: None  # type: ignore[method-assign]
    schedule_until(condition, job)


@pytest.fixture
def machines(
    nodes: Callable[..., NodeProcess], tmp_path: Path, settings: Any, transactional_db: None
) -> Machines:
    artifacts = f"file://{tmp_path}/store"
    settings.TRAINYARD_ARTIFACTS = artifacts
    settings.TRAINYARD_HOME = tmp_path / "scheduler"
    (tmp_path / "scheduler").mkdir(mode=0o700)
    return Machines(nodes, tmp_path, artifacts)


@pytest.fixture
def yard(machines: Machines, tmp_path: Path) -> Yard:
    (tmp_path / "table").write_bytes(b"x")
    digest = store().put(tmp_path / "table").digest
    yard = make_yard()
    Artifact.objects.create(digest=digest, bytes=1)
    yard.dataset.table_id = digest
    yard.dataset.save(update_fields=["table"])
    return yard


def copied() -> Any:
    return Checkpoint.objects.filter(stored__isnull=False)


def end(machines: Machines, name: str, number: signal.Signals) -> None:
    process = machines.nodes[name].process
    process.send_signal(number)
    process.wait(90)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_other_machine_continues_within_one_checkpoint(
    yard: Yard, machines: Machines, number: signal.Signals
) -> None:
    machines.start("a", TRAINYARD_NODE_UPLOAD="0.05")
    job = yard.submit(fit={"epochs": EPOCHS}, after={})
    schedule_until(lambda: copied().filter(epoch__gt=20).exists(), job)
    machines.start("b", TRAINYARD_NODE_UPLOAD="0.05")
    schedule_until(lambda: copied().filter(epoch__gt=60).exists(), job)
    end(machines, "a", number)
    written = Checkpoint.objects.order_by("-epoch").values_list("epoch", flat=True)[0]
    newest = copied().order_by("-epoch").values_list("epoch", flat=True)[0]
    assert newest >= written - 20
    if number is signal.SIGTERM:
        assert newest == written
    schedule_until(lambda: job.state in FINAL, job)
    first, second = Attempt.objects.filter(job=job).order_by("number")
    assert (first.worker.name, second.worker.name) == ("a", "b")
    series = job.series.get(attempt=second.number, name="loss")
    assert series.count == EPOCHS - newest
    assert job.warnings == []
    assert points(job) == {(0, 0): list(range(1, EPOCHS + 1))}


@pytest.mark.parametrize("point", ["upload.packed:3", "upload.stored:3"])
def test_a_supervisor_killed_during_an_upload_leaves_no_half_checkpoint(
    yard: Yard, machines: Machines, point: str
) -> None:
    machines.start("a", TRAINYARD_NODE_UPLOAD="0.05", **{VARIABLE: point})
    job = yard.submit(fit={"epochs": EPOCHS}, after={})
    schedule_until(lambda: machines.nodes["a"].process.poll() is not None, job)
    newest = copied().order_by("-epoch").values_list("epoch", flat=True)[0]
    machines.start("b")
    schedule_until(lambda: job.state in FINAL, job)
    assert job.state == "completed", job.error
    series = job.series.filter(name="loss").order_by("-attempt")[0]
    assert series.count == EPOCHS - newest
    assert job.warnings == []


def test_a_start_from_the_first_epoch_is_a_warning_with_the_reason(yard: Yard, machines: Machines) -> None:
    # No copy is made before the kill.
    machines.start("a", **{VARIABLE: "upload.packed:1"})
    job = yard.submit(fit={"epochs": EPOCHS}, after={})
    schedule_until(lambda: machines.nodes["a"].process.poll() is not None, job)
    assert Checkpoint.objects.exists()
    machines.start("b")
    schedule_until(lambda: job.state in FINAL, job)
    assert job.state == "completed"
    [warning] = job.warnings
    assert warning["code"] == "restarted"
    assert "is only on worker a, which had not copied it to the artifact store" in warning["message"]
    events = event_log.read_events(job.pk, after=0, limit=10_000).items
    assert [event["code"] for event in events if event["type"] == "warning"] == ["restarted"]


def test_a_worker_with_the_key_of_another_installation_ends_with_one_sentence(
    nodes: Callable[..., NodeProcess], tmp_path: Path, transactional_db: None
) -> None:
    InstallationSettings.objects.create(pk=1, identity="a" * 32, key="b" * 16)
    home = tmp_path / "home" / os.environ.get("PYTEST_XDIST_WORKER", "main")
    home.mkdir(mode=0o700, parents=True)
    (home / "secret.key").write_text("x" * 60)
    (home / "secret.key").chmod(0o600)
    node = nodes(TRAINYARD_TEST_HOME=str(home.parent))
    assert node.process.wait(60) == 1
    last = node.log.read_text().splitlines()[-1]
    assert last.startswith(f"The secret key in {home}/secret.key is ")
    assert last.endswith(": remove the file, since a worker needs no key.")
    assert not Worker.objects.exists()
    (home / "secret.key").unlink()
    nodes(TRAINYARD_TEST_HOME=str(home.parent))
    schedule_nothing_until(lambda: Worker.objects.filter(state="up").exists())
    assert not (home / "secret.key").exists()


def test_a_training_ends_with_the_same_weights_as_an_unbroken_one(machines: Machines) -> None:
    yard = make_yard()
    iris = datasets._ensure_bundled_one("iris", "Iris", "")
    real = {"TRAINYARD_RUNNER_MODULE": "workers.runner", "TRAINYARD_CHECKPOINT_SECONDS": "0.2"}
    machines.start("a", TRAINYARD_NODE_UPLOAD="0.1", **real)
    profile = Job.objects.get(kind="profile")
    schedule_until(lambda: profile.state in FINAL, profile)
    iris.refresh_from_db()
    assert iris.state == "ready"
    parts: dict[str, Any] = {
        "data": {"dataset": "iris"},
        "fit": {"epochs": 4000, "batch_size": 16},
        "after": {},
    }
    broken = yard.submit(**parts)
    schedule_until(lambda: copied().filter(job=broken).count() > 1, broken)
    machines.start("b", **real)
    schedule_until(lambda: copied().filter(job=broken, epoch__gt=179).exists(), broken)
    end(machines, "a", signal.SIGKILL)
    assert broken.state not in FINAL
    written = Checkpoint.objects.filter(job=broken).order_by("-pk")[:2]
    newest = copied().filter(job=broken).order_by("-epoch")[0]
    assert newest in written, "the last checkpoint or the one before it"
    schedule_until(lambda: broken.state in FINAL, broken)
    assert broken.state == "completed", broken.error
    second = Attempt.objects.filter(job=broken).order_by("-number")[0]
    [resumed] = second.record["resumed"]
    assert resumed["epoch"] == newest.epoch
    assert resumed["saved"] == resumed["loaded"]
    whole = yard.submit(**parts)
    schedule_until(lambda: whole.state in FINAL, whole)
    assert whole.attempts.count() == 1
    assert outputs(broken) == outputs(whole)
    assert django_settings.TRAINYARD_ARTIFACTS.startswith("file://")


def outputs(job: Job) -> dict[str, str]:
    """Return the digests of the predictions and of the evaluation, by role."""
    rows = job.artifacts.filter(role__in=("predictions", "validation_predictions", "evaluation"))
    return dict(rows.values_list("role", "artifact_id"))
