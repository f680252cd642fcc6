"""Deleting rows so that they can be restored, and purging them when their time has passed."""

import time
from datetime import timedelta
from pathlib import Path

import pytest

from jobs import access, clock
from jobs.actions.data import datasets
from jobs.actions.experiments import experiments
from jobs.actions.people import people as people_actions
from jobs.actions.registry import promotions, registration
from jobs.actions.runs import control
from jobs.actions.storage import deletions, purge
from jobs.errors import Conflict, Forbidden, InUse, NotFound, StaleState, TrainyardError
from jobs.models import (
    Alias,
    AuditEvent,
    Checkpoint,
    Dataset,
    Deletion,
    Experiment,
    Job,
    ModelVersion,
    Project,
    RegisteredModel,
    ReleaseRecord,
    Trial,
)
from jobs.queries.audit.audit_verification import verify_chain
from jobs.queries.storage import deletions as queries
from jobs.queries.storage.deletion_scope import Deletable
from tests.factories import (
    SEARCH,
    make_attempt,
    make_dataset,
    make_experiment,
    make_job,
    make_job_artifact,
    make_model,
    make_promotion,
    make_trials,
    make_worker,
)
from tests.people import People


def finished(people: People, experiment: Experiment | None = None, **fields: object) -> Job:
    """Make a completed search with trials, a file and a checkpoint."""
    experiment = experiment or make_experiment(project=people.project, by=people.member)
    job = make_job(by=people.member, experiment=experiment, state="completed", **fields)  # type: ignore[arg-type]
    make_trials(job, 3)
    make_job_artifact(job)
    Checkpoint.objects.create(
        job=job, attempt=1, step=1, epoch=1, folder=f"job-{job.pk}/1", manifest="m", bytes=1000
    )
    return job


def pass_the_time(deletion: Deletion) -> None:
    Deletion.objects.filter(pk=deletion.pk).update(until=clock.now() - timedelta(seconds=1))


def purge_all() -> int:
    return purge.purge_due(deadline=time.monotonic() + 60)


def test_a_deleted_job_is_found_by_nobody_until_it_is_restored(people: People) -> None:
    job = finished(people)
    digest = job.artifacts.get().artifact_id
    deletion = deletions.delete(job, by=people.member)
    for user in (people.owner, people.member, people.administrator):
        with pytest.raises(NotFound):
            access.get_job(user, job.pk)
        with pytest.raises(NotFound):
            access.get_artifact(user, digest)
        assert not access.visible_jobs(user).exists()
    assert not job.experiment.jobs.exists()  # type: ignore[union-attr]
    deletions.restore(deletion, by=people.member)
    assert access.get_job(people.member, job.pk).trials.count() == 3
    assert access.get_artifact(people.member, digest)
    assert not Deletion.objects.exists()


def test_a_preview_counts_what_would_be_lost_and_what_other_rows_still_need(people: People) -> None:
    job = finished(people)
    shared = make_job_artifact(job, name="shared")
    other = finished(people, experiment=job.experiment)
    other.artifacts.create(attempt=1, artifact=shared.artifact, role="model", name="same")
    preview = queries.preview_out(job)
    assert {each.what: each.count for each in preview.lost} == {
        "jobs": 1,
        "trials": 3,
        "files of jobs": 2,
        "checkpoints": 1,
    }
    own = sum(job.artifacts.values_list("artifact__bytes", flat=True))
    assert (preview.bytes, preview.frees) == (own + 1000, own + 1000 - shared.artifact.bytes)
    assert not preview.referrers


def test_an_experiment_takes_its_jobs_along_and_brings_back_only_those(people: People) -> None:
    experiment = make_experiment(project=people.project, by=people.member)
    earlier, later = finished(people, experiment), finished(people, experiment)
    first = deletions.delete(earlier, by=people.member)
    second = deletions.delete(experiment, by=people.owner)
    assert not Job.objects.exists()
    with pytest.raises(Conflict, match=f"before experiment {experiment.name} is"):
        deletions.restore(first, by=people.member)
    deletions.restore(second, by=people.owner)
    assert list(Job.objects.all()) == [later]
    deletions.restore(first, by=people.member)
    assert Job.objects.count() == 2


@pytest.mark.parametrize("state", ["queued", "running", "paused", "stopping"])
def test_a_job_that_has_not_ended_is_refused(people: People, state: str) -> None:
    job = make_job(by=people.member, project=people.project, state=state)
    with pytest.raises(InUse, match=f"job {job.pk} is {state}: stop it first"):
        deletions.delete(job, by=people.member)
    assert Job.objects.get() == job


def test_a_job_whose_runner_is_still_ending_is_refused(people: People) -> None:
    job = make_job(by=people.member, project=people.project, state="stopped")
    make_attempt(job, make_worker())
    with pytest.raises(InUse, match="its runner has not exited yet"):
        deletions.delete(job, by=people.member)


def test_a_step_is_deleted_only_with_its_job(people: People) -> None:
    root = finished(people)
    step = make_job(by=people.member, project=people.project, kind="train", state="completed", parent=root)
    with pytest.raises(Conflict, match="delete that one"):
        deletions.delete(step, by=people.owner)
    deletions.delete(root, by=people.owner)
    assert not Job.objects.exists()


