"""A project with a data set and experiments, and a worker that the test simulates."""

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from jobs.actions.runs import attempt_end, attempts, pipeline, schedule, submit, workers
from jobs.actions.search import suggest
from jobs.messages import events as contract
from jobs.messages.events import RunnerEvent
from jobs.messages.suggest import Answer, Suggestion
from jobs.models import (
    Artifact,
    Attempt,
    Dataset,
    DatasetVersion,
    Experiment,
    Job,
    Membership,
    Project,
    Reachability,
    Revision,
    Trial,
    User,
)
from jobs.models import Worker as WorkerRow
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.space.search_space import grid
from jobs.states import Outcome
from jobs.store import StoredFile

SEARCH: dict[str, Any] = {
    "algorithm": "grid",
    "objective": {"metric": "val_accuracy", "direction": "max"},
    "max_trials": 4,
    "executions_per_trial": 2,
    "space": [{"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16}],
}
PROFILE: dict[str, Any] = {
    "rows": 100,
    "kind": "vector",
    "task": "multiclass",
    "target": "y",
    "features": ["a", "b"],
    "input_shape": [2],
    "outputs": 3,
    "columns": [],
    "preview": [],
}


def spec(**parts: Any) -> ExperimentSpec:
    """Return a small spec; `parts` replace whole sections."""
    body = {
        "version": 1,
        "data": {"dataset": "flowers"},
        "model": {"kind": "template", "template": "mlp"},
        "fit": {"epochs": 3},
    }
    return ExperimentSpec.model_validate(body | parts)


@dataclass
class Yard:
    """The rows that every domain test needs."""

    owner: User
    project: Project
    dataset: DatasetVersion

    def submit(self, **parts: Any) -> Job:
        """Queue an experiment with this spec."""
        return submit.submit(self.revision(**parts), by=self.owner)

    def revision(self, **parts: Any) -> Revision:
        """Freeze a spec as the first revision of a new experiment."""
        frozen = spec(**parts)
        experiment = Experiment.objects.create(project=self.project, name="try", created_by=self.owner)
        return Revision.objects.create(
            experiment=experiment,
            number=1,
            spec_json=frozen.to_json(),
            digest=frozen.digest(),
            created_by=self.owner,
        )


def make_yard() -> Yard:
    """Build the rows."""
    owner = User.objects.create(username="olga")
    project = Project.objects.create(slug="yard", name="Yard", created_by=owner)
    Membership.objects.create(project=project, user=owner, role="admin")
    dataset = Dataset.objects.create(project=project, slug="flowers", name="Flowers", source="upload")
    table, _ = Artifact.objects.get_or_create(digest="a" * 64, defaults={"bytes": 1})
    version = DatasetVersion.objects.create(
        dataset=dataset, number=1, state="ready", table=table, digest="a" * 64, profile_json=PROFILE
    )
    let_leases_expire()
    return Yard(owner, project, version)


def let_leases_expire() -> None:
    """Let the database have been reachable for long, so that an expired lease ends its attempt at once."""
    hour = timedelta(hours=1)
    Reachability.objects.create(pk=1, since=timezone.now() - hour, seen=timezone.now() + hour)


class PretendWorker:
    """A worker whose runners report the events of the test."""

    def __init__(
        self,
        *,
        slots: int = 1,
        pool: str = "default",
        name: str = "",
        gpus: int = 0,
        labels: dict[str, str] | None = None,
        info: dict[str, Any] | None = None,
    ) -> None:
        devices = [{"name": f"gpu:{number}", "kind": "NVIDIA H200"} for number in range(gpus)]
        if not name:
            # A live worker may have the first name.
            taken = WorkerRow.objects.filter(name__startswith="w", host="h").count()
            name = f"w-{taken + 1}" if taken else "w"
        self.row: WorkerRow = workers.register(
            name=name,
            host="h",
            pid=1,
            pool=pool,
            slots=slots,
            labels=labels or {},
            devices=devices,
            info=info or {},
        )
        self.spool: dict[int, int] = {}

    def claim_all(self) -> list[Attempt]:
        """Claim everything placed on this worker."""
        claims = [attempts.claim(a.pk, worker_id=self.row.pk) for a in attempts.assigned_to(self.row.pk)]
        return [attempt for attempt in claims if attempt is not None]

    def report(
        self, attempt: Attempt, *batch: RunnerEvent, files: dict[str, StoredFile] | None = None
    ) -> None:
        """Record events from an attempt's runner."""
        self.spool[attempt.pk] = self.spool.get(attempt.pk, 0) + len(batch)
        attempts.record_events(attempt.pk, batch, spool_position=self.spool[attempt.pk], stored=files or {})

    def run(self, attempt: Attempt, *, score: float = 0.9) -> None:
        """Let an attempt start and complete."""
        self.report(attempt, contract.Started(time=time.time()))
        for trial in attempt.trials.order_by("number"):
            self.run_trial(attempt, trial, score=score)
        attempt_end.finish(
            attempt.pk, Outcome.COMPLETED, result={"metrics": {"validation": {"accuracy": score}}}
        )

    def run_trial(self, attempt: Attempt, trial: Trial, *, score: float = 0.9) -> None:
        """Let one of an attempt's trials begin and complete."""
        done = [
            contract.ExecutionDone(
                time=time.time(),
                trial=trial.number,
                execution=execution.number,
                state="completed",
                score=score + execution.number / 100,
                best_epoch=2,
                epochs=3,
            )
            for execution in trial.executions.exclude(state="completed")
        ]
        self.report(attempt, begun(trial), *done, ended(trial))


def begun(trial: Trial, *, ago: float = 0.0) -> contract.TrialBegun:
    """Return the event of a trial that begins now, or began some seconds ago."""
    return contract.TrialBegun(time=time.time() - ago, trial=trial.number)


def ended(trial: Trial, error: str = "") -> contract.TrialDone:
    """Return the event of a trial that completes, or fails with an error."""
    cause = contract.TrialError(code="nan_loss", message=error) if error else None
    state: Any = "failed" if error else "completed"
    return contract.TrialDone(time=time.time(), trial=trial.number, state=state, error=cause)


def suggest_from_grid(job: Job) -> None:
    """Answer the search's request for suggestions like the grid algorithm."""
    claimed = suggest.claim_request(job.pk)
    if claimed is None:
        return
    number = sum(trial["source"] == "algorithm" for trial in claimed.request["trials"])
    search = job.revision.spec.search if job.revision else None
    assert search is not None
    configurations = list(grid(search.space))[number : number + claimed.request["count"]]
    suggest.add_suggestions(
        claimed,
        Answer(
            suggestions=tuple(Suggestion(values=values) for values in configurations),
            exhausted=not configurations,
        ),
    )


def placed_search(installation: Yard, worker: PretendWorker, **search: Any) -> tuple[Job, list[Attempt]]:
    """Submit a search and bring it to where the worker has claimed its first trials."""
    job = installation.submit(search=SEARCH | search)
    pipeline.advance_all()
    suggest_from_grid(job)
    schedule.place_jobs()
    return job, worker.claim_all()


def turn(worker: PretendWorker, job: Job, **run: Any) -> list[Attempt]:
    """Advance, suggest, place and run once."""
    pipeline.advance_all()
    job.refresh_from_db()
    if job.kind == "search" and job.state not in ("completed", "failed", "stopped"):
        suggest_from_grid(job)
    schedule.place_jobs()
    claimed = worker.claim_all()
    for attempt in claimed:
        worker.run(attempt, **run)
    pipeline.advance_all()
    job.refresh_from_db()
    return claimed


def until_final(worker: PretendWorker, job: Job, **run: Any) -> Job:
    """Repeat turns until the job is final, or fail after 50 turns."""
    for _ in range(50):
        turn(worker, job, **run)
        if job.state in ("completed", "failed", "stopped"):
            return job
    raise AssertionError(f"job is still {job.state}: {job.why_waiting}")
