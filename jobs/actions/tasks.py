"""Builds what a runner is to do from the rows, with every input as a local file."""

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from django.db.models import Prefetch

from jobs.actions.submit import dataset_version
from jobs.contracts import task as tasks
from jobs.contracts.after import Ensemble, Quantize
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.values import apply_values
from jobs.errors import Conflict
from jobs.models import (
    Attempt,
    Checkpoint,
    DatasetVersion,
    Execution,
    Job,
    JobArtifact,
    ModelVersion,
    PromotionRequest,
)
from jobs.queries import curves, outcomes, steps
from jobs.states import JobKind
from jobs.store import store

NEWEST_CHECKPOINTS = 3


def task_for(attempt_id: int, *, folder: Path, threads: int, compile_cache: Path | None = None) -> tasks.Task:
    """Return the task of an attempt.

    Args:
        attempt_id: a claimed attempt.
        folder: the attempt's own folder on this machine.
        threads: how many CPU threads its slots give it.
        compile_cache: folder of compiled programs, private to the project.
    """
    attempt = Attempt.objects.select_related("job", "job__revision", "job__parent").get(pk=attempt_id)
    common = {
        "folder": str(folder),
        "checkpoints": str(checkpoint_folder(attempt)),
        "fence": attempt.number,
        "threads": threads,
        "compile_cache": str(compile_cache) if compile_cache is not None else None,
    }
    return _BUILDERS[attempt.job.kind](attempt, common)


def checkpoint_folder(attempt: Attempt) -> Path:
    """Return where the checkpoints of an attempt's job lie, made if absent; its trials have folders in it."""
    folder = store().checkpoint_root / f"job-{attempt.job_id}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _dataset(version: DatasetVersion) -> tasks.DatasetFile:
    if version.table is None or version.profile_json is None:
        raise Conflict(f"dataset version {version} is not ready")
    return tasks.DatasetFile(
        path=str(store().path(version.table.digest)), digest=version.digest, profile=version.profile_json
    )


def _dataset_of(job: Job) -> tasks.DatasetFile:
    return _dataset(DatasetVersion.objects.select_related("table").get(pk=job.payload["dataset_version"]))


def _spec(job: Job) -> ExperimentSpec:
    if job.revision is None:
        raise Conflict(f"job {job.pk} has no experiment")
    return job.revision.spec


def _checkpoints(rows: Iterable[Checkpoint]) -> tuple[tasks.CheckpointFolder, ...]:
    root = store().checkpoint_root
    return tuple(
        tasks.CheckpointFolder(folder=str(root / row.folder), manifest=row.manifest, step=row.step)
        for row in islice(rows, NEWEST_CHECKPOINTS)
    )


def _model_path(job: Job) -> str:
    return str(store().path(_artifact(job, "model").artifact_id))


def _artifact(job: Job, role: str) -> JobArtifact:
    return job.artifacts.filter(role=role).latest("pk")


def _profile(attempt: Attempt, common: dict[str, Any]) -> tasks.Task:
    version = DatasetVersion.objects.select_related("upload").get(pk=attempt.job.payload["dataset_version"])
    path = str(store().path(version.upload.digest)) if version.upload is not None else None
    return tasks.ProfileTask(**common, **_asked(version), path=path)


def _asked(version: DatasetVersion) -> dict[str, Any]:
    """Return the request without the file's name, which is for people."""
    return {name: value for name, value in version.request.items() if name != "file"}


def _search(attempt: Attempt, common: dict[str, Any]) -> tasks.Task:
    open_ones = Execution.objects.incomplete().order_by("number")
    standing = Checkpoint.objects.kept().order_by("-pk")
    trials = (
        attempt.trials.unfinished()
        .order_by("number")
        .prefetch_related(
            Prefetch("executions", open_ones, to_attr="todo"),
            Prefetch("checkpoints", standing, to_attr="kept"),
        )
    )
    spec = _spec(attempt.job)
    top = outcomes.top_rung(attempt.job)
    return tasks.TrialTask(
        **common,
        spec=spec,
        objective=outcomes.objective_of(attempt.job),
        dataset=_dataset_of(attempt.job),
        trials=tuple(_plan(trial, spec, top) for trial in trials),
        curves=curves.of(attempt.job),
    )


