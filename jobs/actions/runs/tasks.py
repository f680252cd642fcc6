"""Builds an attempt's task from its job's rows, with every input as a local file."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from jobs.actions.code import own_code
from jobs.actions.runs.kind_actions import actions_of
from jobs.actions.runs.submit import dataset_version
from jobs.errors import Conflict
from jobs.messages.task import BaseModelFile, CheckpointFolder, DatasetFile, Task
from jobs.models import Attempt, Checkpoint, DatasetVersion, Job, ModelVersion
from jobs.queries.experiments import base_versions
from jobs.queries.registry.versions import is_foreign
from jobs.spec.experiment import ExperimentSpec
from jobs.store import store

NEWEST_CHECKPOINTS = 3
"""How many checkpoints a task lists: the runner restores the first that is intact."""


def task_for(attempt_id: int, *, folder: Path, threads: int, compile_cache: Path | None = None) -> Task:
    """Return an attempt's task.

    Args:
        attempt_id: a claimed attempt.
        folder: the attempt's own folder on this machine.
        threads: how many CPU threads the attempt's slots provide.
        compile_cache: the project's private folder for compiled programs.
    """
    related = ("job__revision", "job__parent", "job__project")
    attempt = Attempt.objects.select_related(*related).get(pk=attempt_id)
    checkpoints = store().checkpoint_root / f"job-{attempt.job_id}"
    checkpoints.mkdir(parents=True, exist_ok=True)
    common = {
        "folder": str(folder),
        "checkpoints": str(checkpoints),
        "fence": attempt.number,
        "threads": threads,
        "compile_cache": str(compile_cache) if compile_cache is not None else None,
        "code": own_code.code_of_job(attempt.job),
    }
    if attempt.job.revision is not None:
        common["base_model"] = base_model_of(attempt.job.revision.spec)
    return actions_of(attempt.job).build_task(attempt, common)


def base_model_of(spec: ExperimentSpec) -> BaseModelFile | None:
    """Return the version's file from which a training reads its first weights, or None for new weights."""
    version = base_versions.pinned_version(spec)
    if version is None:
        return None
    return BaseModelFile(
        path=str(store().path(version.artifact_id)),
        digest=version.artifact_id,
        foreign=is_foreign(version),
    )


def dataset_of(job: Job) -> DatasetFile:
    """Return the table that a job reads.

    Raises:
        Conflict: the job reads no data, or the data's profile is not ready.
    """
    version = _dataset_version(job)
    if version is None:
        raise Conflict(f"the dataset version that job {job.pk} reads does not exist")
    return dataset_file(version)


def dataset_if_any(job: Job) -> DatasetFile | None:
    """Return the table that a job reads, or None if its experiment has no data.

    Raises:
        Conflict: see `dataset_of`.
    """
    return None if spec_of(job).data is None else dataset_of(job)


def _dataset_version(job: Job) -> DatasetVersion | None:
    """Return the dataset version in a job's payload, or None if it has none or the version was deleted."""
    pk = job.payload.dataset_version
    rows = DatasetVersion.objects.select_related("table")
    return rows.filter(pk=pk).first() if pk is not None else None


def dataset_file(version: DatasetVersion) -> DatasetFile:
    """Return a dataset version's table.

    Raises:
        Conflict: its profile is not ready.
    """
    if version.table is None or version.profile_json is None:
        raise Conflict(f"dataset version {version} is not ready")
    return DatasetFile(
        path=str(store().path(version.table.digest)), digest=version.digest, profile=version.profile_json
    )


def origin_of(version: ModelVersion) -> tuple[ExperimentSpec | None, DatasetFile | None]:
    """Return the spec and the data of a version's training; (None, None) for a file from outside.

    A script's model is such a file: only the script knows the meaning of its inputs.
    """
    source = version.source_job
    if source is None or source.revision is None or is_foreign(version):
        return None, None
    data = data_of(version)
    return source.revision.spec, None if data is None else dataset_file(data)


def data_of(version: ModelVersion) -> DatasetVersion | None:
    """Return the data of a version's training, or None for a file from outside.

    Raises:
        BadSpec: they were deleted.
    """
    source = version.source_job
    if source is None or source.revision is None or is_foreign(version):
        return None
    # The payload names the version that was read; the spec may leave it open, and newer ones may exist now.
    return _dataset_version(source) or dataset_version(source.revision.spec, source.revision)


def spec_of(job: Job) -> ExperimentSpec:
    """Return the spec that a job runs.

    Raises:
        Conflict: the job does not come from an experiment.
    """
    if job.revision is None:
        raise Conflict(f"job {job.pk} has no experiment")
    return job.revision.spec


def checkpoint_folders(
    rows: Iterable[Checkpoint], workers: Mapping[int, str] | None = None
) -> tuple[CheckpointFolder, ...]:
    """Return the folders from which a training may resume, newest first.

    These are the newest checkpoints, and the newest one with a copy in object storage, if it is older.

    Args:
        rows: the training's checkpoints, newest first.
        workers: the names of the workers that wrote them, by the number of the attempt.
    """
    newest = list(rows)
    chosen = newest[:NEWEST_CHECKPOINTS]
    if not any(row.stored for row in chosen):
        chosen += [row for row in newest if row.stored][:1]
    root = store().checkpoint_root
    return tuple(
        CheckpointFolder(
            folder=str(root / row.folder),
            manifest=row.manifest,
            step=row.step,
            epoch=row.epoch,
            copied=row.stored is not None,
            worker=(workers or {}).get(row.attempt, ""),
        )
        for row in chosen
    )


def artifact_path(job: Job, role: str) -> str:
    """Return the path to a job's newest artifact in a role."""
    return str(store().path(job.artifacts.filter(role=role).latest("pk").artifact_id))
