"""Writes a runner's events to the database: metrics, trials, executions, checkpoints and artifacts."""

import datetime as dt
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs import clock, hints, store
from jobs.actions import metrics, rung_promotion
from jobs.actions.transition import move, shift_trial
from jobs.contracts import events as contract
from jobs.errors import StaleState
from jobs.models import Artifact, Attempt, Checkpoint, Execution, Job, JobArtifact, Trial
from jobs.queries import outcomes
from jobs.queries.codec import Event, metric_event
from jobs.states import JobState, TrialState

Files = Mapping[str, store.StoredFile]
MAX_WARNINGS = 20
"""Per job; further warnings are only in the job's events."""
MAX_WARNING_LENGTH = 2000
"""Longer texts are cut in the job's row, which every list of jobs reads; its events keep the whole text."""
RESULT_FIELDS = ("score", "best_epoch", "epochs", "metrics", "best")
"""Fields of the event of an execution's end that are stored in its row."""


def record(attempt: Attempt, batch: Sequence[contract.RunnerEvent], stored: Files) -> list[Event]:
    """Write a batch of events of an attempt's runner, inside the caller's transaction.

    An event of a trial that the attempt does not hold is replaced by a warning in the log.

    Returns:
        The events for readers, in order, which the caller appends to the log.
    """
    recorder = _Recorder(attempt, _held_trials(attempt, batch), stored, clock.now())
    accepted = [event if recorder.accepts(event) else _refused(event) for event in batch]
    points = [event for event in accepted if isinstance(event, contract.Metric | contract.Points)]
    if refused := metrics.store(attempt, recorder.trials, points):
        accepted.append(metrics.too_many_warning(refused))
    recorder.record_checkpoints(
        [event for event in accepted if isinstance(event, contract.CheckpointCommitted)]
    )
    last = {
        (event.trial, event.execution): event
        for event in accepted
        if isinstance(event, contract.ExecutionDone)
    }
    bodies = []
    for event in accepted:
        if isinstance(event, contract.ExecutionDone) and last[event.trial, event.execution] is not event:
            bodies.append(recorder.public(event))  # only the last state of a batch is written to the row
        else:
            bodies.append(recorder.record(event))
    return [body for body in bodies if body is not None]


def _held_trials(attempt: Attempt, batch: Sequence[contract.RunnerEvent]) -> dict[int, Trial]:
    """Return the trials that the batch names and the attempt still holds, by number."""
    named = {event.trial for event in batch if event.trial is not None}
    if not named or not attempt.job.facts.has_trials:
        return {}
    own = attempt.trials.filter(attempt=attempt.number)
    held = {trial.number: trial for trial in own.filter(number__in=named)}
    for trial in held.values():
        trial.job = attempt.job
    return held


def _refused(event: contract.RunnerEvent) -> contract.Log:
    line = f"an event of type {event.type} names trial {event.trial}, which this attempt does not hold"
    return contract.Log(time=time.time(), level="warning", source="worker", line=line)


