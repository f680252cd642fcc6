"""Checks the invariants after kills from rows and files. Runs inside the installation."""

import hashlib
import zipfile
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
from django.db import connection
from django.db.models import Q, Sum
from django.db.models.functions import Length

from jobs.answers.runs.metrics import SeriesOut
from jobs.models import Attempt, Checkpoint, Execution, Job, JobArtifact, MetricChunk
from jobs.queries.audit.audit_verification import verify_chain
from jobs.queries.runs import events as event_log
from jobs.queries.runs import jobs as job_queries
from jobs.queries.runs import metrics
from jobs.states import FINAL, TRIAL_FINAL, AttemptState, Outcome
from jobs.store import sha256_of, store
from tests.present import present
from workers.engine.training.checkpoint import is_intact

EVERYTHING = 10**9
Event = dict[str, Any]


def problems_of(root: Job) -> Iterator[str]:
    """Yield the violated invariants of a root job and its children."""
    jobs = [root, *root.descendants.all()]
    events = list(_events(root))
    yield from _cursors(root, events)
    yield from _event_bytes(root)
    for job in jobs:
        yield from _ends_once(job, events)
        yield from _attempts(job)
        yield from _resumptions(job)
        yield from _artifacts(job)
        yield from _checkpoints(job)
        yield from _metrics(job, events)
    yield from _trials(root, events)


def _events(root: Job) -> Iterator[Event]:
    after = 0
    while (
        page := event_log.read_events(root.pk, after=after, limit=EVERYTHING)
    ).items:  # each has so many points
        yield from page.items
        after = page.cursor


def _cursors(root: Job, events: list[Event]) -> Iterator[str]:
    if [event["cursor"] for event in events] != list(range(1, root.event_seq + 1)):
        yield f"job {root.pk}: the cursors of its {len(events)} events are not 1 to {root.event_seq}"


def _event_bytes(root: Job) -> Iterator[str]:
    """The use that the disk quota counts is that of the rows."""
    of_root = Q(series__job=root) | Q(series__job__root=root)
    chunks = (root.event_chunks.all(), MetricChunk.objects.filter(of_root))
    stored = sum(rows.aggregate(total=Sum(Length("data")))["total"] or 0 for rows in chunks)
    if root.event_bytes != stored:
        yield f"job {root.pk}: its events have {stored} bytes, and {root.event_bytes} are counted"


def _ends_once(job: Job, events: list[Event]) -> Iterator[str]:
    if job.state not in FINAL:
        yield f"job {job.pk} is {job.state}: lost"
    ends = [e["state"] for e in events if e["type"] == "state" and e["job"] == job.pk and e["state"] in FINAL]
    if ends != [job.state]:
        yield f"job {job.pk} is {job.state} and ended as {ends}"


def _attempts(job: Job) -> Iterator[str]:
    attempts = list(job.attempts.order_by("pk"))
    numbers = [attempt.number for attempt in attempts]
    if numbers != sorted(set(numbers)) or numbers[-1:] not in ([], [job.fence]):
        yield f"job {job.pk}: its fences {numbers} do not grow to {job.fence}"
    for attempt in attempts:
        if attempt.state != AttemptState.ENDED or not attempt.outcome or attempt.ended is None:
            yield f"{attempt} was left open"
    completed = sum(attempt.outcome == Outcome.COMPLETED for attempt in attempts)
    if not job.facts.has_trials and completed > 1:
        yield f"job {job.pk} was completed {completed} times"


def _resumptions(job: Job) -> Iterator[str]:
    """A training resumes from its newest checkpoint. (An execution may have none yet.)"""
    checkpoints = list(job.checkpoints.filter(trial=None).values_list("attempt", "step"))
    for attempt in job.attempts.filter(trials=None).exclude(record={}):
        newest = max((step for number, step in checkpoints if number < attempt.number), default=None)
        if attempt.resumed_from != newest:
            yield f"{attempt} resumed from {attempt.resumed_from}, the newest checkpoint was {newest}"


def _trials(root: Job, events: list[Event]) -> Iterator[str]:
    ends = Counter(e["trial"] for e in events if e["type"] == "trial" and e["state"] in TRIAL_FINAL)
    if twice := [number for number, count in ends.items() if count > 1]:
        yield f"job {root.pk}: trials {twice} ended more than once"
    if root.kind != "search" or root.revision is None or root.revision.spec.search is None:
        return
    trials = list(root.trials.order_by("number"))
    planned = root.revision.spec.search.trials_planned(root.revision.spec.fit.epochs)
    if [trial.number for trial in trials] != list(range(1, planned + 1)):
        yield f"job {root.pk}: {planned} trials were planned, there are {[t.number for t in trials]}"
    if len({trial.values_digest for trial in trials}) != len(trials):
        yield f"job {root.pk}: a configuration was tried twice"
    if root.state == "completed":
        for execution in Execution.objects.filter(trial__in=trials).select_related("trial"):
            if execution.state != execution.trial.state or execution.state not in ("completed", "pruned"):
                yield f"{execution} is {execution.state}, its trial is {execution.trial.state}"
            budget = execution.trial.epochs or root.revision.spec.fit.epochs
            if execution.epochs > budget:
                yield f"{execution} trained {execution.epochs} epochs of {budget}"


