"""Pairs of transactions that lock the same rows: the second waits for the first, and both end.

PostgreSQL ends one of two transactions that wait for each other. SQLite runs writers one after another, so
there these tests only show that both transactions work.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connections

from jobs.actions.audit import audit
from jobs.actions.data import profiles
from jobs.actions.experiments import experiments
from jobs.actions.people import people
from jobs.actions.registry import promotions, registration, registry, releases
from jobs.actions.runs import submit
from jobs.actions.storage import deletions
from jobs.errors import BadInput, NotFound, StaleState
from jobs.kinds.profile.rows import profiles_of
from jobs.models import DatasetVersion, Experiment, Job, ModelVersion, Project
from tests.factories import make_dataset, make_job, make_job_artifact
from tests.jobs.test_races import wait_until_blocking
from tests.jobs.yard import Yard, make_yard, spec
from tests.present import present
from tests.registry.conftest import GOOD_GATES
from tests.registry.conftest import Yard as Registry
from tests.registry.conftest import make_yard as make_registry

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def installation(transactional_db: None) -> Yard:
    return make_yard()


@pytest.fixture
def models(transactional_db: None, tmp_path: Path) -> Registry:
    return make_registry(tmp_path)


def during(
    first: Callable[[], Any], second: Callable[[], Any], *, after: tuple[Any, str] = (audit, "record")
) -> BaseException | None:
    """Run `first`, and `second` in a thread from the time at which `first` has called a function.

    Args:
        first: continues when `second` waits for its lock.
        second: the other transaction.
        after: the module and the name of the function, by default the one that locks the audit log.

    Returns:
        The refusal that `second` raised, if any.
    """
    asks = threading.Event()
    main = threading.current_thread()

    def run() -> None:
        try:
            asks.set()
            second()
        finally:
            connections.close_all()

    pool = ThreadPoolExecutor(1)
    ends: list[Future[None]] = []
    module, name = after
    original = getattr(module, name)

    def pausing(*args: Any, **options: Any) -> Any:
        answer = original(*args, **options)
        if threading.current_thread() is main and not ends:
            ends.append(pool.submit(run))
            wait_until_blocking(asks)
        return answer

    with patch.object(module, name, pausing):
        first()
    pool.shutdown(wait=False)
    return ends[0].exception(timeout=60)


def test_two_submissions_in_a_project_end(installation: Yard) -> None:
    revision = installation.revision()

    def submit_form() -> None:
        body = spec().to_json()
        experiments.submit_spec(
            installation.project, None, name="form", spec=body, tags=(), notes="", by=installation.owner
        )

    assert during(submit_form, lambda: submit.submit(revision, by=installation.owner)) is None
    assert Job.objects.count() == 2


def test_a_submitted_draft_and_another_submission_of_its_project_end(installation: Yard) -> None:
    revision = installation.revision()
    draft = experiments.create(
        installation.project, name="draft", draft=spec().to_json(), by=installation.owner
    )
    refusal = during(
        lambda: experiments.submit(draft, by=installation.owner),
        lambda: submit.submit(revision, by=installation.owner),
    )
    assert refusal is None
    assert Job.objects.count() == 2


def test_a_submission_and_a_new_revision_of_its_experiment_end(installation: Yard) -> None:
    revision = installation.revision()
    changed = spec(fit={"epochs": 7}).to_json()
    refusal = during(
        lambda: submit.submit(revision, by=installation.owner),
        lambda: experiments.change(revision.experiment, spec=changed, by=installation.owner),
    )
    assert refusal is None
    assert revision.experiment.revisions.count() == 2


def test_a_new_experiment_and_a_deletion_in_its_project_end(installation: Yard) -> None:
    dataset = make_dataset("spare", project=installation.project, by=installation.owner)
    refusal = during(
        lambda: experiments.create(
            installation.project, name="new", spec=spec().to_json(), by=installation.owner
        ),
        lambda: deletions.delete(dataset, by=installation.owner),
    )
    assert refusal is None
    assert Experiment.objects.filter(name="new").exists()


def test_no_experiment_is_left_in_a_project_that_is_deleted_at_the_same_time(installation: Yard) -> None:
    refusal = during(
        lambda: deletions.delete(installation.project, by=installation.owner),
        lambda: experiments.create(installation.project, name="new", draft={}, by=installation.owner),
    )
    assert isinstance(refusal, StaleState | NotFound)
    assert not Experiment.objects.filter(name="new").exists()


def test_an_action_of_an_administrator_and_the_end_of_anothers_right_end(installation: Yard) -> None:
    admin, other = (
        people.add_person("ada", by=None, admin=True),
        people.add_person("bob", by=None, admin=True),
    )
    refusal = during(
        lambda: people.create_project("new", "New", by=admin),
        lambda: people.set_admin(other, False, by=admin),
    )
    assert refusal is None
    assert Project.objects.filter(slug="new").exists()


def test_a_comment_and_a_rejection_of_a_request_end(models: Registry) -> None:
    pending = models.pending()
    refusal = during(
        lambda: promotions.comment(pending, "first", by=models.viewer),
        lambda: promotions.reject(pending, by=models.approver),
    )
    assert refusal is None
    assert pending.decisions.count() == 2


def test_a_request_and_a_deletion_of_its_version_end(models: Registry) -> None:
    version = models.version()
    refusal = during(
        lambda: promotions.request(version, stage="production", by=models.member),
        lambda: deletions.delete(version, by=models.owner),
        after=(releases, "lock_endpoint"),
    )
    # The deletion finds the request.
    assert getattr(refusal, "code", "") == "in_use"


def test_an_alias_and_the_gates_of_an_open_request_end(models: Registry) -> None:
    models.live()
    waiting = models.request()
    newest = models.version()
    registry.set_alias(models.model, "stable", present(models.endpoint.production), by=models.member)
    gate_job = waiting.gate_job
    assert gate_job is not None
    refusal = during(
        lambda: registry.delete_alias(models.model, "stable", by=models.member),
        lambda: promotions.record_gates(gate_job, GOOD_GATES["gates"]),
        after=(audit, "record"),
    )
    assert refusal is None
    waiting.refresh_from_db()
    assert (waiting.state, newest.state) == ("pending", "candidate")


def test_a_version_of_a_job_and_a_deletion_in_its_project_end(installation: Yard) -> None:
    job = make_job(project=installation.project, by=installation.owner, state="completed")
    source = make_job_artifact(job)
    model = registry.create_model(installation.project, "flowers", by=installation.owner)
    dataset = make_dataset("spare", project=installation.project, by=installation.owner)
    refusal = during(
        lambda: registration.add_version(model, source.artifact_id, by=installation.owner),
        lambda: deletions.delete(dataset, by=installation.owner),
    )
    assert refusal is None
    assert ModelVersion.objects.filter(model=model).exists()


def test_no_version_is_made_of_a_job_that_is_deleted_at_the_same_time(installation: Yard) -> None:
    job = make_job(project=installation.project, by=installation.owner, state="completed")
    source = make_job_artifact(job)
    model = registry.create_model(installation.project, "flowers", by=installation.owner)
    refusal = during(
        lambda: deletions.delete(job, by=installation.owner),
        lambda: registration.add_version(model, source.artifact_id, by=installation.owner),
    )
    # On SQLite the deletion may end before the job of the artifact is looked for: then there is none.
    assert isinstance(refusal, StaleState | NotFound | BadInput)
    assert not ModelVersion.objects.exists()


def test_a_version_that_is_profiled_again_and_a_deletion_in_its_project_end(installation: Yard) -> None:
    dataset = make_dataset("broken", project=installation.project, by=installation.owner)
    spare = make_dataset("spare", project=installation.project, by=installation.owner)
    version = dataset.versions.get()
    DatasetVersion.objects.filter(pk=version.pk).update(state=DatasetVersion.State.FAILED)
    refusal = during(
        lambda: profiles.profile_again(version, by=installation.owner),
        lambda: deletions.delete(spare, by=installation.owner),
    )
    assert refusal is None
    assert Job.objects.filter(profiles_of(version.pk)).exists()
