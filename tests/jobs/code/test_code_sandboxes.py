"""The sandbox of a job with code: the level that it needs, and the one that it had."""

from pathlib import Path

import pytest

from jobs.actions.code import own_code, sandboxes
from jobs.actions.runs import attempts, schedule
from jobs.answers.code.sandbox import SandboxOut
from jobs.errors import Conflict, StaleFence
from jobs.messages.sandbox import MIB, Level, Limits, SandboxRecord
from jobs.models import (
    Attempt,
    CodeVersion,
    InstallationSettings,
    Job,
    Project,
)
from jobs.queries.runs import jobs as queries
from tests.jobs.code.conftest import DIGEST
from tests.jobs.code.test_own_code_jobs import submitted
from tests.jobs.yard import PretendWorker, Yard
from tests.people import browser_of
from tests.present import present

LIMITS = Limits(
    memory_of_all=MIB, processes_of_all=1, disk_of_all=MIB, output_of_all=MIB, file_bytes=MIB, cpu_seconds=1
)


def worker(*levels: Level, name: str = "w", has_reported: bool = True) -> PretendWorker:
    pretend_worker = PretendWorker(name=name)
    states = [
        {"level": level, "offered": level in levels, "reason": "" if level in levels else "it is missing"}
        for level in Level
    ]
    pretend_worker.row.info = {"sandbox": states} if has_reported else {}
    pretend_worker.row.save(update_fields=["info"])
    return pretend_worker


def waits(job: Job) -> str:
    schedule.place_jobs()
    job.refresh_from_db()
    return job.why_waiting


def claimed(job: Job, by: PretendWorker) -> Attempt:
    schedule.place_jobs()
    (attempt,) = by.claim_all()
    assert attempt.job_id == job.pk
    return attempt


@pytest.mark.usefixtures("code")
def test_a_job_with_code_waits_for_a_worker_whose_sandbox_is_strong_enough(installation: Yard) -> None:
    job = submitted(installation)
    weak = worker(Level.PROCESS, name="weak")
    reason = waits(job)
    assert reason.startswith("It runs code of users, which needs the sandbox landlock or a stronger one.")
    assert "worker weak: no bubblewrap (it is missing)" in reason
    plain = installation.submit()
    assert waits(plain) == ""
    assert [attempt.job_id for attempt in weak.claim_all()] == [plain.pk]
    strong = worker(Level.LANDLOCK, name="strong")
    assert waits(job) == ""
    assert [attempt.job_id for attempt in strong.claim_all()] == [job.pk]


@pytest.mark.usefixtures("code")
def test_a_raised_minimum_holds_for_jobs_that_wait(installation: Yard) -> None:
    InstallationSettings.objects.create(pk=1, sandbox_minimum="bubblewrap")
    worker(Level.LANDLOCK)
    job = submitted(installation)
    assert "needs the sandbox bubblewrap or a stronger one" in waits(job)
    InstallationSettings.objects.update(sandbox_minimum="landlock")
    assert waits(job) == ""


@pytest.mark.usefixtures("code")
def test_a_worker_that_has_not_found_its_sandboxes_gets_no_code(installation: Yard) -> None:
    worker(has_reported=False)
    assert "worker w: it is still finding out which sandboxes it offers" in waits(submitted(installation))


def test_a_task_has_the_code_its_packages_and_the_settings(installation: Yard, code: CodeVersion) -> None:
    Project.objects.filter(pk=installation.project.pk).update(network=True)
    attempt = claimed(submitted(installation), worker(Level.LANDLOCK))
    code_of_attempt = own_code.code_of_job(Job.objects.get(pk=attempt.job_id))
    assert code_of_attempt is not None
    assert (code_of_attempt.digest, code_of_attempt.minimum, code_of_attempt.network) == (
        DIGEST,
        Level.LANDLOCK,
        True,
    )
    assert code_of_attempt.requirements == ("torch>=2",)
    assert [file.path for file in code_of_attempt.files] == ["package/model.py"]
    assert Path(code_of_attempt.files[0].place).read_text() == "def build_model(hp): ..."
    CodeVersion.objects.filter(pk=code.pk).delete()
    with pytest.raises(Conflict, match="it was deleted"):
        own_code.code_of_job(Job.objects.get(pk=attempt.job_id))
    assert own_code.code_of_job(installation.submit()) is None


@pytest.mark.usefixtures("code")
def test_a_job_shows_the_weakest_sandbox_that_its_attempts_had(installation: Yard) -> None:
    job = submitted(installation)
    assert queries.job_out(job).sandbox is None
    attempt = claimed(job, worker(Level.LANDLOCK))
    for level, network in ((Level.BUBBLEWRAP, False), (Level.LANDLOCK, True), (Level.BUBBLEWRAP, False)):
        sandboxes.record_sandbox(attempt.pk, SandboxRecord(level=level, network=network, limits=LIMITS))
    job.refresh_from_db()
    used = SandboxOut.model_validate(queries.job_out(job).sandbox)
    assert used == SandboxOut(level=Level.LANDLOCK, network=True)
    attempt_out = queries.attempt_out(Attempt.objects.get(pk=attempt.pk))
    assert attempt_out.sandbox["level"] == "bubblewrap"  # type: ignore[index]


@pytest.mark.usefixtures("code")
def test_a_job_of_an_earlier_release_keeps_the_level_that_it_had(installation: Yard) -> None:
    job = submitted(installation)
    attempt = claimed(job, worker(Level.BUBBLEWRAP))
    old = {"level": "namespaces", "network": False}
    limits = LIMITS.model_dump()
    missing = [{"level": "namespaces", "offered": False, "reason": "not permitted"}]
    Attempt.objects.update(sandbox_json={**old, "level": "landlock", "limits": limits, "missing": missing})
    Job.objects.filter(pk=job.pk).update(sandbox_json=old)
    browser = browser_of(installation.owner)
    page = " ".join(browser.get(f"/jobs/{job.pk}").content.decode().split())
    assert "in the sandbox namespaces, without network" in page
    assert "no namespaces" in browser.get(f"/jobs/{job.pk}?tab=attempts").content.decode()
    assert browser.get(f"/api/v1/jobs/{job.pk}").json()["sandbox"] == old
    for level, weakest in ((Level.BUBBLEWRAP, "namespaces"), (Level.LANDLOCK, "landlock")):
        sandboxes.record_sandbox(attempt.pk, SandboxRecord(level=level, network=False, limits=LIMITS))
        job.refresh_from_db()
        assert present(job.sandbox_json)["level"] == weakest


@pytest.mark.usefixtures("code")
def test_a_worker_of_an_earlier_release_gives_code_no_sandbox_that_is_gone(installation: Yard) -> None:
    old = worker(Level.PROCESS, name="old")
    old.row.info = {"sandbox": [{"level": "namespaces", "offered": True}]}
    old.row.save(update_fields=["info"])
    assert "It runs code of users, which needs the sandbox landlock" in waits(submitted(installation))


@pytest.mark.usefixtures("code")
def test_the_sandbox_of_an_attempt_that_has_ended_is_not_recorded(installation: Yard) -> None:
    job = submitted(installation)
    attempt = claimed(job, worker(Level.LANDLOCK))
    Attempt.objects.filter(pk=attempt.pk).update(state="ended")
    with pytest.raises(StaleFence):
        sandboxes.record_sandbox(
            attempt.pk, SandboxRecord(level=Level.LANDLOCK, network=False, limits=LIMITS)
        )
    job.refresh_from_db()
    assert job.sandbox_json is None
    assert attempts.claim(attempt.pk, worker_id=attempt.worker_id) is None
