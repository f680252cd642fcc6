"""Two people share a box of four GPUs with a stranger: a real worker process on a fake NVIDIA library."""

import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from jobs import scheduler
from jobs.actions.runs import submit
from jobs.models import Attempt, Experiment, Job, Membership, Project, Revision, User, Worker
from tests.gpu_box import FILE, GIB, GpuBox
from tests.jobs.yard import Yard, make_yard, spec
from tests.markup import text_of
from tests.people import browser_of
from tests.supervise.processes.conftest import ROOT, NodeProcess
from tests.supervise.processes.test_node import FINAL, schedule_until
from tests.supervise.processes.test_two_machines import schedule_nothing_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]

NEARLY_ALL = 23 * GIB + GIB // 2
"""Of 24 GiB: too little is left for any training."""


@pytest.fixture
def yard(transactional_db: None) -> Yard:
    table = Path(settings.TRAINYARD_ARTIFACTS) / "aa" / ("a" * 64)
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_bytes(b"x")
    return make_yard()


class SharedBox:
    """The box, its strangers, and the worker on it."""

    def __init__(self, folder: Path, start: Callable[..., NodeProcess]) -> None:
        self.file, self._start = folder / "box.json", start
        self.box = GpuBox.of(4, uuid.uuid4().hex)
        self.strangers: list[subprocess.Popen[str]] = []
        # The worker uses GPUs only with JAX's plugin for CUDA, of which it reads the version alone.
        self._packages = folder / "packages"
        metadata = self._packages / f"jax_cuda13_plugin-{version('jaxlib')}.dist-info" / "METADATA"
        metadata.parent.mkdir(parents=True)
        metadata.write_text(f"Name: jax-cuda13-plugin\nVersion: {version('jaxlib')}\n")

    def start(self, slots: int = 4) -> NodeProcess:
        """Start the worker."""
        self.box.write(self.file)
        path = f"{ROOT / 'tests' / 'fake_nvml'}:{self._packages}"
        return self._start("--slots", str(slots), PYTHONPATH=path, JAX_PLATFORMS="", **{FILE: str(self.file)})

    def arrive(self, gpu: int, memory: int) -> int:
        """Let a stranger's process take memory of a GPU; return its pid."""
        command = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(3600)"]
        stranger = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert stranger.stdout is not None
        stranger.stdout.readline()
        self.strangers.append(stranger)
        self.box.put(gpu, stranger.pid, memory)
        self.box.write(self.file)
        return stranger.pid

    def leave(self, gpu: int) -> None:
        """Let the strangers leave a GPU."""
        self.box.gpus[gpu].processes.clear()
        self.box.write(self.file)


@pytest.fixture
def shared(tmp_path: Path, nodes: Callable[..., NodeProcess]) -> Iterator[SharedBox]:
    opened = SharedBox(tmp_path, nodes)
    yield opened
    for stranger in opened.strangers:
        stranger.kill()
        stranger.communicate()


def person(name: str) -> Callable[..., Job]:
    """Make a person with a project of her own, and return what submits her trainings."""
    user = User.objects.create(username=name)
    project = Project.objects.create(slug=name, name=name, created_by=user)
    Membership.objects.create(project=project, user=user, role="admin")

    def train(epochs: int, **parts: Any) -> Job:
        body = spec(fit={"epochs": epochs}, after={}, **parts)
        experiment = Experiment.objects.create(project=project, name="try", created_by=user)
        frozen = {"spec_json": body.to_json(), "digest": body.digest(), "created_by": user}
        return submit.submit(Revision.objects.create(experiment=experiment, number=1, **frozen), by=user)

    return train


def holders() -> dict[str, list[int]]:
    """Return the attempts on each GPU, as the worker reports them."""
    return {device["name"]: device.get("attempts", []) for device in Worker.objects.get().devices}


def devices_known() -> bool:
    return Worker.objects.filter(devices__isnull=False).exists() and len(holders()) == 4


def test_two_people_share_four_gpus_with_a_stranger_and_nobody_starves(yard: Yard, shared: SharedBox) -> None:
    stranger = shared.arrive(1, NEARLY_ALL)
    shared.start()
    # The data set belongs to the first project; both people may read it.
    yard.dataset.dataset.project = None
    yard.dataset.dataset.save(update_fields=["project"])
    ada, grace = person("ada"), person("grace")
    of_ada = [ada(900) for _ in range(3)]
    schedule_until(lambda: sum(map(len, holders().values())) == 3 if devices_known() else False, of_ada[0])
    # Shares would place some of these beside the long ones.
    both = [*of_ada, *(ada(40) for _ in range(3)), *(grace(40) for _ in range(3))]
    assert holders()["gpu:1"] == [], "the stranger's GPU is not given to a job"
    assert all(len(attempts) <= 1 for attempts in holders().values()), "nor is any other given twice"
    scheduler.tick()
    # The next job names it; the others wait for that one.
    jobs = Job.objects.filter(pk__in=[job.pk for job in both])
    waits = " ".join(jobs.values_list("why_waiting", flat=True))
    assert "GPU 1: 25 of 26 GB held by another python of this worker's user since " in waits
    assert f"process {stranger})" in waits
    page = " ".join(text_of(browser_of(User.objects.get(username="grace")).get("/workers")).split())
    assert f"process {stranger}): 25.2 GB since" in page
    assert "a job of another project" in page, "whose it is, is not for everyone"

    # Another one arrives on a GPU that a run holds: a warning, once.
    (late,) = holders()["gpu:2"]
    warned = Attempt.objects.get(pk=late).job
    shared.arrive(2, NEARLY_ALL)
    schedule_until(lambda: Job.objects.get(pk=warned.pk).warnings, of_ada[0])
    (warning,) = Job.objects.get(pk=warned.pk).warnings
    assert warning["code"] == "gpu_shared"
    assert "has begun to use gpu:2, which this run holds: 25.2 GB" in warning["message"]

    # The stranger leaves the first GPU, which the next job gets.
    shared.leave(1)
    schedule_until(lambda: holders()["gpu:1"], of_ada[0])
    schedule_until(
        lambda: all(job.state in FINAL for job in Job.objects.filter(pk__in=[j.pk for j in both])), of_ada[0]
    )
    ended = Job.objects.filter(pk__in=[job.pk for job in both])
    assert {(job.state, job.restarts) for job in ended} == {("completed", 0)}
    names = set(Job.objects.get(pk=warned.pk).series.values_list("name", flat=True))
    assert {"system/gpu2_memory_gib", "system/gpu2_load_percent", "system/gpu2_temperature_celsius"} <= names


def test_an_attempt_whose_gpu_a_stranger_takes_at_the_last_moment_waits_again_without_a_restart(
    yard: Yard, shared: SharedBox
) -> None:
    node = shared.start(slots=1)
    schedule_nothing_until(Worker.objects.exists)
    job = yard.submit(fit={"epochs": 5}, after={})
    # The worker cannot report the stranger before the scheduler decides, and reads again before it starts.
    node.process.send_signal(signal.SIGSTOP)
    shared.arrive(0, NEARLY_ALL)
    scheduler.tick()
    assert Attempt.objects.filter(job=job).count() == 1
    node.process.send_signal(signal.SIGCONT)
    schedule_until(lambda: "GPU 0: 25 of 26 GB held by" in job.why_waiting, job)
    (attempt,) = Attempt.objects.filter(job=job)
    assert attempt.error is not None
    assert (attempt.outcome, attempt.error["code"]) == ("lost", "gpu_held")
    shared.leave(0)
    schedule_until(lambda: job.state in FINAL, job)
    assert (job.state, job.restarts) == ("completed", 0)
