"""The task of the gates has the class names of both versions."""

from pathlib import Path
from typing import cast

from jobs.actions.runs.tasks import task_for
from jobs.kinds.gate.payload import GateTask
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
