"""A worker whose runner is the engine itself, called in this process: real trainings without processes."""

import time
from pathlib import Path
from typing import Any

from jobs import clock
from jobs.actions import attempt_end, tasks
from jobs.contracts import events as said
from jobs.contracts.pruning import Curve
from jobs.kinds.search.payload import TrialTask
from jobs.models import Attempt
from jobs.states import Outcome
from jobs.store import store
from tests.jobs.yard import PretendWorker
from workers.engine.report import Yielding, finite
from workers.runner.event_reporter import EventReporter
from workers.runner.metric_batching import MetricCall


class EventWriter:
    """Keeps what an `EventReporter` sends, in order."""

    def __init__(self) -> None:
        self.sent: list[said.RunnerEvent] = []

    def send(self, event: said.RunnerEvent) -> None:
        if isinstance(event, said.CheckpointCommitted):
            folder = Path(event.folder).relative_to(store().checkpoint_root)
            event = event.model_copy(update={"folder": str(folder)})
        self.sent.append(event)

    def send_metrics(self, call: MetricCall) -> None:
        pairs = zip(call.names, call.values, strict=True)
        points = tuple((name, call.x, finite(value), call.time) for name, value in pairs)
        series = call.series
        event = said.Metric(
            time=call.time, trial=series.trial, execution=series.execution, x=series.axis, points=points
        )
        self.sent.append(event)


class ControlReader:
    """Asks for nothing, tells what a test puts into `told`, and of no checkpoint that it is recorded."""

    def __init__(self) -> None:
        self.told: list[Curve] = []

    def request(self) -> None:
        return None

    def curves(self) -> list[Curve]:
        said, self.told = self.told, []
        return said

    def recorded(self) -> list[str]:
        return []


class EngineWorker(PretendWorker):
    """Runs attempts with the real engine; `tasks` are those that it was given."""

    def __init__(self, folder: Path, *, slots: int = 1) -> None:
        super().__init__(slots=slots)
        self.row.lease_until = clock.seconds_from_now(3600)  # nobody renews it while the engine trains
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
        writer.send(said.Started(time=time.time()))
        outcome = Outcome.COMPLETED
        try:
            trial.run(task, EventReporter(writer, ControlReader(), str(folder)))  # type: ignore[arg-type]
        except Yielding:
            outcome = Outcome.PAUSED
        self.say(attempt, *writer.sent)
        attempt_end.finish(attempt.pk, outcome)
