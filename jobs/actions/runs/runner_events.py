"""Writes a runner's events to the database: metrics, trials, executions, checkpoints and artifacts."""

import datetime as dt
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jobs import clock, hints, store
from jobs.actions.row_updates import update_rows
from jobs.actions.runs import job_warnings, metrics
from jobs.actions.search import baselines, rung_promotion, space_growth
from jobs.actions.storage import artifacts
from jobs.actions.transition import move, move_trial_unlogged
from jobs.errors import StaleState
from jobs.messages import events as contract
from jobs.models import Attempt, Checkpoint, Execution, Job, JobArtifact, Trial
from jobs.queries.runs.codec import Event, metric_event
from jobs.queries.search import outcomes
from jobs.states import JobState, TrialState

MOST_RESUMED = 100
"""Only an attempt's first resumptions are kept: these continue the previous attempt's work."""

Files = Mapping[str, store.StoredFile]
RESULT_FIELDS = ("score", "best_epoch", "epochs", "metrics", "best")
"""Fields in an execution's last event that are stored in its row."""
_UNPUBLISHED = (
    contract.Declared,
    contract.BaselineMeasured,
    contract.Result,
    contract.Failed,
    contract.Yielded,
)


class Recorded(NamedTuple):
    """The arguments of `events.append`: the events for readers, and the stored bytes of their points."""

    events: list[Event]
    point_bytes: int


def record_events(
    attempt: Attempt,
    batch: Sequence[contract.RunnerEvent],
    stored: Files,
    *,
    phase: Mapping[str, Any] | None = None,
) -> Recorded:
    """Write a batch of events from an attempt's runner, inside the caller's transaction.

    An event about a trial that the attempt does not hold is replaced by a warning in the log. Log lines and
    warnings are also accepted from trials that the attempt held before: they arrive after the trial's end.

    Args:
        attempt: the attempt.
        batch: its events in order.
        stored: the stored file of each `artifact` event, by the event's path.
        phase: the trial phase in the attempt's record, which the attempt may have deferred.

    Returns:
        The events for readers, in order, which the caller appends to the log, and the points' growth.
    """
    held, released = _trials_named_in(attempt, batch)
    recorder = _Recorder(attempt, held, released, stored, clock.now())
    accepted = [event if recorder.accepts(event) else _refused(event) for event in batch]
    points = [event for event in accepted if isinstance(event, contract.Metric | contract.Points)]
    # All points of a batch are written together, so that the statements do not grow with its events.
    stored_points = metrics.store_points(attempt, recorder.trials, points)
    if stored_points.refused:
        accepted.append(metrics.too_many_warning(stored_points.refused))
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
        # If an execution has several states, only the last is written to its row; readers get all.
        if isinstance(event, contract.ExecutionDone) and last[event.trial, event.execution] is not event:
            bodies.append(recorder.public(event))
        else:
            bodies.append(recorder.record(event))
    # Afterwards, since the event `Started` replaces the record.
    recorder.record_resumed([event for event in accepted if isinstance(event, contract.Resumed)])
    recorder.record_phase(accepted, earlier=phase)
    return Recorded([body for body in bodies if body is not None], stored_points.bytes)


def _trials_named_in(
    attempt: Attempt, batch: Sequence[contract.RunnerEvent]
) -> tuple[dict[int, Trial], frozenset[int]]:
    """Return the trials that the batch names: those the attempt holds, and those it held, by number."""
    named = {event.trial for event in batch if event.trial is not None}
    if not named or not attempt.job.facts.has_trials:
        return {}, frozenset()
    held = {trial.number: trial for trial in attempt.trials.filter(number__in=named)}
    # A trial that was promoted, retried or queued again since then no longer belongs to this attempt.
    released = frozenset(number for number, trial in held.items() if trial.attempt != attempt.number)
    for number in released:
        del held[number]
    for trial in held.values():
        trial.job = attempt.job
    return held, released