def test_a_job_that_made_a_version_is_refused_by_the_name_of_the_version(people: People) -> None:
    job = finished(people)
    model = make_model("digits", project=people.project, by=people.member)
    model.versions.update(source_job=job)
    for row in (job, job.experiment):
        with pytest.raises(InUse, match="digits v1 was made by it"):
            deletions.delete(row, by=people.owner)  # type: ignore[arg-type]
    version = model.versions.get()
    deletion = deletions.delete(version, by=people.owner)
    second = deletions.delete(job, by=people.owner)
    with pytest.raises(Conflict, match=f"before job {job.pk} is"):
        deletions.restore(deletion, by=people.owner)
    deletions.restore(second, by=people.owner)
    deletions.restore(deletion, by=people.owner)
    assert version.source_job == job


def test_a_job_from_whose_trials_an_open_job_continues_is_refused(people: People) -> None:
    job = finished(people)
    chosen = {"search": job.pk, "chosen": [{"trial": 1, "values": {}}]}
    ensemble = make_job(
        by=people.member, experiment=job.experiment, kind="chosen_ensemble", state="running", payload=chosen
    )
    with pytest.raises(InUse, match=f"job {ensemble.pk} continues from trials of it"):
        deletions.delete(job, by=people.owner)
    Job.objects.filter(pk=ensemble.pk).update(state="completed")
    warm = make_experiment(
        project=people.project,
        by=people.member,
        spec={**SEARCH, "search": {**SEARCH["search"], "warm_start": job.pk}},
    )
    search = make_job(by=people.member, experiment=warm, state="queued")
    with pytest.raises(InUse, match=f"job {search.pk} continues from trials of it"):
        deletions.delete(job, by=people.owner)


def test_a_data_set_is_refused_while_experiments_or_jobs_use_it(people: People) -> None:
    dataset = make_dataset("flowers", project=people.project, by=people.member)
    spec = {**SEARCH, "data": {"dataset": "flowers"}}
    experiment = make_experiment("petals", project=people.project, by=people.member, spec=spec)
    with pytest.raises(InUse, match="experiment petals uses its data"):
        deletions.delete(dataset, by=people.member)
    job = make_job(
        by=people.member,
        project=people.project,
        state="completed",
        payload={"dataset_version": dataset.versions.get().pk},
    )
    gone = deletions.delete(experiment, by=people.member)
    with pytest.raises(InUse, match=f"job {job.pk} was trained on its data"):
        deletions.delete(dataset, by=people.member)
    kept = deletions.delete(job, by=people.member)
    data = deletions.delete(dataset, by=people.member)
    with pytest.raises(NotFound):
        access.get_dataset(people.member, "flowers", people.project)
    assert not access.visible_dataset_versions(people.administrator).filter(dataset=dataset).exists()
    with pytest.raises(Conflict, match="before data set flowers is"):
        deletions.restore(kept, by=people.member)
    for deletion in (data, kept, gone):
        deletions.restore(deletion, by=people.member)
    assert access.get_dataset_version(people.member, "flowers", 1, people.project)


def test_bundled_data_cannot_be_deleted(people: People) -> None:
    with pytest.raises(Forbidden):
        deletions.delete(make_dataset("digits"), by=people.administrator)


def test_the_slug_of_a_deleted_row_stays_reserved(people: People, tmp_path: Path) -> None:
    dataset = make_dataset("flowers", project=people.project, by=people.member)
    deletions.delete(dataset, by=people.member)
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(Conflict, match="was deleted and can be restored until"):
        stored = datasets.store_upload(datasets.Upload(path, "a.csv"), people.project)
        datasets.create(people.project, slug="flowers", stored=stored, by=people.member)
    deletions.delete(people.project, by=people.owner)
    with pytest.raises(Conflict, match="was deleted and can be restored until"):
        people_actions.create_project("yard", "Again", by=people.stranger)


def test_a_version_that_was_ever_released_is_refused(people: People) -> None:
    model = make_model("digits", project=people.project, by=people.member, versions=2)
    first, second = model.versions.order_by("number")
    ReleaseRecord.objects.create(
        endpoint=model.endpoint, generation=1, kind="promote", version=second, replaced=first, body={}
    )
    for version in (first, second):
        with pytest.raises(InUse, match="endpoint digits has released it"):
            deletions.delete(version, by=people.owner)
    with pytest.raises(InUse, match="endpoint digits"):
        deletions.delete(people.project, by=people.owner)


def test_a_version_with_an_alias_or_an_open_request_is_refused(people: People) -> None:
    model = make_model("digits", project=people.project, by=people.member)
    version = model.versions.get()
    alias = Alias.objects.create(model=model, name="champion", version=version)
    with pytest.raises(InUse, match="alias champion points at it"):
        deletions.delete(version, by=people.owner)
    alias.delete()
    request = make_promotion(version, by=people.member)
    with pytest.raises(InUse, match=f"promotion request {request.pk} is pending"):
        deletions.delete(version, by=people.owner)
    promotions.withdraw(request, by=people.member)
    deletions.delete(version, by=people.owner)
    assert not access.visible_promotions(people.owner).exists()


def test_the_number_of_a_deleted_version_is_never_used_again(people: People) -> None:
    job = finished(people)
    model = make_model("digits", project=people.project, by=people.member, versions=2)
    digest = job.artifacts.get().artifact_id
    deletion = deletions.delete(model.versions.get(number=2), by=people.owner)
    assert registration.add_version(model, digest, by=people.member).number == 3
    Job.objects.filter(kind="register").update(state="completed")  # its validation
    third = deletions.delete(model.versions.get(number=3), by=people.owner)
    for each in (deletion, third):
        pass_the_time(each)
    assert purge_all() == 2
    assert ModelVersion.everything.count() == 1
    assert registration.add_version(model, digest, by=people.member).number == 4


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
