"""A worker that calls the engine in this process instead of a runner: real trainings without processes."""

import time
from pathlib import Path
from typing import Any

from jobs import clock
from jobs.actions.runs import attempt_end, tasks
from jobs.messages import events
from jobs.messages.training import TrialTask
from jobs.models import Attempt
from jobs.spec.sections.pruning import Curve
from jobs.states import Outcome
from jobs.store import store
from tests.jobs.yard import PretendWorker
from workers.engine.report import TaskInterrupted, finite_or_none
from workers.runner.event_reporter import EventReporter
from workers.runner.metric_batching import MetricCall


class EventWriter:
    """Records the events that an `EventReporter` sends, in order."""

    def __init__(self) -> None:
        self.sent: list[events.RunnerEvent] = []

    def send(self, event: events.RunnerEvent) -> None:
        if isinstance(event, events.CheckpointCommitted):
            folder = Path(event.folder).relative_to(store().checkpoint_root)
            event = event.model_copy(update={"folder": str(folder)})
        self.sent.append(event)

    def send_metrics(self, call: MetricCall) -> None:
        pairs = zip(call.names, call.values, strict=True)
        points = tuple((name, call.x, finite_or_none(value), call.time) for name, value in pairs)
        series = call.series
        event = events.Metric(
            time=call.time, trial=series.trial, execution=series.execution, x=series.axis, points=points
        )
        self.sent.append(event)


class ControlReader:
    """Returns the learning curves that a test puts into `received`; no requests, no recorded checkpoints."""

    def __init__(self) -> None:
        self.received: list[Curve] = []

    def request(self) -> None:
        return None

    def curves(self) -> list[Curve]:
        received, self.received = self.received, []
        return received

    def recorded(self) -> list[str]:
        return []


class EngineWorker(PretendWorker):
    """Runs attempts with the real engine; `tasks` lists the tasks it has run."""

    def __init__(self, folder: Path, *, slots: int = 1) -> None:
        super().__init__(slots=slots)
        self.row.lease_until = clock.seconds_from_now(3600)  # it is not renewed while the engine trains
        self.row.save(update_fields=["lease_until"])
        self.folder = folder
        self.tasks: list[TrialTask] = []

    def run(self, attempt: Attempt, **_: Any) -> None:
        from workers.engine.tasks import trial

        folder = self.folder / f"attempt-{attempt.number}"
        folder.mkdir(parents=True)
        task = tasks.task_for(attempt.pk, folder=folder, threads=1)
        assert isinstance(task, TrialTask)
        self.tasks.append(task)
        writer = EventWriter()
        writer.send(events.Started(time=time.time()))
        outcome = Outcome.COMPLETED
        try:
            trial.run(task, EventReporter(writer, ControlReader(), str(folder)))  # type: ignore[arg-type]
        except TaskInterrupted:
            outcome = Outcome.PAUSED
        self.report(attempt, *writer.sent)
        attempt_end.finish(attempt.pk, outcome)
