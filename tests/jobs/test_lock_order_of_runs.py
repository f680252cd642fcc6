"""Pairs of transactions about jobs, tokens and logins that lock the same rows."""

from pathlib import Path

import pytest

from jobs import clock
from jobs.actions.people import logins, tokens
from jobs.actions.runs import attempt_end, attempts, control, runner_events, schedule
from jobs.kinds.register.facts import REGISTER
from jobs.kinds.register.payload import RegisterPayload
from jobs.kinds.train.facts import TRAIN
from jobs.messages import events as contract
from jobs.models import Attempt, Job, LoginAttempts, ModelVersion
from jobs.states import Desired, JobState, Outcome
from tests.factories import make_attempt, make_job, make_worker
from tests.jobs.test_lock_order import during
from tests.jobs.yard import PretendWorker, Yard, make_yard
from tests.present import present
from tests.registry.conftest import Yard as Registry
from tests.registry.conftest import make_yard as make_registry

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def installation(transactional_db: None) -> Yard:
    return make_yard()


@pytest.fixture
def models(transactional_db: None, tmp_path: Path) -> Registry:
    return make_registry(tmp_path)


def test_the_end_of_a_validation_and_a_stop_of_its_root_end(models: Registry) -> None:
    version = models.version()
    ModelVersion.objects.filter(pk=version.pk).update(state=ModelVersion.State.VALIDATING)
    root = make_job(project=models.project, by=models.member, state="running")
    Job.objects.filter(pk=root.pk).update(root=None)
    step = Job.objects.create(
        project=models.project,
        parent=root,
        root=root,
        kind=REGISTER.name,
        payload_json=RegisterPayload(version=version.pk).to_json(),
        state=JobState.RUNNING,
        fence=1,
    )
    attempt = make_attempt(step, make_worker("w"))
    refusal = during(
        lambda: attempt_end.finish(attempt.pk, Outcome.COMPLETED, result={}),
        lambda: control.stop(root, by=models.member),
    )
    assert refusal is None
    assert Attempt.objects.get(pk=attempt.pk).outcome == "completed"
    root.refresh_from_db()
    assert root.desired == Desired.STOPPED


def test_a_token_that_is_revoked_and_one_that_is_created_with_it_end(installation: Yard) -> None:
    parent, _ = tokens.create(installation.owner, by=installation.owner, scopes=["read"])
    refusal = during(
        lambda: tokens.revoke(parent, by=installation.owner),
        lambda: tokens.create(installation.owner, by=installation.owner, scopes=["read"], parent=parent),
    )
    assert getattr(refusal, "code", "") == "forbidden"
    assert not installation.owner.tokens.exists()


@pytest.fixture
def step(installation: Yard) -> Job:
    """Return a waiting training under a running root."""
    root = make_job(project=installation.project, by=installation.owner, state="running")
    Job.objects.filter(pk=root.pk).update(root=None)
    return Job.objects.create(
        project=installation.project,
        parent=root,
        root=root,
        kind=TRAIN.name,
        state=JobState.QUEUED,
        queued=clock.now(),
    )


def test_the_events_of_a_step_and_a_stop_of_its_root_end(installation: Yard, step: Job) -> None:
    attempt = make_attempt(step, make_worker("w"))
    event = contract.Progress(time=1.0, done=1, total=9, unit="epochs")
    refusal = during(
        lambda: attempts.record_events(attempt.pk, [event], spool_position=10, stored={}),
        lambda: control.stop(present(step.parent), by=installation.owner),
        after=(runner_events, "record_events"),
    )
    assert refusal is None
    step.refresh_from_db()
    assert (step.progress["done"], step.desired) == (1, Desired.STOPPED)


def test_the_placement_of_a_step_and_a_stop_of_its_root_end(installation: Yard, step: Job) -> None:
    PretendWorker(slots=2)
    refusal = during(
        schedule.place_jobs,
        lambda: control.stop(present(step.parent), by=installation.owner),
        after=(schedule, "_new_attempt"),
    )
    assert refusal is None
    assert Attempt.objects.filter(job=step).exists()


def test_two_logins_of_a_person_at_the_same_time_succeed(transactional_db: None) -> None:
    def log_in() -> None:
        with logins.attempt("password", "member", address="") as counted:
            counted.succeed()

    with pytest.raises(ValueError, match="wrong"), logins.attempt("password", "member", address=""):
        raise ValueError("wrong password")
    assert during(log_in, log_in, after=(LoginAttempts, "delete")) is None
    assert not LoginAttempts.objects.exists()
