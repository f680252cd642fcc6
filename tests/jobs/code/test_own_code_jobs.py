"""Jobs with code of users: who may run them, where they run, and the sandbox that is recorded."""

from pathlib import Path
from typing import Any

import pytest

from jobs.actions.code import own_code, sandboxes
from jobs.actions.experiments import experiments
from jobs.actions.runs import attempts, control, schedule, submit
from jobs.actions.search import trials
from jobs.answers.code.sandbox import SandboxOut
from jobs.errors import BadSpec, Conflict, Forbidden, StaleFence
from jobs.messages.sandbox import MIB, Level, Limits, SandboxRecord
from jobs.models import (
    Artifact,
    Attempt,
    CodeFile,
    CodeVersion,
    InstallationSettings,
    Job,
    Membership,
    Project,
    User,
)
from jobs.queries.runs import jobs as queries
from jobs.store import store
from tests.factories import make_trials
from tests.jobs.yard import PretendWorker, Yard
from tests.people import browser_of
from tests.present import present

DIGEST = "c" * 64
MODEL = {"kind": "code", "digest": DIGEST, "entry": "build_model"}
LIMITS = Limits(
    memory_of_all=MIB, processes_of_all=1, disk_of_all=MIB, output_of_all=MIB, file_bytes=MIB, cpu_seconds=1
)


@pytest.fixture
def code(yard: Yard, tmp_path: Path) -> CodeVersion:
    version = CodeVersion.objects.create(
        project=yard.project, name="model", digest=DIGEST, bytes=1, created_by=yard.owner,
        found_json={"packages": {"path": "requirements.txt", "requirements": ["torch>=2"]}},
    )  # fmt: skip
    (tmp_path / "model.py").write_text("def build_model(hp): ...")
    stored = store().put(tmp_path / "model.py")
    artifact = Artifact.objects.create(digest=stored.digest, bytes=stored.bytes)
    CodeFile.objects.create(version=version, path="package/model.py", artifact=artifact, lines=1)
    return version


@pytest.fixture
def member(yard: Yard) -> User:
    user = User.objects.create(username="max")
    Membership.objects.create(project=yard.project, user=user, role="member")
    return user


def worker(*levels: Level, name: str = "w", known: bool = True) -> PretendWorker:
    found = PretendWorker(name=name)
    states = [
        {"level": level, "offered": level in levels, "reason": "" if level in levels else "it is missing"}
        for level in Level
    ]
    found.row.info = {"sandbox": states} if known else {}
    found.row.save(update_fields=["info"])
    return found


def submitted(yard: Yard, **parts: Any) -> Job:
    return yard.submit(model=MODEL, **parts)


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
def test_a_member_may_not_run_code_and_is_told_which_role_may(yard: Yard, member: User) -> None:
    revision = yard.revision(model=MODEL)
    with pytest.raises(Forbidden, match="one of these roles: trainer, admin"):
        submit.submit(revision, by=member)
    assert not Job.objects.exists()
    submit.submit(yard.revision(), by=member)
    Membership.objects.filter(user=member).update(role="trainer")
    assert submit.submit(revision, by=member).created_by == member


@pytest.mark.usefixtures("code")
def test_a_member_can_neither_repeat_nor_resume_a_job_with_code_but_can_stop_it(
    yard: Yard, member: User
) -> None:
    job = submitted(yard)
    Job.objects.filter(pk=job.pk).update(state="paused", desired="paused")
    job.refresh_from_db()
    for act in (control.resume, submit.resubmit, submit.clone):
        with pytest.raises(Forbidden):
            act(job, by=member)
    control.stop(job, by=member)
    job.refresh_from_db()
    with pytest.raises(Forbidden):
        control.retry(job, by=member)
    control.retry(job, by=yard.owner)


@pytest.mark.usefixtures("code")
def test_a_member_queues_no_trials_of_a_search_with_code(yard: Yard, member: User) -> None:
    space = [{"name": "units", "kind": "int", "min": 1, "max": 4}]
    search = submitted(yard, search={"algorithm": "random", "max_trials": 1, "space": space})
    with pytest.raises(Forbidden):
        trials.queue_by_hand(search, {"units": 2}, by=member)