def _refused(event: contract.RunnerEvent) -> contract.Log:
    """Return the warning that replaces an event about a trial that the attempt does not hold."""
    line = f"an event of type {event.type} names trial {event.trial}, which this attempt does not hold"
    return contract.Log(time=time.time(), level="warning", source="worker", line=line)


@dataclass(frozen=True)
class _Recorder:
    """Writes one batch's events."""

    attempt: Attempt
    trials: Mapping[int, Trial]
    released: frozenset[int]
    stored: Files
    now: dt.datetime

    def accepts(self, event: contract.RunnerEvent) -> bool:
        if event.trial is None or event.trial in self.trials:
            return True
        return isinstance(event, contract.Log | contract.Warned) and event.trial in self.released

    def record(self, event: contract.RunnerEvent) -> Event | None:
        """Write one event. Return the event for readers."""
        match event:
            case contract.TrialBegun() | contract.TrialDone():
                return None if event.trial is None else self._move_trial(self.trials[event.trial], event)
            case contract.Started():
                self._started(event)
            case contract.Progress() if not self.attempt.job.facts.has_trials:
                progress = {"done": event.done, "total": event.total, "unit": event.unit, "time": event.time}
                Job.objects.filter(pk=self.attempt.job_id).update(progress=progress)
            case contract.Phase() if not self.attempt.job.facts.has_trials:
                self._phase(event)
            case contract.ExecutionDone():
                self._execution(event)
            case contract.ArtifactWritten():
                self._artifact(event, self.stored[event.path])
            case contract.Warned():
                job_warnings.add_warning(self.attempt.job_id, code=event.code, message=event.message)
            case contract.Declared() if event.trial is not None:
                space_growth.record_declaration(self.trials[event.trial], event)
            case contract.BaselineMeasured() if event.trial is not None:
                baselines.record_baseline(self.trials[event.trial], event.baseline)
        return self.public(event)

    def _move_trial(self, trial: Trial, event: contract.TrialBegun | contract.TrialDone) -> Event | None:
        """Begin or end a trial under the fencing token. Do nothing if its state has changed."""
        try:
            if isinstance(event, contract.TrialDone):
                return self._end_trial(trial, event)
            # A trial that resumes after a pause or a loss keeps its first start.
            started = trial.started or self._moment(event)
            fence = self.attempt.number
            return move_trial_unlogged(trial, TrialState.RUNNING, fence=fence, started=started, error=None)
        except StaleState:
            return None

    def _end_trial(self, trial: Trial, event: contract.TrialDone) -> Event | None:
        # A user may have paused or stopped it; the transition table allows some of those changes too.
        if trial.state != TrialState.RUNNING:
            return None
        to, fence, finished = TrialState(event.state), self.attempt.number, self._moment(event)
        if event.error is not None:
            error = event.error.model_dump()
            body = move_trial_unlogged(trial, to, fence=fence, finished=finished, error=error)
            trial.executions.interrupt(to)
            # Too many failures end the search.
            hints.send("schedule", job=self.attempt.job_id)
            return body
        score = self._score(trial)
        # At the end of a rung the algorithm must decide; other ends wait for the scheduler's next pass.
        if to is TrialState.PAUSED:
            hints.send("schedule", job=self.attempt.job_id)
        body = move_trial_unlogged(trial, to, fence=fence, finished=finished, error=None, **score)
        if trial.state == TrialState.PRUNED:
            rung_promotion.record_pruning(trial, event.verdict)
        return body

    def _score(self, trial: Trial) -> dict[str, Any]:
        """Return a trial's score, and with rungs also its score at each rung's end."""
        score, std = outcomes.score_of(trial)
        # Without rungs, or continued by a user: then it is not compared at a rung.
        if trial.epochs is None or trial.until is not None:
            return {"score": score, "std": std}
        # Not appended: a trial that is run again may reach the end of this rung a second time.
        return {"score": score, "std": std, "rungs": [*trial.rungs[: trial.rung], score]}

    def _started(self, event: contract.Started) -> None:
        attempt = self.attempt
        attempt.record, attempt.resumed_from = event.record, event.resumed_from
        attempt.save(update_fields=["record", "resumed_from"])
        self._begin(clock.now())

    def _begin(self, moment: dt.datetime) -> None:
        for job in (self.attempt.job, self.attempt.job.root or self.attempt.job):
            if job.state == JobState.STARTING:
                move(job, JobState.RUNNING, started=job.started or moment)

    def _phase(self, event: contract.Phase) -> None:
        if self.attempt.job.facts.installs_packages:
            self._begin(self._moment(event))
        # Read again: an event of the same batch may have written it.
        job = Job.objects.only("progress").get(pk=self.attempt.job_id)
        Job.objects.filter(pk=job.pk).update(progress={**job.progress, "phase": event.name})

    def _execution(self, event: contract.ExecutionDone) -> None:
        # Only trials have executions in the database.
        if event.trial is None:
            return
        trial = self.trials[event.trial]
        results: dict[str, Any] = {}
        # If a completed trial's continuation fails, the results of its earlier training are kept.
        continuation_failed = event.state == "failed" and trial.until is not None
        if event.state != "running" and not continuation_failed:
            results = {name: getattr(event, name) for name in RESULT_FIELDS}
        update_rows(
            Execution,
            {"state": event.state} | results,
            "trial_id = %s AND number = %s AND state <> %s",
            [trial.pk, event.execution or 0, str(TrialState.COMPLETED)],
        )

    def record_checkpoints(self, events: Sequence[contract.CheckpointCommitted]) -> None:
        """Write a batch's checkpoints. Existing ones are not changed."""
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

    def record_resumed(self, events: Sequence[contract.Resumed]) -> None:
        """Write from which checkpoints trainings continued."""
        if not events:
            return
        fields = {"trial", "execution", "epoch", "saved", "loaded"}
        record = self.attempt.record
        resumed = [*record.get("resumed", []), *(event.model_dump(include=fields) for event in events)]
        self.attempt.record = {**record, "resumed": resumed[:MOST_RESUMED]}
        self.attempt.save(update_fields=["record"])

    def record_phase(
        self, events: Sequence[contract.RunnerEvent], *, earlier: Mapping[str, Any] | None
    ) -> None:
        """Write the trial phase that the last event leaves; a progress ends it."""
        phase = earlier
        for event in events:
            match event:
                case contract.Phase(trial=int()):
                    phase = {"trial": event.trial, "name": event.name}
                case contract.Progress() | contract.TrialDone():
                    phase = None
        # Few batches change it, and the record is not loaded with the attempt.
        if phase != earlier:
            self.attempt.record = {**self.attempt.record, "phase": phase}
            self.attempt.save(update_fields=["record"])

    def _trial(self, event: contract.RunnerEvent) -> Trial | None:
        return None if event.trial is None else self.trials[event.trial]

    def _artifact(self, event: contract.ArtifactWritten, file: store.StoredFile) -> None:
        artifact = artifacts.adopt(file)
        JobArtifact.objects.update_or_create(
            job_id=self.attempt.job_id,
            attempt=self.attempt.number,
            role=event.role,
            name=event.name,
            defaults={"trial": self._trial(event), "artifact": artifact, "meta": event.meta},
        )

    def public(self, event: contract.RunnerEvent) -> Event | None:
        """Return the event for readers, or None if another event already shows it."""
        if isinstance(event, _UNPUBLISHED):
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
                # `exclude_none` leaves out a score of None, but readers expect the field.
                body["score"] = event.score
                # It also leaves out metrics that were not finite.
                body["metrics"] = event.metrics
                if None in event.metrics.values():
                    body["nonfinite"] = True
                # The metric's curve contains these values.
                body.pop("best", None)
            case contract.Metric():
                body["points"] = [list(point) for point in event.points]
        return body | who

    def _moment(self, event: contract.RunnerEvent) -> dt.datetime:
        """Return an event's time by the runner's clock, but never a time in the future."""
        past = 0 < event.time < self.now.timestamp()
        return dt.datetime.fromtimestamp(event.time, dt.UTC) if past else self.now
