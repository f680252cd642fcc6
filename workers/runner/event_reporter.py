"""The engine's `Report`, spoken over the event pipe."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from jobs.contracts.events import (
    ArtifactWritten,
    Axis,
    CheckpointCommitted,
    ExecutionDone,
    ExecutionState,
    Level,
    Log,
    Progress,
    Role,
    TrialBegun,
    TrialDone,
    TrialEnd,
    TrialError,
    Warned,
)
from jobs.contracts.pruning import Curve, Verdict
from workers.engine.report import Request, finite
from workers.runner.control_reader import Inbox
from workers.runner.event_writer import Outlet
from workers.runner.failures import describe
from workers.runner.metric_batching import Call, Series

PROGRESS_PAUSE = 0.2


class Speaker:
    """Turns the engine's calls into events; implements `workers.engine.report.Report`."""

    def __init__(self, outlet: Outlet, inbox: Inbox, folder: str, trial: int | None = None) -> None:
        self.folder = folder
        self._outlet = outlet
        self._inbox = inbox
        self._trial = trial
        self._warned: set[tuple[str, str]] = set()
        self._progressed = -PROGRESS_PAUSE

    def of_trial(self, number: int) -> "Speaker":
        """See `Report.of_trial`."""
        return Speaker(self._outlet, self._inbox, self.folder, number)

    def trial_begins(self) -> None:
        """See `Report.trial_begins`."""
        self._outlet.send(TrialBegun(time=time.time(), trial=self._trial))

    def trial_ends(
        self,
        error: Exception | None = None,
        *,
        state: TrialEnd = "completed",
        verdict: Verdict | None = None,
    ) -> None:
        """See `Report.trial_ends`."""
        now = time.time()
        if error is None:
            self._outlet.send(TrialDone(time=now, trial=self._trial, state=state, verdict=verdict))
            return
        told = describe(error, now)
        cause = TrialError(code=told.code, message=told.message, traceback=told.traceback)
        self._outlet.send(TrialDone(time=now, trial=self._trial, state="failed", error=cause))

    def progress(self, done: float, total: float, unit: str) -> None:
        """See `Report.progress`; short epochs come faster than any page can show."""
        now = time.monotonic()
        if done < total and now - self._progressed < PROGRESS_PAUSE:
            return
        self._progressed = now
        self._outlet.send(Progress(trial=self._trial, time=time.time(), done=done, total=total, unit=unit))

    def metric(
        self, x: float, values: Mapping[str, float], *, axis: Axis = "epoch", execution: int | None = None
    ) -> None:
        """See `Report.metric`."""
        names, figures = tuple(values), tuple(map(float, values.values()))
        series = Series(axis, self._trial, execution)
        self._outlet.gather(Call(series, float(x), time.time(), names, figures))

    def log(self, line: str, *, level: Level = "info", source: str = "engine") -> None:
        """See `Report.log`."""
        self._outlet.send(Log(trial=self._trial, time=time.time(), line=line, level=level, source=source))

    def warning(self, code: str, message: str) -> None:
        """See `Report.warning`; a repeated one is dropped."""
        if (code, message) not in self._warned:
            self._warned.add((code, message))
            self._outlet.send(Warned(trial=self._trial, time=time.time(), code=code, message=message))

    def execution(
        self,
        execution: int,
        state: ExecutionState,
        *,
        score: float | None = None,
        best_epoch: int | None = None,
        epochs: int = 0,
        metrics: Mapping[str, float] | None = None,
        best: Sequence[tuple[int, float]] = (),
    ) -> None:
        """See `Report.execution`."""
        self._outlet.send(
            ExecutionDone(
                time=time.time(),
                trial=self._trial,
                execution=execution,
                state=state,
                score=None if score is None else finite(score),
                best_epoch=best_epoch,
                epochs=epochs,
                metrics={name: finite(value) for name, value in (metrics or {}).items()},
                best=tuple(best),
            )
        )

    def checkpoint(
        self, folder: str, *, step: int, epoch: int, manifest: str, size: int, execution: int | None = None
    ) -> None:
        """See `Report.checkpoint`."""
        self._outlet.send(
            CheckpointCommitted(
                time=time.time(),
                trial=self._trial,
                folder=folder,
                step=step,
                epoch=epoch,
                manifest=manifest,
                bytes=size,
                execution=execution,
            )
        )

    def artifact(self, role: Role, path: str, *, name: str, meta: dict[str, Any] | None = None) -> None:
        """See `Report.artifact`."""
        self._outlet.send(
            ArtifactWritten(
                time=time.time(), trial=self._trial, role=role, name=name, path=path, meta=meta or {}
            )
        )

    def request(self) -> Request | None:
        """See `Report.request`."""
        return self._inbox.request()

    def recorded(self) -> Sequence[str]:
        """See `Report.recorded`."""
        return self._inbox.recorded()

    def curves(self) -> Sequence[Curve]:
        """See `Report.curves`."""
        return self._inbox.curves()
