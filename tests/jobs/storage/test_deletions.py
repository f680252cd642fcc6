"""Deleting rows so that they can be restored, and purging them when their time has passed."""

from pathlib import Path

import pytest

from jobs import access
from jobs.actions.data import datasets
from jobs.actions.people import people as people_actions
from jobs.actions.registry import promotions
from jobs.actions.storage import deletions
from jobs.errors import Conflict, Forbidden, InUse, NotFound
from jobs.models import (
    Alias,
    Checkpoint,
    Deletion,
    Experiment,
    Job,
    ReleaseRecord,
)
from jobs.queries.storage import deletions as queries
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
    assert {loss.what: loss.count for loss in preview.lost} == {
        "jobs": 1,
        "trials": 3,
        "files of jobs": 2,
        "checkpoints": 1,
    }
    bytes_of_job = sum(job.artifacts.values_list("artifact__bytes", flat=True))
    assert (preview.bytes, preview.frees) == (
        bytes_of_job + 1000,
        bytes_of_job + 1000 - shared.artifact.bytes,
    )
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
    deleted_job = deletions.delete(job, by=people.member)
    data = deletions.delete(dataset, by=people.member)
    with pytest.raises(NotFound):
        access.get_dataset(people.member, "flowers", people.project)
    assert not access.visible_dataset_versions(people.administrator).filter(dataset=dataset).exists()
    with pytest.raises(Conflict, match="before data set flowers is"):
        deletions.restore(deleted_job, by=people.member)
    for deletion in (data, deleted_job, gone):
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
