"""What a runner said, taken into the rows: its metrics, trials, executions, checkpoints and artifacts."""

import datetime as dt
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs import clock, hints, store
from jobs.actions import metrics, rung_promotion
from jobs.actions.transition import move, shift_trial
from jobs.contracts import events as said
from jobs.errors import StaleState
from jobs.models import Artifact, Attempt, Checkpoint, Execution, Job, JobArtifact, Trial
from jobs.queries import outcomes
from jobs.queries.codec import Event, as_metric
from jobs.states import JobState, TrialState

Files = Mapping[str, store.StoredFile]
MOST_WARNINGS = 20
"""Further ones are in the job's events alone."""
LONGEST_WARNING = 2000
"""What is longer is cut in the job's row, which every list of jobs reads; its events have the whole."""
REACHED = ("score", "best_epoch", "epochs", "metrics", "best")
"""What an execution says of itself when it ends, and its row has."""


def take_in(attempt: Attempt, batch: Sequence[said.RunnerEvent], stored: Files) -> list[Event]:
    """Write what a running attempt's runner said, inside the caller's transaction.

    An event that names a trial which the attempt does not hold is not written; the log says so.

    Returns:
        The events as readers see them, in order, to be appended.
    """
    words = _Words(attempt, _held(attempt, batch), stored, clock.now())
    believed = [event if words.may_say(event) else _refused(event) for event in batch]
    points = [event for event in believed if isinstance(event, said.Metric | said.Points)]
    if refused := metrics.store(attempt, words.held, points):
        believed.append(metrics.too_many(refused))
    words.take_checkpoints([event for event in believed if isinstance(event, said.CheckpointCommitted)])
    last = {
        (event.trial, event.execution): event for event in believed if isinstance(event, said.ExecutionDone)
    }
    bodies = []
    for event in believed:
        if isinstance(event, said.ExecutionDone) and last[event.trial, event.execution] is not event:
            bodies.append(words.public(event))  # told to readers; the row goes straight to its last state
        else:
            bodies.append(words.take(event))
    return [body for body in bodies if body is not None]


def _held(attempt: Attempt, batch: Sequence[said.RunnerEvent]) -> dict[int, Trial]:
    """Return those trials of the attempt that the batch names, by number, unless it has let go of them."""
    named = {event.trial for event in batch if event.trial is not None}
    if not named or not attempt.job.facts.has_trials:
        return {}
    mine = attempt.trials.filter(attempt=attempt.number)
    held = {trial.number: trial for trial in mine.filter(number__in=named)}
    for trial in held.values():
        trial.job = attempt.job
    return held


def _refused(event: said.RunnerEvent) -> said.Log:
    what = f"an event of type {event.type} names trial {event.trial}, which this attempt does not hold"
    return said.Log(time=time.time(), level="warning", source="worker", line=what)


