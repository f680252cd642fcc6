"""Purging deleted rows after their time has passed."""

import time
from datetime import timedelta

import pytest

from jobs import access, clock
from jobs.actions.experiments import experiments
from jobs.actions.people import people as people_actions
from jobs.actions.registry import promotions, registration
from jobs.actions.runs import control
from jobs.actions.storage import deletions, purge
from jobs.errors import Forbidden, NotFound, StaleState, TrainyardError
from jobs.models import (
    AuditEvent,
    Dataset,
    Deletion,
    Experiment,
    Job,
    ModelVersion,
    Project,
    RegisteredModel,
    Trial,
)
from jobs.queries.audit.audit_verification import verify_chain
from jobs.queries.storage.deletion_scope import Deletable
from tests.factories import (
    make_dataset,
    make_experiment,
    make_model,
)
from tests.jobs.storage.test_deletions import finished
from tests.people import People


def pass_the_time(deletion: Deletion) -> None:
    Deletion.objects.filter(pk=deletion.pk).update(until=clock.now() - timedelta(seconds=1))


def purge_all() -> int:
    return purge.purge_due(deadline=time.monotonic() + 60)


def test_the_number_of_a_deleted_version_is_never_used_again(people: People) -> None:
    job = finished(people)
    model = make_model("digits", project=people.project, by=people.member, versions=2)
    digest = job.artifacts.get().artifact_id
    deletion = deletions.delete(model.versions.get(number=2), by=people.owner)
    assert registration.add_version(model, digest, by=people.member).version.number == 3
    Job.objects.filter(kind="register").update(state="completed")  # its validation
    third = deletions.delete(model.versions.get(number=3), by=people.owner)
    for version_deletion in (deletion, third):
        pass_the_time(version_deletion)
    assert purge_all() == 2
    assert ModelVersion.everything.count() == 1
    assert registration.add_version(model, digest, by=people.member).version.number == 4


def test_a_project_takes_everything_along_and_brings_it_back(people: People) -> None:
    job = finished(people)
    dataset = make_dataset("flowers", project=people.project, by=people.member)
    model = make_model("digits", project=people.project, by=people.member)
    deletion = deletions.delete(people.project, by=people.owner)
    for visible in (
        access.visible_jobs,
        access.visible_experiments,
        access.visible_models,
        access.visible_versions,
        access.visible_endpoints,
    ):
        assert not visible(people.administrator).exists(), visible.__name__
    assert dataset not in access.visible_datasets(people.administrator)
    with pytest.raises(NotFound):
        access.get_project(people.owner, "yard")
    assert people.project not in access.projects_of(people.owner)
    deletions.restore(deletion, by=people.owner)
    assert access.get_job(people.viewer, job.pk) == job
    assert access.get_model(people.viewer, "digits") == model


def test_admins_delete_everything_and_others_only_what_they_made(people: People) -> None:
    mine = finished(people)
    version = make_model(project=people.project, by=people.member).versions.get()
    for user, row in (
        (people.trainer, mine),
        (people.viewer, mine),
        (people.approver, mine.experiment),
        (people.member, version),
        (people.member, people.project),
    ):
        with pytest.raises(Forbidden):
            deletions.delete(row, by=user)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        deletions.delete(mine, by=people.stranger)
    deletions.delete(mine, by=people.member)
    deletions.delete(version, by=people.owner)


def test_the_one_who_deleted_and_the_admins_may_restore(people: People) -> None:
    deletion = deletions.delete(finished(people), by=people.member)
    for user in (people.trainer, people.stranger, people.viewer):
        assert not access.restorable_deletions(user).exists()
        with pytest.raises(NotFound):
            access.get_deletion(user, Deletion.Kind.JOB, deletion.target)
    for user in (people.member, people.owner, people.administrator):
        assert access.get_deletion(user, Deletion.Kind.JOB, deletion.target) == deletion


def test_after_seven_days_rows_are_purged_and_cannot_be_restored(people: People) -> None:
    experiment = make_experiment(project=people.project, by=people.member)
    job = finished(people, experiment)
    Trial.objects.filter(job=job, number=2).update(answered_by=Trial.objects.get(job=job, number=1))
    deletion = deletions.delete(experiment, by=people.member)
    assert purge_all() == 0
    pass_the_time(deletion)
    with pytest.raises(NotFound, match="can no longer be undone"):
        deletions.restore(deletion, by=people.member)
    assert purge_all() == 1
    assert not Job.everything.exists()
    assert not Trial.objects.exists()
    assert not Experiment.everything.exists()
    assert not Deletion.objects.exists()


def test_a_purged_project_leaves_its_slug_and_its_audit_rows(people: People) -> None:
    finished(people)
    make_dataset("flowers", project=people.project, by=people.member)
    make_model("digits", project=people.project, by=people.member)
    earlier = deletions.delete(finished(people), by=people.member)
    deletion = deletions.delete(people.project, by=people.owner)
    pass_the_time(deletion)
    assert purge_all() == 1
    assert not Deletion.objects.filter(pk=earlier.pk).exists()
    assert not Project.everything.filter(slug="yard").exists()
    assert not Dataset.everything.exists()
    assert not RegisteredModel.everything.exists()
    people_actions.create_project("yard", "Again", by=people.stranger)
    assert verify_chain().holds
    actions = list(AuditEvent.objects.values_list("action", flat=True))
    assert {"job.delete", "project.delete", "project.purge"} <= set(actions)


def test_a_purge_that_is_stopped_continues_where_it_was(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    deletion = deletions.delete(finished(people), by=people.member)
    pass_the_time(deletion)
    assert purge.purge_due(deadline=time.monotonic() - 1) == 0
    monkeypatch.setattr(purge, "BATCH", 1)
    assert purge_all() == 1
    assert not Job.everything.exists()


def test_nothing_is_added_to_what_was_deleted_meanwhile(people: People) -> None:
    experiment = make_experiment(project=people.project, by=people.member)
    make_dataset("digits")
    job = finished(people, experiment)
    seen = Experiment.objects.get(pk=experiment.pk)
    seen_job = Job.objects.get(pk=job.pk)
    model = make_model("digits", project=people.project, by=people.member)
    version = model.versions.get()
    digest = job.artifacts.get().artifact_id
    deletions.delete(version, by=people.owner)
    with pytest.raises(StaleState):
        promotions.request(version, stage="production", by=people.member)
    deletions.delete(experiment, by=people.owner)
    with pytest.raises(TrainyardError):
        experiments.submit(seen, by=people.member)
    with pytest.raises(StaleState):
        control.retry(seen_job, by=people.member)
    with pytest.raises(NotFound):
        registration.add_version(model, digest, by=people.member)
    assert not Job.objects.exists()


def test_two_deletions_of_one_row_at_once_are_one(people: People) -> None:
    job: Deletable = finished(people)
    again = Job.objects.get(pk=job.pk)
    deletions.delete(job, by=people.member)
    with pytest.raises(NotFound):
        deletions.delete(again, by=people.member)
    assert Deletion.objects.count() == 1