def test_a_copy_in_a_project_without_the_code_is_refused(yard: Yard, code: CodeVersion) -> None:
    other = Project.objects.create(slug="other", name="Other", created_by=yard.owner)
    Membership.objects.create(project=other, user=yard.owner, role="admin")
    copy = experiments.clone(yard.revision(model=MODEL).experiment, by=yard.owner, project=other)
    revision = copy.revisions.first()
    assert revision is not None
    with pytest.raises(BadSpec) as refused:
        submit.submit(revision, by=yard.owner)
    assert refused.value.problems[0].pointer == "/spec/model/digest"
    assert code.project == yard.project


@pytest.mark.usefixtures("code")
def test_a_job_with_code_waits_for_a_worker_whose_sandbox_is_strong_enough(yard: Yard) -> None:
    job = submitted(yard)
    weak = worker(Level.PROCESS, name="weak")
    reason = waits(job)
    assert reason.startswith("It runs code of users, which needs the sandbox landlock or a stronger one.")
    assert "worker weak: no bubblewrap (it is missing)" in reason
    plain = yard.submit()
    assert waits(plain) == ""
    assert [attempt.job_id for attempt in weak.claim_all()] == [plain.pk]
    strong = worker(Level.LANDLOCK, name="strong")
    assert waits(job) == ""
    assert [attempt.job_id for attempt in strong.claim_all()] == [job.pk]


@pytest.mark.usefixtures("code")
def test_a_raised_minimum_holds_for_jobs_that_wait(yard: Yard) -> None:
    InstallationSettings.objects.create(pk=1, sandbox_minimum="bubblewrap")
    worker(Level.LANDLOCK)
    job = submitted(yard)
    assert "needs the sandbox bubblewrap or a stronger one" in waits(job)
    InstallationSettings.objects.update(sandbox_minimum="landlock")
    assert waits(job) == ""


@pytest.mark.usefixtures("code")
def test_a_worker_that_has_not_found_its_sandboxes_gets_no_code(yard: Yard) -> None:
    worker(known=False)
    assert "worker w: it is still finding out which sandboxes it offers" in waits(submitted(yard))


def test_a_task_has_the_code_its_packages_and_the_settings(yard: Yard, code: CodeVersion) -> None:
    Project.objects.filter(pk=yard.project.pk).update(network=True)
    attempt = claimed(submitted(yard), worker(Level.LANDLOCK))
    own = own_code.code_of_job(Job.objects.get(pk=attempt.job_id))
    assert own is not None
    assert (own.digest, own.minimum, own.network) == (DIGEST, Level.LANDLOCK, True)
    assert own.requirements == ("torch>=2",)
    assert [file.path for file in own.files] == ["package/model.py"]
    assert Path(own.files[0].place).read_text() == "def build_model(hp): ..."
    CodeVersion.objects.filter(pk=code.pk).delete()
    with pytest.raises(Conflict, match="it was deleted"):
        own_code.code_of_job(Job.objects.get(pk=attempt.job_id))
    assert own_code.code_of_job(yard.submit()) is None


@pytest.mark.usefixtures("code")
def test_a_job_shows_the_weakest_sandbox_that_its_attempts_had(yard: Yard) -> None:
    job = submitted(yard)
    assert queries.job_out(job).sandbox is None
    attempt = claimed(job, worker(Level.LANDLOCK))
    for level, network in ((Level.BUBBLEWRAP, False), (Level.LANDLOCK, True), (Level.BUBBLEWRAP, False)):
        sandboxes.record_sandbox(attempt.pk, SandboxRecord(level=level, network=network, limits=LIMITS))
    job.refresh_from_db()
    assert queries.job_out(job).sandbox == SandboxOut(level=Level.LANDLOCK, network=True)
    shown = queries.attempt_out(Attempt.objects.get(pk=attempt.pk))
    assert shown.sandbox["level"] == "bubblewrap"  # type: ignore[index]