def _plan(trial: Any, spec: ExperimentSpec, top: int | None) -> tasks.TrialPlan:
    """Return the plan of a trial with its open executions as `todo` and its checkpoints as `kept`.

    At the end of each rung it waits, but for the highest, which ends at epoch `top`.
    """
    return tasks.TrialPlan(
        number=trial.number,
        values=trial.values,
        spec=_continued(apply_values(spec, trial.values), trial.until),
        executions=tuple(
            tasks.ExecutionPlan(
                execution=execution.number,
                seed=execution.seed,
                repeat=execution.repeat,
                fold=execution.fold,
                checkpoints=_checkpoints(row for row in trial.kept if row.execution == execution.number),
            )
            for execution in trial.todo
        ),
        until=trial.epochs if trial.until is None else trial.until,
        waits=trial.until is None and trial.epochs is not None and top is not None and trial.epochs < top,
    )


def _continued(spec: ExperimentSpec, until: int | None) -> ExperimentSpec:
    """Return a trial's spec; one that was let go on to an epoch trains up to it, whatever its patience."""
    if until is None:
        return spec
    fit = spec.fit.model_copy(update={"epochs": until, "early_stopping": None})
    return spec.model_copy(update={"fit": fit})


def _train(attempt: Attempt, common: dict[str, Any]) -> tasks.Task:
    job = attempt.job
    spec = _spec(job)
    return tasks.TrainTask(
        **common,
        spec=apply_values(spec, job.payload.get("values", {})),
        dataset=_dataset_of(job),
        retrain=steps.followed(job.parent or job).after.retrain,
        objective=outcomes.objective_of(job.parent or job),
        model_name=f"m{job.pk}",
        resume=_checkpoints(Checkpoint.objects.kept().filter(job=job).order_by("-pk")),
    )


def _ensemble(attempt: Attempt, common: dict[str, Any]) -> tasks.Task:
    job = attempt.job
    spec = _spec(job)
    rows = Job.objects.in_bulk(job.payload["members"])
    jobs = [rows[pk] for pk in job.payload["members"]]
    objective = outcomes.objective_of(job.parent or job)
    return tasks.EnsembleTask(
        **common,
        spec=spec,
        ensemble=spec.after.ensemble or Ensemble(),
        dataset=_dataset_of(job),
        members=tuple(
            tasks.Member(
                name=f"m{member.pk}",
                title=member.title,
                model=_model_path(member),
                validation_predictions=str(
                    store().path(_artifact(member, "validation_predictions").artifact_id)
                ),
                score=outcomes.validation_score(member, objective),
                values=member.payload.get("values", {}),
            )
            for member in jobs
        ),
    )


def _quantize(attempt: Attempt, common: dict[str, Any]) -> tasks.Task:
    job = attempt.job
    spec = _spec(job)
    source = Job.objects.get(pk=job.payload["source"])
    return tasks.QuantizeTask(
        **common,
        spec=spec,
        quantize=spec.after.quantize or Quantize(),
        dataset=_dataset_of(job),
        model=_model_path(source),
    )


def _lineage(version: ModelVersion) -> tuple[ExperimentSpec | None, tasks.DatasetFile | None]:
    """Return spec and data that a version was made with; nothing for an uploaded one."""
    source = version.source_job
    if source is None or source.revision is None:
        return None, None
    data = (
        DatasetVersion.objects.select_related("table")
        .filter(pk=source.payload.get("dataset_version"))
        .first()
    )
    if data is None:
        data = dataset_version(source.revision.spec, source.revision)
    return source.revision.spec, _dataset(data)


def _register(attempt: Attempt, common: dict[str, Any]) -> tasks.Task:
    version = ModelVersion.objects.select_related("source_job__revision").get(
        pk=attempt.job.payload["version"]
    )
    _, dataset = _lineage(version)
    return tasks.RegisterTask(
        **common,
        model=str(store().path(version.artifact_id)),
        digest=version.artifact_id,
        foreign=version.source_job_id is None,
        dataset=dataset,
    )


def _gate(attempt: Attempt, common: dict[str, Any]) -> tasks.Task:
    promotion = PromotionRequest.objects.select_related(
        "version__source_job__revision", "baseline_version"
    ).get(pk=attempt.job.payload["promotion"])
    version, champion = promotion.version, promotion.baseline_version
    spec, dataset = _lineage(version)
    return tasks.GateTask(
        **common,
        challenger=str(store().path(version.artifact_id)),
        challenger_digest=version.artifact_id,
        champion=str(store().path(champion.artifact_id)) if champion is not None else None,
        champion_signature=champion.signature if champion is not None else None,
        dataset=dataset,
        spec=spec,
    )


_BUILDERS: dict[str, Callable[[Attempt, dict[str, Any]], tasks.Task]] = {
    JobKind.SEARCH: _search,
    JobKind.PROFILE: _profile,
    JobKind.TRAIN: _train,
    JobKind.ENSEMBLE: _ensemble,
    JobKind.QUANTIZE: _quantize,
    JobKind.REGISTER: _register,
    JobKind.GATE: _gate,
}