@dataclass(frozen=True)
class _Words:
    """Takes in the events of one batch."""

    attempt: Attempt
    held: Mapping[int, Trial]
    stored: Files
    now: dt.datetime

    def may_say(self, event: said.RunnerEvent) -> bool:
        return event.trial is None or event.trial in self.held

    def take(self, event: said.RunnerEvent) -> Event | None:
        """Write one event; return it as readers see it."""
        match event:
            case said.TrialBegun() | said.TrialDone():
                return None if event.trial is None else self._turn(self.held[event.trial], event)
            case said.Started():
                self._started(event)
            case said.Progress() if not self.attempt.job.facts.has_trials:
                progress = {"done": event.done, "total": event.total, "unit": event.unit, "time": event.time}
                Job.objects.filter(pk=self.attempt.job_id).update(progress=progress)
            case said.ExecutionDone():
                self._execution(event)
            case said.ArtifactWritten():
                self._artifact(event, self.stored[event.path])
            case said.Warned():
                self._warn(event)
        return self.public(event)

    def _turn(self, trial: Trial, event: said.TrialBegun | said.TrialDone) -> Event | None:
        """Begin or end a trial under the fence; one that has moved on stays as it is."""
        try:
            if isinstance(event, said.TrialBegun):
                return self._begin(trial, event)
            return self._end(trial, event)
        except StaleState:
            return None

    def _begin(self, trial: Trial, event: said.TrialBegun) -> Event:
        started = trial.started or self._moment(event)
        fence = self.attempt.number
        return shift_trial(trial, TrialState.RUNNING, fence=fence, started=started, error=None)

    def _end(self, trial: Trial, event: said.TrialDone) -> Event | None:
        if trial.state != TrialState.RUNNING:
            return None  # only what has begun can end
        to, fence, finished = TrialState(event.state), self.attempt.number, self._moment(event)
        if event.error is not None:
            error = event.error.model_dump()
            body = shift_trial(trial, to, fence=fence, finished=finished, error=error)
            trial.executions.running().update(state=trial.state)
            hints.send("schedule", job=self.attempt.job_id)  # too many of these end the search
            return body
        reached = self._reached(trial)
        if to is TrialState.PAUSED:
            hints.send("schedule", job=self.attempt.job_id)  # it waits for the algorithm to decide on it
        body = shift_trial(trial, to, fence=fence, finished=finished, error=None, **reached)
        if trial.state == TrialState.PRUNED:
            rung_promotion.cut_short(trial, event.verdict)
        return body

    def _reached(self, trial: Trial) -> dict[str, Any]:
        """Return the score of a trial, and that at the end of its rung where it has one."""
        score, std = outcomes.score_of(trial)
        if trial.epochs is None or trial.until is not None:  # what is longer than a rung is compared nowhere
            return {"score": score, "std": std}
        # Its place, not the end: a trial that is run again may stand at this rung for the second time.
        return {"score": score, "std": std, "rungs": [*trial.rungs[: trial.rung], score]}

    def _started(self, event: said.Started) -> None:
        attempt = self.attempt
        attempt.record, attempt.resumed_from = event.record, event.resumed_from
        attempt.save(update_fields=["record", "resumed_from"])
        for job in {
            attempt.job.pk: attempt.job,
            attempt.job.root_id_or_self: attempt.job.root or attempt.job,
        }.values():
            if job.state == JobState.STARTING:
                move(job, JobState.RUNNING, started=job.started or clock.now())

    def _execution(self, event: said.ExecutionDone) -> None:
        if event.trial is None:
            return  # executions are of trials
        trial = self.held[event.trial]
        rows = Execution.objects.filter(trial=trial, number=event.execution or 0)
        reached: dict[str, Any] = {}
        fell_short = event.state == "failed" and trial.until is not None
        if event.state != "running" and not fell_short:  # else what it reached before stands
            reached = {name: getattr(event, name) for name in REACHED}
        rows.incomplete().update(state=event.state, **reached)

    def take_checkpoints(self, events: Sequence[said.CheckpointCommitted]) -> None:
        """Write the checkpoints of a batch; one that is known stays as it is."""
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

    def _trial(self, event: said.RunnerEvent) -> Trial | None:
        return None if event.trial is None else self.held[event.trial]

    def _artifact(self, event: said.ArtifactWritten, file: store.StoredFile) -> None:
        artifact, _ = Artifact.objects.get_or_create(digest=file.digest, defaults={"bytes": file.bytes})
        JobArtifact.objects.update_or_create(
            job_id=self.attempt.job_id,
            attempt=self.attempt.number,
            role=event.role,
            name=event.name,
            defaults={"trial": self._trial(event), "artifact": artifact, "meta": event.meta},
        )

    def public(self, event: said.RunnerEvent) -> Event | None:
        """Return the event as readers see it, None for what another event tells."""
        if isinstance(event, said.Result | said.Failed | said.Yielded):
            return None
        who: Event = {"job": self.attempt.job_id, "attempt": self.attempt.number}
        if isinstance(event, said.Points):
            return as_metric(event) | who
        body: Event = event.model_dump(mode="json", exclude_none=True)
        match event:
            case said.Started():
                body = {"type": "attempt", "time": event.time, "number": self.attempt.number}
                body["resumed_from"] = event.resumed_from
            case said.ArtifactWritten():
                file = self.stored[event.path]
                body |= {"digest": file.digest, "bytes": file.bytes}
                del body["path"]
            case said.CheckpointCommitted():
                del body["folder"]
            case said.ExecutionDone():
                body["score"] = event.score
                body.pop("best", None)  # the curve has it
            case said.Metric():
                body["points"] = [list(point) for point in event.points]
        return body | who

    def _warn(self, event: said.Warned) -> None:
        """Keep what the job's page and results shall say; each attempt and trial may warn of the same."""
        job = Job.objects.select_for_update().only("warnings").get(pk=self.attempt.job_id)
        warning = {"code": event.code[:LONGEST_WARNING], "message": event.message[:LONGEST_WARNING]}
        if warning not in job.warnings and len(job.warnings) < MOST_WARNINGS:
            Job.objects.filter(pk=job.pk).update(warnings=[*job.warnings, warning])

    def _moment(self, event: said.RunnerEvent) -> dt.datetime:
        """Return when an event was, by the runner's clock; now if that is not in the past."""
        past = 0 < event.time < self.now.timestamp()
        return dt.datetime.fromtimestamp(event.time, dt.UTC) if past else self.now
