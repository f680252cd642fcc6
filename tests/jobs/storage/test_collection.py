"""Deleting files that nothing refers to, and nothing else."""

import os
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import models
from fsspec.implementations.memory import MemoryFileSystem

from jobs import clock
from jobs import models as tables
from jobs.actions.storage import artifacts, deletions
from jobs.actions.storage.collection import collect
from jobs.errors import NotFound
from jobs.models import Artifact, AuditEvent, Deletion, Experiment, JobArtifact
from jobs.queries.storage import references
from jobs.store import ObjectStore, store
from tests.factories import make_dataset, make_experiment, make_job, make_model
from tests.people import People

OLD = timedelta(days=3)


@pytest.fixture(autouse=True, params=["folder", "objects"])
def a_store(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> Iterator[None]:
    """Use a new store for each kind."""
    settings.TRAINYARD_HOME = tmp_path
    settings.TRAINYARD_ARTIFACTS = str(tmp_path / "artifacts")
    if request.param == "objects":
        settings.TRAINYARD_ARTIFACTS = f"memory://{tmp_path.name}"
    yield


def keep(tmp_path: Path, content: str, *, old: bool = True) -> Artifact:
    """Store a file with its row, some days ago or now."""
    file = tmp_path / "file"
    file.write_text(content)
    artifact = artifacts.adopt(store().put(file))
    if old:
        age(artifact)
    return artifact


def age(artifact: Artifact) -> None:
    Artifact.objects.filter(pk=artifact.pk).update(stored=clock.now() - OLD)
    age_files(artifact.digest)


def age_files(digest: str) -> None:
    past = time.time() - OLD.total_seconds()
    for path in store().checkpoint_root.parent.rglob(digest):
        os.utime(path, (past, past))
    for name, file in MemoryFileSystem.store.items():
        if name.endswith(digest):
            file.created = datetime.fromtimestamp(past, UTC)


def exists(artifact: Artifact) -> bool:
    try:
        return store().path(artifact.digest).is_file()
    except NotFound:
        return False


def forget_trash() -> None:
    for entry in list(store().trash()):
        store().erase(entry.digest)


def test_a_file_without_a_reference_is_deleted_with_its_row(people: People, tmp_path: Path) -> None:
    lone, used = keep(tmp_path, "lone"), keep(tmp_path, "used")
    JobArtifact.objects.create(
        job=make_job(by=people.member, project=people.project), attempt=1, artifact=used, role="x", name="x"
    )
    collected = collect()
    assert collected is not None
    assert (collected.files, collected.bytes) == (1, 4)
    forget_trash()
    assert exists(used)
    assert not exists(lone)
    assert list(Artifact.objects.all()) == [used]
    assert AuditEvent.objects.get(action="storage.collect").detail == {"files": 1, "bytes": 4}


def test_a_dry_run_counts_the_same_and_deletes_nothing(db: None, tmp_path: Path) -> None:
    lone = keep(tmp_path, "lone")
    keep(tmp_path, "fresh", old=False)
    orphan = keep(tmp_path, "orphan")
    Artifact.objects.filter(pk=orphan.pk).delete()
    dry = collect(dry_run=True)
    assert dry is not None
    assert exists(lone)
    assert exists(orphan)
    assert (dry.files, dry.bytes, dry.waiting) == (2, 10, 1)
    wet = collect()
    assert wet == dry
    assert not AuditEvent.objects.filter(action="storage.collect").exclude(detail__files=2).exists()


@pytest.mark.parametrize("column", ["upload", "table"])
def test_data_sets_keep_their_files(people: People, tmp_path: Path, column: str) -> None:
    data_file = keep(tmp_path, "data")
    version = make_dataset("flowers", project=people.project, by=people.member).versions.get()
    setattr(version, column, data_file)
    version.save()
    collect()
    assert exists(data_file)


def test_model_versions_keep_their_files_also_while_they_are_deleted(people: People, tmp_path: Path) -> None:
    model_file = keep(tmp_path, "model")
    version = make_model(project=people.project, by=people.member).versions.get()
    version.artifact = model_file
    version.save()
    deletion = deletions.delete(version, by=people.owner)
    collect()
    assert exists(model_file)
    Deletion.objects.filter(pk=deletion.pk).update(until=clock.now())
    collected = collect()
    assert collected is not None
    assert (collected.deletions, collected.files) == (1, 1)
    forget_trash()
    assert not exists(model_file)


def test_a_digest_in_a_spec_or_a_payload_keeps_its_file(people: People, tmp_path: Path) -> None:
    code, draft, payload, lone = (keep(tmp_path, name) for name in ("code", "draft", "payload", "lone"))
    spec = {"model": {"kind": "code", "digest": code.digest}}
    experiment = make_experiment(project=people.project, by=people.member, spec=spec)
    Experiment.objects.filter(pk=experiment.pk).update(draft={"model": {"digest": draft.digest}})
    make_job(by=people.member, project=people.project, payload={"exhausted": True, "x": payload.digest})
    collect()
    assert [exists(artifact) for artifact in (code, draft, payload)] == [True, True, True]
    assert not Artifact.objects.filter(pk=lone.pk).exists()


def test_what_was_stored_in_the_last_day_waits(db: None, tmp_path: Path) -> None:
    fresh = keep(tmp_path, "fresh", old=False)
    collected = collect()
    assert collected is not None
    assert (collected.files, collected.waiting, collected.waiting_bytes) == (0, 1, 5)
    assert exists(fresh)


def test_a_file_that_is_stored_again_is_kept_although_its_row_is_old(db: None, tmp_path: Path) -> None:
    again = keep(tmp_path, "again")
    file = tmp_path / "file"
    store().put(file)  # by an attempt that has not recorded it yet
    collect()
    assert exists(again)


def test_a_file_that_is_stored_while_it_is_being_deleted_is_found_again(
    people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lone = keep(tmp_path, "lone")
    file = tmp_path / "file"
    job = make_job(by=people.member, project=people.project)
    stored = store().put(file)
    age(lone)  # the attempt saw that the file exists, and the collection did not see the attempt
    collect()
    artifact = artifacts.adopt(stored)
    JobArtifact.objects.create(job=job, attempt=1, artifact=artifact, role="x", name="x")
    collect()
    forget_trash()
    assert store().path(stored.digest).read_text() == "lone"


def test_the_trash_is_emptied_after_a_day(db: None, tmp_path: Path) -> None:
    lone = keep(tmp_path, "lone")
    collect()
    collect()
    assert [entry.digest for entry in store().trash()] == [lone.digest]
    age_files(lone.digest)
    collected = collect()
    assert collected is not None
    assert (collected.erased, collected.erased_bytes) == (1, 4)
    assert not exists(lone)


def test_checkpoints_of_purged_jobs_are_deleted_and_those_of_others_kept(people: People) -> None:
    job = make_job(by=people.member, project=people.project)
    root = store().checkpoint_root
    for name in (f"job-{job.pk}", f"job-{job.pk + 1}", "job-x", "other"):
        (root / name / "1").mkdir(parents=True)
        (root / name / "1" / "weights").write_bytes(b"12345")
    collected = collect()
    assert collected is not None
    assert (collected.checkpoints, collected.checkpoint_bytes) == (1, 5)
    assert {path.name for path in root.iterdir()} == {f"job-{job.pk}", "job-x", "other"}


def test_every_json_column_is_known_to_the_collection() -> None:
    columns = {
        f"{model.__name__}.{field.name}"
        for model in vars(tables).values()
        if isinstance(model, type) and issubclass(model, models.Model)
        for field in model._meta.get_fields()
        if isinstance(field, models.JSONField)
    }
    referring = {f"{model.__name__}.{column}" for model, column in references.REFERRING}
    assert columns == referring | set(references.NOT_REFERRING)
    assert not referring & set(references.NOT_REFERRING)
    assert not [name for name in references.NOT_REFERRING if not re.fullmatch(r"\w+\.\w+", name)]


def test_the_store_of_objects_is_one(settings: Any) -> None:
    if "://" in settings.TRAINYARD_ARTIFACTS:
        assert isinstance(store(), ObjectStore)
