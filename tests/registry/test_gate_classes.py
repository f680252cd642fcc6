"""The tasks of gates and validations have the names of the versions' classes."""

from pathlib import Path
from typing import cast

from jobs.actions.registry import registration
from jobs.actions.runs.tasks import task_for
from jobs.kinds.gate.payload import GateTask
from jobs.kinds.register.payload import RegisterTask
from jobs.models import ModelVersion, PromotionRequest
from tests import factories
from tests.registry.conftest import Yard


def task_of(request: PromotionRequest, folder: Path) -> GateTask:
    assert request.gate_job is not None
    attempt = factories.make_attempt(request.gate_job, factories.make_worker())
    return cast(GateTask, task_for(attempt.pk, folder=folder, threads=1))


def test_challenger_and_champion_have_their_own_classes(yard: Yard, tmp_path: Path) -> None:
    champion = yard.live()
    ModelVersion.objects.filter(pk=champion.pk).update(class_labels=["No", "yes"])
    task = task_of(yard.request(), tmp_path)
    assert task.challenger_classes == tuple("0123456789")
    assert task.champion_classes == ("No", "yes")


def test_the_classes_of_an_uploaded_version_are_unknown(yard: Yard, tmp_path: Path) -> None:
    version = yard.version()
    ModelVersion.objects.filter(pk=version.pk).update(class_labels=[])
    version.refresh_from_db()
    task = task_of(yard.request(version), tmp_path)
    assert (task.challenger_classes, task.champion_classes) == (None, None)


def test_a_validation_gets_the_classes_that_the_training_reported(yard: Yard, tmp_path: Path) -> None:
    dataset = factories.make_dataset("digits", project=yard.project, by=yard.member)
    dataset.versions.update(table=yard.new_bytes())
    experiment = factories.make_experiment(project=yard.project, by=yard.member)
    results = {"class_labels": ["No", "yes"]}
    training = factories.make_job(
        experiment=experiment, kind="train", by=yard.member, state="completed", results=results
    )
    stored = factories.make_job_artifact(training)
    stored.artifact = yard.new_bytes()
    stored.save()
    version = registration.add_version(yard.model, stored.artifact_id, by=yard.member).version
    validation = registration.queue_validation(version, by=yard.member)
    attempt = factories.make_attempt(validation, factories.make_worker())
    task = cast(RegisterTask, task_for(attempt.pk, folder=tmp_path, threads=1))
    assert task.class_labels == ("No", "yes")
