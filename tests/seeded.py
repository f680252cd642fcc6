"""Creates a search with many plausible trials in bulk, from a seed and without training."""

import hashlib
import math
import random
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.utils import timezone

from jobs.models import Attempt, Execution, Job, MetricChunk, MetricSeries, Project, Trial, User
from jobs.queries.runs.codec import pack_columns
from jobs.spec.space.search_space import sample
from jobs.states import TrialState
from tests.factories import SEARCH, make_experiment, make_job, make_worker
from tests.present import present

SPACE: list[dict[str, Any]] = [
    {"name": "units", "kind": "int", "min": 16, "max": 512, "step": 16},
    {"name": "layers", "kind": "int", "min": 1, "max": 4},
    {"name": "optimizer", "kind": "choice", "values": ["adam", "rmsprop", "sgd"]},
    {"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"},
    {
        "name": "dropout",
        "kind": "float",
        "min": 0.0,
        "max": 0.5,
        "when": {"name": "optimizer", "in": ["adam", "sgd"]},
    },
]
EPOCHS = 8
LANES = 4


def seed_search(
    project: Project, *, by: User, trials: int, executions: int = 2, state: str = "completed", seed: int = 0
) -> Job:
    """Make a search of so many trials, each with its executions, attempt and curves; all but the last few
    completed."""
    options = {"space": SPACE, "max_trials": trials, "executions_per_trial": executions}
    spec = {**SEARCH, "search": {**SEARCH["search"], **options}}
    experiment = make_experiment(project=project, by=by, spec=spec)
    job = make_job(experiment=experiment, by=by, state=state, fence=trials)
    rng = random.Random(seed)
    begin = timezone.now() - timedelta(seconds=30 * trials / LANES)
    assert job.revision is not None and job.revision.spec.search is not None
    space = job.revision.spec.search.space
    rows = [_trial(job, number, sample(space, rng), rng, begin) for number in range(1, trials + 1)]
    Trial.objects.bulk_create(rows, batch_size=2000)
    runs = [_execution(trial, number, rng) for trial in rows for number in range(1, executions + 1)]
    Execution.objects.bulk_create(runs, batch_size=2000)
    workers = [make_worker("box", slots=2), make_worker("annex", slots=2)]
    attempts = Attempt.objects.bulk_create([_attempt(trial, workers) for trial in rows], batch_size=2000)
    holds = Attempt.trials.through
    pairs = zip(attempts, rows, strict=True)
    holds.objects.bulk_create(
        [holds(attempt=attempt, trial=trial) for attempt, trial in pairs], batch_size=2000
    )
    _curves(job, runs)
    return job


def _trial(job: Job, number: int, values: dict[str, Any], rng: random.Random, begin: datetime) -> Trial:
    state = (
        TrialState.FAILED
        if number % 41 == 0
        else TrialState.PRUNED
        if number % 29 == 0
        else TrialState.COMPLETED
    )
    started = begin + timedelta(seconds=30 * (number // LANES))
    return Trial(
        job=job,
        number=number,
        state=state,
        values=values,
        values_digest=hashlib.sha256(repr(values).encode()).hexdigest(),
        score=_score(values, rng) if state is TrialState.COMPLETED else None,
        std=rng.uniform(0, 0.01),
        attempt=number,
        error={"code": "diverged", "message": "the loss is not a number"}
        if state is TrialState.FAILED
        else None,
        started=started,
        finished=started + timedelta(seconds=rng.uniform(12, 28)),
    )


def _score(values: dict[str, Any], rng: random.Random) -> float:
    rate = math.log10(values["learning_rate"])
    good = (
        0.97
        - 0.05 * (rate + 2.6) ** 2
        - 0.02 * abs(values["units"] - 320) / 320
        - 0.04 * (values["optimizer"] == "sgd")
    )
    return min(max(good + rng.gauss(0, 0.006), 0.1), 0.995)


def _execution(trial: Trial, number: int, rng: random.Random) -> Execution:
    score = None if trial.score is None else trial.score + rng.gauss(0, 0.002)
    metrics = {} if score is None else {"val_accuracy": score, "val_loss": 1.1 - score + rng.gauss(0, 0.02)}
    if score is not None:
        metrics["latency"] = 0.2 + trial.values["units"] / 400 + rng.uniform(0, 0.1)
    return Execution(
        trial=trial, number=number, state=trial.state, seed=number, score=score, best_epoch=EPOCHS - 2,
        epochs=EPOCHS, metrics=metrics,
    )  # fmt: skip


def _attempt(trial: Trial, workers: list[Any]) -> Attempt:
    return Attempt(
        job=trial.job,
        number=trial.number,
        worker=workers[trial.number % 2],
        slots=1,
        state="ended",
        outcome=trial.state if trial.state != TrialState.PRUNED else "completed",
        lease_until=present(trial.finished),
        assigned=present(trial.started),
        claimed=trial.started,
        ended=trial.finished,
    )


def _curves(job: Job, runs: list[Execution]) -> None:
    epochs = np.arange(1.0, EPOCHS + 1)
    series = [
        MetricSeries(job=job, trial=run.trial, execution=run.number, attempt=1, name=name, count=EPOCHS)
        for run in runs
        for name in ("accuracy", "val_accuracy")
    ]
    MetricSeries.objects.bulk_create(series, batch_size=2000)
    chunks = []
    for index, row in enumerate(series):
        end = row.trial.score or 0.5 if row.trial is not None else 0.5
        values = end - 0.4 * np.exp(-epochs / (1 + index % 3))
        data = pack_columns(np.array([epochs, values, epochs]))
        chunks.append(MetricChunk(series=row, first_x=1, last_x=EPOCHS, count=EPOCHS, data=data))
    MetricChunk.objects.bulk_create(chunks, batch_size=2000)
