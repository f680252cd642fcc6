"""Creates plausible rows for tests of pages and queries, without running any job."""

import hashlib
import itertools
from datetime import timedelta
from typing import Any

from django.utils import timezone

from jobs.actions.storage import artifacts
from jobs.models import (
    Artifact,
    Attempt,
    CodeFile,
    CodeVersion,
    Dataset,
    DatasetVersion,
    Endpoint,
    Execution,
    Experiment,
    Job,
    JobArtifact,
    Membership,
    ModelVersion,
    Project,
    PromotionRequest,
    RegisteredModel,
    Revision,
    Role,
    Trial,
    User,
    Worker,
)
from jobs.states import JobState, TrialState
from jobs.store import store

_numbers = itertools.count(1)

SPEC: dict[str, Any] = {
    "version": 1,
    "data": {"dataset": "digits", "dataset_version": 1},
    "model": {"kind": "template", "template": "mlp", "args": {"units": 64, "layers": 1}},
    "fit": {"epochs": 5, "batch_size": 128, "optimizer": "adam", "learning_rate": 0.001},
}
SEARCH: dict[str, Any] = {
    **SPEC,
    "search": {
        "algorithm": "random",
        "objective": {"metric": "val_accuracy", "direction": "max"},
        "max_trials": 4,
        "executions_per_trial": 2,
        "space": [{"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16}],
    },
}

PAYLOADS: dict[str, dict[str, Any]] = {
    "ensemble": {"members": [1, 2]},
    "quantize": {"source": 1},
    "register": {"version": 1},
    "gate": {"promotion": 1},
    "profile": {"dataset_version": 1},
    "external_search": {"outside": {"metric": "val_accuracy", "direction": "max"}},
    "chosen_ensemble": {"search": 1, "chosen": [{"trial": 1, "values": {}}, {"trial": 2, "values": {}}]},
    "split_overview": {"dataset_version": 1, "split": {}, "key": "split"},
    "dry_build": {
        "model": {"kind": "code", "digest": "c" * 64, "entry": "model.py:build_model"},
        "data": SPEC["data"],
        "key": "build",
    },
    "mesh_estimate": {"spec": SPEC, "model_key": "model", "key": "estimate"},
    "dry_run": {"spec_json": SPEC, "key": "run"},
    "install": {"code": "c" * 64, "requirements": "d" * 64, "for_engine": True},
    "code_data": {"code": "c" * 64, "dataset": "digits"},
}
"""The minimal payload of each kind of job."""


def make_project(slug: str = "", *, owner: User, name: str = "", **roles: list[User]) -> Project:
    """Make a project; `member=[…]`, `viewer=[…]` and so on name further people."""
    slug = slug or f"project-{next(_numbers)}"
    project = Project.objects.create(slug=slug, name=name or slug.capitalize(), created_by=owner)
    Membership.objects.create(project=project, user=owner, role=Role.ADMIN)
    for role, users in roles.items():
        for user in users:
            Membership.objects.create(project=project, user=user, role=role)
    return project


def make_artifact(content: bytes = b"") -> Artifact:
    """Make the row of an artifact; no bytes are stored."""
    content = content or f"artifact {next(_numbers)}".encode()
    digest = hashlib.sha256(content).hexdigest()
    return Artifact.objects.get_or_create(digest=digest, defaults={"bytes": len(content)})[0]


def make_dataset(slug: str = "", *, project: Project | None = None, by: User | None = None) -> Dataset:
    """Make a data set with one ready version; without a project it is a bundled one."""
    slug = slug or f"data-{next(_numbers)}"
    source = Dataset.Source.UPLOAD if project else Dataset.Source.BUNDLED
    dataset = Dataset.objects.create(project=project, slug=slug, name=slug, source=source, created_by=by)
    table = make_artifact()
    DatasetVersion.objects.create(
        dataset=dataset,
        number=1,
        state=DatasetVersion.State.READY,
        table=table,
        digest=table.digest,
        rows=1797,
        profile_json=profile(),
        created_by=by,
    )
    return dataset


def profile(**changes: Any) -> dict[str, Any]:
    """Return a small classification table's profile."""
    columns = [
        {"name": name, "dtype": "float32", "min": 0.0, "max": 16.0, "mean": 4.9, "std": 6.0, "distinct": 17}
        for name in ("width", "height")
    ]
    return {
        "rows": 1797,
        "kind": "vector",
        "task": "multiclass",
        "target": "label",
        "features": ["width", "height"],
        "input_shape": [2],
        "outputs": 3,
        "class_labels": ["a", "b", "c"],
        "class_counts": [600, 600, 597],
        "columns": columns,
        "preview": [{"width": 1.0, "height": 2.0, "label": "a"}],
        **changes,
    }


def make_code(
    name: str = "", *, project: Project, by: User, path: str = "model.py", source: str = ""
) -> CodeVersion:
    """Make a code version with one stored file."""
    name = name or f"code {next(_numbers)}"
    source = source or f"# {name}, {next(_numbers)}\n"
    artifact = artifacts.adopt(store().put_blocks([source.encode()]))
    version = CodeVersion.objects.create(
        project=project, name=name, digest=artifact.digest, bytes=artifact.bytes, created_by=by
    )
    CodeFile.objects.create(version=version, path=path, artifact=artifact, lines=source.count("\n"))
    return version


def make_experiment(name: str = "", *, project: Project, by: User, spec: Any = None) -> Experiment:
    """Make an experiment with one revision."""
    name = name or f"experiment {next(_numbers)}"
    experiment = Experiment.objects.create(project=project, name=name, created_by=by)
    body = spec or SEARCH
    digest = hashlib.sha256(repr(body).encode()).hexdigest()
    Revision.objects.create(experiment=experiment, number=1, spec_json=body, digest=digest, created_by=by)
    return experiment


def make_job(
    *,
    by: User,
    project: Project | None = None,
    experiment: Experiment | None = None,
    kind: str = "search",
    state: str = JobState.QUEUED,
    payload: dict[str, Any] | None = None,
    results: dict[str, Any] | None = None,
    **fields: Any,
) -> Job:
    """Make a job whose times fit its state; trials of a search are made by `make_trials`."""
    now = timezone.now()
    started = state not in (JobState.DRAFT, JobState.QUEUED)
    finished = state in (JobState.COMPLETED, JobState.FAILED, JobState.STOPPED)
    job = Job.objects.create(
        project=experiment.project if experiment else project,
        experiment=experiment,
        revision=experiment.revisions.first() if experiment else None,
        kind=kind,
        ordinal=fields.pop("ordinal", 1),
        title=fields.pop("title", experiment.name if experiment else f"{kind} {next(_numbers)}"),
        state=state,
        payload_json=payload if payload is not None else PAYLOADS.get(kind, {}),
        results_json=results or {},
        created_by=by,
        queued=now - timedelta(minutes=9),
        started=now - timedelta(minutes=8) if started else None,
        finished=now - timedelta(minutes=2) if finished else None,
        **fields,
    )
    Job.objects.filter(pk=job.pk).update(root=job.parent.root_id_or_self if job.parent else job)
    job.refresh_from_db()
    return job


def make_trials(job: Job, count: int = 4) -> list[Trial]:
    """Make completed trials with two executions each."""
    trials = []
    for number in range(1, count + 1):
        values = {"units": 16 * number}
        score = 0.9 + 0.01 * number
        trial = Trial.objects.create(
            job=job,
            number=number,
            state=TrialState.COMPLETED,
            values=values,
            values_digest=hashlib.sha256(repr(values).encode()).hexdigest(),
            score=score,
            std=0.004,
            started=job.started,
            finished=job.finished,
        )
        for execution in (1, 2):
            Execution.objects.create(
                trial=trial,
                number=execution,
                state=TrialState.COMPLETED,
                seed=execution,
                score=score + 0.002 * (execution - 1.5),
                best_epoch=3,
                epochs=5,
                metrics={"val_accuracy": score, "val_loss": 1 - score},
            )
        trials.append(trial)
    return trials


def make_worker(name: str = "", *, slots: int = 4, pool: str = "default", **fields: Any) -> Worker:
    """Make a worker that is up with a valid lease."""
    devices = [
        {
            "name": f"cpu:{number}",
            "kind": "cpu",
            "memory_bytes": 8_000_000_000,
            "memory_used": 1_900_000_000,
            "load": 0.35,
        }
        for number in range(2)
    ]
    defaults = {
        "devices": devices,
        "info": {"versions": {"jax": "0.12.0", "keras": "3.15.1"}},
        "lease_until": timezone.now() + timedelta(hours=1),
    }
    name = name or f"box-{next(_numbers)}"
    row = {"host": name, "pid": 4242, "pool": pool, "slots": slots, **defaults, **fields}
    return Worker.objects.create(name=name, **row)


def make_attempt(job: Job, worker: Worker, *, slots: int = 1, trial: Trial | None = None) -> Attempt:
    """Make a running attempt that holds slots of a worker."""
    now = timezone.now()
    job.fence += 1
    job.save(update_fields=["fence"])
    attempt = Attempt.objects.create(
        job=job,
        number=job.fence,
        worker=worker,
        slots=slots,
        state="running",
        lease_until=now + timedelta(hours=1),
        assigned=now,
        claimed=now,
    )
    attempt.trials.set([trial] if trial is not None else [])
    return attempt


def make_model(name: str = "", *, project: Project, by: User, versions: int = 1) -> RegisteredModel:
    """Make a registered model with candidate versions and its endpoint, nothing released."""
    name = name or f"model-{next(_numbers)}"
    model = RegisteredModel.objects.create(name=name, project=project, created_by=by)
    Endpoint.objects.create(model=model)
    for number in range(1, versions + 1):
        ModelVersion.objects.create(
            model=model,
            number=number,
            artifact=make_artifact(),
            state=ModelVersion.State.CANDIDATE,
            what="best",
            metrics={"test": {"accuracy": 0.95 + 0.005 * number}},
            signature={
                "inputs": [{"name": "features", "dtype": "float32", "shape": [64]}],
                "outputs": [{"name": "probabilities", "dtype": "float32", "shape": [10]}],
            },
            class_labels=[str(digit) for digit in range(10)],
            created_by=by,
        )
    return model


def make_promotion(version: ModelVersion, *, by: User, state: str = "pending") -> PromotionRequest:
    """Make a promotion request to production with every gate passed."""
    return PromotionRequest.objects.create(
        model=version.model,
        version=version,
        stage="production",
        state=state,
        comment="Better on the same test rows.",
        requested_by=by,
        gates=[{"name": "loads", "state": "passed"}],
        expires=timezone.now() + timedelta(days=7),
    )


def make_job_artifact(job: Job, *, role: str = "model", name: str = "model.keras") -> JobArtifact:
    """Give a job an artifact."""
    return JobArtifact.objects.create(job=job, attempt=1, artifact=make_artifact(), role=role, name=name)