@pytest.mark.usefixtures("code")
def test_a_job_of_an_earlier_release_keeps_the_level_that_it_had(yard: Yard) -> None:
    job = submitted(yard)
    attempt = claimed(job, worker(Level.BUBBLEWRAP))
    old = {"level": "namespaces", "network": False}
    limits = LIMITS.model_dump()
    missing = [{"level": "namespaces", "offered": False, "reason": "not permitted"}]
    Attempt.objects.update(sandbox_json={**old, "level": "landlock", "limits": limits, "missing": missing})
    Job.objects.filter(pk=job.pk).update(sandbox_json=old)
    browser = browser_of(yard.owner)
    page = " ".join(browser.get(f"/jobs/{job.pk}").content.decode().split())
    assert "in the sandbox namespaces, without network" in page
    assert "no namespaces" in browser.get(f"/jobs/{job.pk}?tab=attempts").content.decode()
    assert browser.get(f"/api/v1/jobs/{job.pk}").json()["sandbox"] == old
    for level, weakest in ((Level.BUBBLEWRAP, "namespaces"), (Level.LANDLOCK, "landlock")):
        sandboxes.record_sandbox(attempt.pk, SandboxRecord(level=level, network=False, limits=LIMITS))
        job.refresh_from_db()
        assert present(job.sandbox_json)["level"] == weakest


@pytest.mark.usefixtures("code")
def test_a_worker_of_an_earlier_release_gives_code_no_sandbox_that_is_gone(yard: Yard) -> None:
    old = worker(Level.PROCESS, name="old")
    old.row.info = {"sandbox": [{"level": "namespaces", "offered": True}]}
    old.row.save(update_fields=["info"])
    assert "It runs code of users, which needs the sandbox landlock" in waits(submitted(yard))


@pytest.mark.usefixtures("code")
def test_the_sandbox_of_an_attempt_that_has_ended_is_not_recorded(yard: Yard) -> None:
    job = submitted(yard)
    attempt = claimed(job, worker(Level.LANDLOCK))
    Attempt.objects.filter(pk=attempt.pk).update(state="ended")
    with pytest.raises(StaleFence):
        sandboxes.record_sandbox(
            attempt.pk, SandboxRecord(level=Level.LANDLOCK, network=False, limits=LIMITS)
        )
    job.refresh_from_db()
    assert job.sandbox_json is None
    assert attempts.claim(attempt.pk, worker_id=attempt.worker_id) is None


@pytest.mark.usefixtures("code")
def test_a_page_offers_to_run_code_again_only_to_those_who_may(yard: Yard, member: User) -> None:
    job = submitted(yard)
    Job.objects.filter(pk=job.pk).update(
        state="failed",
        sandbox_json={"level": "landlock", "network": False},
        error={"code": "x", "message": "y"},
    )
    shown = {
        user.username: " ".join(browser_of(user).get(f"/jobs/{job.pk}").content.decode().split())
        for user in (member, yard.owner)
    }
    assert ("Run again" in shown["max"], "Run again" in shown["olga"]) == (False, True)
    assert "in the sandbox landlock, without network" in shown["max"]
    assert browser_of(member).post(f"/jobs/{job.pk}/retry").status_code == 403


@pytest.mark.usefixtures("code")
def test_a_search_offers_what_runs_its_code_only_to_those_who_may(yard: Yard, member: User) -> None:
    space = [{"name": "units", "kind": "int", "min": 16, "max": 64}]
    objective = {"metric": "val_accuracy", "direction": "max"}
    search = submitted(yard, search={"max_trials": 9, "space": space, "objective": objective})
    Job.objects.filter(pk=search.pk).update(state="running", started=search.queued)
    make_trials(search, 2)
    place = f"/jobs/{search.pk}"
    offers = {
        place: ["Change…", "Retrain", "Register"],
        f"{place}?tab=trials": ["Queue a configuration by hand", f"{place}/ensemble"],
        f"{place}/trials/1": ["Queue these values again", "Retrain"],
        f"/p/{yard.project.slug}/experiments/{search.experiment_id}": ["Submit again"],
    }
    for address, words in offers.items():
        pages = [browser_of(user).get(address).content.decode() for user in (member, yard.owner)]
        for word in words:
            assert [word in page for page in pages] == [False, True], (address, word)
    # Ending it takes no such right.
    assert "Finish with what we have" in browser_of(member).get(place).content.decode()