@dataclass(frozen=True)
class _Recorder:
    """Writes the events of one batch."""

    attempt: Attempt
    trials: Mapping[int, Trial]
    stored: Files
    now: dt.datetime

    def accepts(self, event: contract.RunnerEvent) -> bool:
        return event.trial is None or event.trial in self.trials

    def record(self, event: contract.RunnerEvent) -> Event | None:
        """Write one event; return the event for readers."""
        match event:
            case contract.TrialBegun() | contract.TrialDone():
                return None if event.trial is None else self._move_trial(self.trials[event.trial], event)
            case contract.Started():
                self._started(event)
            case contract.Progress() if not self.attempt.job.facts.has_trials:
                progress = {"done": event.done, "total": event.total, "unit": event.unit, "time": event.time}
                Job.objects.filter(pk=self.attempt.job_id).update(progress=progress)
            case contract.ExecutionDone():
                self._execution(event)
            case contract.ArtifactWritten():
                self._artifact(event, self.stored[event.path])
            case contract.Warned():
                self._warn(event)
        return self.public(event)

    def _move_trial(self, trial: Trial, event: contract.TrialBegun | contract.TrialDone) -> Event | None:
        """Begin or end a trial under the fencing token; do nothing if its state has changed."""
        try:
            if isinstance(event, contract.TrialBegun):
                return self._begin(trial, event)
            return self._end(trial, event)
        except StaleState:
            return None

    def _begin(self, trial: Trial, event: contract.TrialBegun) -> Event:
        started = trial.started or self._moment(event)
        fence = self.attempt.number
        return shift_trial(trial, TrialState.RUNNING, fence=fence, started=started, error=None)

    def _end(self, trial: Trial, event: contract.TrialDone) -> Event | None:
        if trial.state != TrialState.RUNNING:
            return None  # only a running trial can end
        to, fence, finished = TrialState(event.state), self.attempt.number, self._moment(event)
        if event.error is not None:
            error = event.error.model_dump()
            body = shift_trial(trial, to, fence=fence, finished=finished, error=error)
            trial.executions.running().update(state=trial.state)
            hints.send("schedule", job=self.attempt.job_id)  # too many failures end the search
            return body
        score = self._score(trial)
        if to is TrialState.PAUSED:
            hints.send("schedule", job=self.attempt.job_id)  # the algorithm must decide on the waiting trial
        body = shift_trial(trial, to, fence=fence, finished=finished, error=None, **score)
        if trial.state == TrialState.PRUNED:
            rung_promotion.record_pruning(trial, event.verdict)
        return body

    def _score(self, trial: Trial) -> dict[str, Any]:
        """Return the score of a trial, and with rungs also the scores at the ends of its rungs."""
        score, std = outcomes.score_of(trial)
        if trial.epochs is None or trial.until is not None:  # a continued trial is not compared at a rung
            return {"score": score, "std": std}
        # Not appended: a trial that is run again may reach the end of this rung a second time.
        return {"score": score, "std": std, "rungs": [*trial.rungs[: trial.rung], score]}

    def _started(self, event: contract.Started) -> None:
        attempt = self.attempt
        attempt.record, attempt.resumed_from = event.record, event.resumed_from
        attempt.save(update_fields=["record", "resumed_from"])
        for job in {
            attempt.job.pk: attempt.job,
            attempt.job.root_id_or_self: attempt.job.root or attempt.job,
        }.values():
            if job.state == JobState.STARTING:
                move(job, JobState.RUNNING, started=job.started or clock.now())

    def _execution(self, event: contract.ExecutionDone) -> None:
        if event.trial is None:
            return  # only trials have executions
        trial = self.trials[event.trial]
        rows = Execution.objects.filter(trial=trial, number=event.execution or 0)
        reached: dict[str, Any] = {}
        fell_short = event.state == "failed" and trial.until is not None
        if event.state != "running" and not fell_short:  # else the results of its earlier training are kept
            reached = {name: getattr(event, name) for name in RESULT_FIELDS}
        rows.incomplete().update(state=event.state, **reached)

    def record_checkpoints(self, events: Sequence[contract.CheckpointCommitted]) -> None:
        """Write the checkpoints of a batch; known ones are not changed."""
        if not events:
            return
        rows = [
            Checkpoint(
                job_id=self.attempt.job_id,
                folder=event.folder,
                trial=self._trial(event),
                execution=event.execution,
                attempt=self.attempt.number,
                step=event.step,
                epoch=event.epoch,
                manifest=event.manifest,
                bytes=event.bytes,
            )
            for event in events
        ]
        Checkpoint.objects.bulk_create(rows, ignore_conflicts=True)

    def _trial(self, event: contract.RunnerEvent) -> Trial | None:
        return None if event.trial is None else self.trials[event.trial]

    def _artifact(self, event: contract.ArtifactWritten, file: store.StoredFile) -> None:
        artifact, _ = Artifact.objects.get_or_create(digest=file.digest, defaults={"bytes": file.bytes})
        JobArtifact.objects.update_or_create(
            job_id=self.attempt.job_id,
            attempt=self.attempt.number,
            role=event.role,
            name=event.name,
            defaults={"trial": self._trial(event), "artifact": artifact, "meta": event.meta},
        )

    def public(self, event: contract.RunnerEvent) -> Event | None:
        """Return the event for readers; None if another event already shows it."""
        if isinstance(event, contract.Result | contract.Failed | contract.Yielded):
            return None
        who: Event = {"job": self.attempt.job_id, "attempt": self.attempt.number}
        if isinstance(event, contract.Points):
            return metric_event(event) | who
        body: Event = event.model_dump(mode="json", exclude_none=True)
        match event:
            case contract.Started():
                body = {"type": "attempt", "time": event.time, "number": self.attempt.number}
                body["resumed_from"] = event.resumed_from
            case contract.ArtifactWritten():
                file = self.stored[event.path]
                body |= {"digest": file.digest, "bytes": file.bytes}
                del body["path"]
            case contract.CheckpointCommitted():
                del body["folder"]
            case contract.ExecutionDone():
                body["score"] = event.score
                body.pop("best", None)  # the curve has it
            case contract.Metric():
                body["points"] = [list(point) for point in event.points]
        return body | who

    def _warn(self, event: contract.Warned) -> None:
        """Add a warning to the job, once: several attempts and trials may send the same one."""
        job = Job.objects.select_for_update().only("warnings").get(pk=self.attempt.job_id)
        warning = {"code": event.code[:MAX_WARNING_LENGTH], "message": event.message[:MAX_WARNING_LENGTH]}
        if warning not in job.warnings and len(job.warnings) < MAX_WARNINGS:
            Job.objects.filter(pk=job.pk).update(warnings=[*job.warnings, warning])

    def _moment(self, event: contract.RunnerEvent) -> dt.datetime:
        """Return the time of an event by the runner's clock, or the current time if that is in the future."""
        past = 0 < event.time < self.now.timestamp()
        return dt.datetime.fromtimestamp(event.time, dt.UTC) if past else self.now