def _artifacts(job: Job) -> Iterator[str]:
    for row in JobArtifact.objects.filter(job=job).select_related("artifact"):
        stored = sha256_of(store().path(row.artifact_id))
        if (stored.digest, stored.bytes) != (row.artifact_id, row.artifact.bytes):
            yield f"job {job.pk}: the bytes of {row.name} are not {row.artifact_id[:12]}"


def _checkpoints(job: Job) -> Iterator[str]:
    """The newest of each training must verify, unless retention has taken it away or does while we look."""
    newest: dict[tuple[int | None, int | None], Checkpoint] = {}
    for row in job.checkpoints.order_by("pk"):
        newest[(row.trial_id, row.execution)] = row
    for row in (row for row in newest.values() if row.removed is None):
        folder = store().checkpoint_root / row.folder
        unremoved = Checkpoint.objects.filter(pk=row.pk, removed=None)
        if not is_intact(folder, row.manifest) and unremoved.exists():
            yield f"job {job.pk}: checkpoint {row.folder} does not verify"


def _metrics(job: Job, events: list[Event]) -> Iterator[str]:
    said = list(_points(job, events))
    twice = [point for point, count in Counter((*p[:5],) for p in said).items() if count > 1]
    if twice:
        yield f"job {job.pk}: points written twice: {twice[:3]}"
    newest = {(trial, execution, name, x): value for trial, execution, _, name, x, value in said}
    for series in metrics.read_series(job, max_points=EVERYTHING):
        if series["x"] != "epoch" or series["job"] != job.pk:
            continue
        xs = [point[0] for point in series["points"]]
        trial, execution, name = series["trial"], series["execution"], series["name"]
        where = f"job {job.pk}, trial {trial}, execution {execution}, {name}"
        if xs != list(range(1, _epochs(job, series) + 1)):
            yield f"{where}: {_epochs(job, series)} epochs were run, points are at {xs}"
        expected = [newest.get((trial, execution, name, x)) for x in xs]
        if expected != [point[1] for point in series["points"]]:
            yield f"{where}: the curve differs from the events"


def _points(job: Job, events: list[Event]) -> Iterator[tuple[Any, ...]]:
    for event in events:
        if event["type"] == "metric" and event["job"] == job.pk and event["x"] == "epoch":
            for name, x, value, _ in event["points"]:
                yield event.get("trial"), event.get("execution"), event["attempt"], name, x, value


def _epochs(job: Job, series: SeriesOut) -> int:
    if series["trial"] is not None:
        return Execution.objects.get(
            trial__job=job, trial__number=series["trial"], number=present(series["execution"])
        ).epochs
    result = job.results_json
    return int(result["epochs"] if series["name"].startswith("retrain_") else result["epochs_to_find"])


def problems_of_the_database() -> Iterator[str]:
    """Yield the invariants that the database violates."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            for check in ("integrity_check", "foreign_key_check"):
                rows = cursor.execute(f"PRAGMA {check}").fetchall()
                if rows not in ([], [("ok",)]):
                    yield f"PRAGMA {check}: {rows[:5]}"
    if not (audit := verify_chain()).holds:
        yield f"the audit chain is not valid: {audit.state}"
    for attempt in Attempt.objects.open().filter(job__state__in=FINAL):
        yield f"{attempt} of a final job was left open"


def facts_of(root: Job) -> dict[str, Any]:
    """Return the facts that equal an unbroken run's bit for bit, for the same spec."""
    executions = Execution.objects.filter(trial__job=root).order_by("trial__number", "number")
    columns = ("trial__number", "number", "state", "score", "best_epoch", "epochs")
    models = job_queries.newest_artifacts([root]).filter(
        role="model"
    )  # a lost attempt may have left one, which no reader sees
    return {
        "state": root.state,
        "values": [trial.values for trial in root.trials.order_by("number")],
        "executions": [list(row) for row in executions.values_list(*columns)],
        "weights": sorted(weights_digest(store().path(row.artifact_id)) for row in models),
    }


def weights_digest(file: Path) -> str:
    """Return a digest over all weight names and values in a `.keras` file, read without Keras."""
    digest = hashlib.sha256()

    def add(name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset):
            digest.update(name.encode() + node[()].tobytes())

    with zipfile.ZipFile(file) as archive, h5py.File(BytesIO(archive.read("model.weights.h5"))) as weights:
        weights.visititems(add)
    return digest.hexdigest()


def report(*ids: int) -> dict[str, Any]:
    """Look at these root jobs and at the database as a whole.

    Returns:
        `problems`: sentences; none are expected. `facts` of each job: all that an interrupted run must share
        with an unbroken one.
    """
    roots = [Job.objects.get(pk=pk) for pk in ids]
    problems = [problem for root in roots for problem in problems_of(root)]
    problems += problems_of_the_database()
    return {"problems": problems, "facts": {str(root.pk): facts_of(root) for root in roots}}
