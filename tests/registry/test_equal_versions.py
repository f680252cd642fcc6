"""A version whose file, code and data a model has already is that version: it is not added again."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobs.actions.registry import registration
from jobs.actions.runs.kind_actions import actions_for
from jobs.actions.storage import deletions
from jobs.models import (
    AuditEvent,
    Job,
    JobArtifact,
    ModelVersion,
    PackageSet,
    RegisteredModel,
    WaitingAuditEvent,
)
from jobs.queries.registry import versions
from jobs.queries.runs import jobs as job_queries
from jobs.store import StoredFile
from tests.factories import make_code, make_dataset
from tests.jobs.test_races import at_once
from tests.registry.conftest import Yard, make_yard
from tests.registry.test_outputs import finished


@pytest.fixture
def racing(transactional_db: None, tmp_path: Path) -> Yard:
    """The same rows, for threads with their own connections."""
    return make_yard(tmp_path)


def repeated(yard: Yard, model: str) -> tuple[Job, Job]:
    """Return two trainings with the same file, both of which register their best model."""
    first, second = finished(yard, model), finished(yard, model)
    make_same_file(second, first)
    return first, second


def make_same_file(job: Job, as_of: Job) -> None:
    JobArtifact.objects.filter(job=job).update(artifact=as_of.artifacts.get().artifact)


def register(job: Job) -> ModelVersion:
    (version,) = registration.register_outputs(job)
    return version


def actions_on_versions() -> list[str]:
    kinds = (AuditEvent.objects, WaitingAuditEvent.objects)
    actions = [action for kind in kinds for action in kind.values_list("action", flat=True)]
    return [action for action in actions if action.startswith("version.")]


def test_a_repeated_job_gets_the_version_of_the_first(yard: Yard) -> None:
    first, second = repeated(yard, "digits")
    assert register(first) == register(second)
    assert yard.model.versions.count() == 1
    second.refresh_from_db()
    (warning,) = second.warnings
    assert warning == {
        "code": "same_version",
        "message": "Its model is digits v1, bit by bit: no further version was added.",
    }
    assert actions_on_versions() == ["version.create", "version.repeat"]


def test_the_job_that_repeats_names_the_version_of_its_model(yard: Yard) -> None:
    first, second = repeated(yard, "digits")
    version = register(first)
    register(second)
    by_job = versions.versions_by_job(yard.member, [first.pk, second.pk])
    assert by_job == {first.pk: [version], second.pk: [version]}
    results: Any = job_queries.job_out(second, yard.member).results
    assert [(made["model"], made["number"]) for made in results["versions"]] == [("digits", 1)]


def test_a_repeat_that_is_interrupted_says_it_once(yard: Yard) -> None:
    first, second = repeated(yard, "digits")
    register(first)
    for _ in range(2):
        register(second)
    second.refresh_from_db()
    assert len(second.warnings) == 1


def test_the_step_of_a_repeat_validates_the_earlier_version(yard: Yard) -> None:
    first, second = repeated(yard, "digits")
    version = register(first)
    assert second.revision is not None
    (step,) = actions_for("register").children(second, second.revision.spec)
    assert step.payload_json["version"] == version.pk


def test_another_model_gets_a_version_of_its_own(yard: Yard) -> None:
    first, _ = repeated(yard, "digits")
    version = register(first)
    other = RegisteredModel.objects.create(name="others", project=yard.project)
    made = registration.add_version(other, version.artifact_id, by=yard.member)
    assert (made.is_new, made.version.number) == (True, 1)


@pytest.mark.parametrize("difference", ["data", "code", "packages"])
def test_equal_files_with_other_data_code_or_packages_are_two_versions(yard: Yard, difference: str) -> None:
    first, second = repeated(yard, "digits")
    version = register(first)
    if difference == "data":
        data = make_dataset(project=yard.project).versions.get()
        Job.objects.filter(pk=second.pk).update(payload_json={"dataset_version": data.pk})
        second.refresh_from_db()
    elif difference == "code":
        ModelVersion.objects.filter(pk=version.pk).update(
            code=make_code(project=yard.project, by=yard.member)
        )
    else:
        sets = [PackageSet.objects.create(digest=letter * 64, packages_json=[]) for letter in "ab"]
        ModelVersion.objects.filter(pk=version.pk).update(packages=sets[0])
        equal = registration._equal_version(
            yard.model, artifact=version.artifact, lineage={}, packages=sets[1]
        )
        assert equal is None
        return
    assert register(second) != version


@pytest.mark.parametrize("end", ["deleted", "invalid"])
def test_a_deleted_or_invalid_version_does_not_keep_its_file_from_a_new_one(yard: Yard, end: str) -> None:
    first, second = repeated(yard, "digits")
    version = register(first)
    if end == "deleted":
        deletions.delete(version, by=yard.owner)
    else:
        registration.mark_invalid(version.pk, {"message": "it does not load"})
    assert register(second).number == 2


def test_a_file_that_is_uploaded_twice_is_one_version(yard: Yard) -> None:
    artifact = yard.new_bytes()
    stored = StoredFile(artifact.digest, artifact.bytes)
    first = registration.add_uploaded(yard.model, stored, by=yard.member)
    again = registration.add_uploaded(yard.model, stored, by=yard.member)
    assert (first.is_new, again.is_new) == (True, False)
    assert first.version == again.version
    assert Job.objects.filter(kind="register").count() == 1


def test_a_model_of_a_repeat_that_a_person_registers_is_the_version_of_the_first(
    yard: Yard, django_capture_on_commit_callbacks: Any
) -> None:
    first, second = repeated(yard, "digits")
    version = register(first)
    with django_capture_on_commit_callbacks(execute=True):
        made = registration.add_version(yard.model, version.artifact_id, by=yard.member)
    assert (made.is_new, made.version) == (False, version)
    second.refresh_from_db()
    assert [warning["code"] for warning in second.warnings] == ["same_version"]
    assert not Job.objects.filter(kind="register").exists(), "it is validated already"


@pytest.mark.django_db(transaction=True)
def test_registrations_at_the_same_time_make_one_version(racing: Yard) -> None:
    jobs = [finished(racing, "digits") for _ in range(4)]
    for job in jobs[1:]:
        make_same_file(job, jobs[0])
    digest = jobs[0].artifacts.get().artifact_id
    adding = partial(registration.add_version, racing.model, digest, by=racing.member)
    results = at_once(*[partial(register, job) for job in jobs], adding, adding)
    assert not [result for result in results if isinstance(result, BaseException)], results
    assert racing.model.versions.count() == 1
    assert actions_on_versions().count("version.create") == 1
