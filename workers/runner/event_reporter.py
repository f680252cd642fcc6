"""Implements the engine's `Report`: turns its calls into events on the event pipe."""

import contextlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from jobs.messages.events import (
    ArtifactWritten,
    Axis,
    BaselineMeasured,
    CheckpointCommitted,
    Declared,
    ExecutionDone,
    ExecutionState,
    Level,
    Log,
    Phase,
    PhaseName,
    Progress,
    Resumed,
    Role,
    TrialBegun,
    TrialDone,
    TrialEnd,
    TrialError,
    Warned,
)
from jobs.messages.trial_marker import marker_of
from jobs.spec.sections.baseline import Baseline
from jobs.spec.sections.pruning import Curve, Verdict
from jobs.spec.space.search_space import Space, Values
from workers.engine.report import Request, finite_or_none
from workers.runner.control_reader import ControlReader
from workers.runner.event_writer import EventWriter
from workers.runner.failures import describe
from workers.runner.metric_batching import MetricCall, SeriesKey

# Short epochs would send more progress than a page can show.
MIN_PROGRESS_INTERVAL = 0.2


def _mark_output(trial: int) -> None:
    """Mark the lines printed from now on as a trial's."""
    for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
        # A full disk, or output that a program has closed, must not end the training.
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
            os.write(descriptor, marker_of(trial))


class EventReporter:
    """Sends the engine's calls as events.

    The methods are described in `workers.engine.report.Report`.
    """

    def __init__(
        self, writer: EventWriter, control: ControlReader, folder: str, trial: int | None = None
    ) -> None:
        self.folder = folder
        self._writer = writer
        self._control = control
        self._trial = trial
        self._warned: set[tuple[str, str]] = set()
        self._last_progress = -MIN_PROGRESS_INTERVAL
        self._phase: PhaseName | None = None

    def for_trial(self, number: int) -> "EventReporter":
        return EventReporter(self._writer, self._control, self.folder, number)

    def trial_started(self) -> None:
        if self._trial is not None:
            _mark_output(self._trial)
        self._writer.send(TrialBegun(time=time.time(), trial=self._trial))

    def trial_finished(
        self,
        error: Exception | None = None,
        *,
        state: TrialEnd = "completed",
        verdict: Verdict | None = None,
    ) -> None:
        now = time.time()
        if error is None:
            self._writer.send(TrialDone(time=now, trial=self._trial, state=state, verdict=verdict))
            return
        failure = describe(error, now)
        cause = TrialError(code=failure.code, message=failure.message, traceback=failure.traceback)
        self._writer.send(TrialDone(time=now, trial=self._trial, state="failed", error=cause))

    def progress(self, done: float, total: float, unit: str) -> None:
        now = time.monotonic()
        # The last progress of a training is always sent, so that pages show it as complete. The first one
        # after a phase ends the phase.
        if done < total and now - self._last_progress < MIN_PROGRESS_INTERVAL and self._phase is None:
            return
        self._last_progress, self._phase = now, None
        self._writer.send(Progress(trial=self._trial, time=time.time(), done=done, total=total, unit=unit))

    def phase(self, name: PhaseName) -> None:
        # Several programs may be compiled one after another.
        if name != self._phase:
            self._phase = name
            self._writer.send(Phase(trial=self._trial, time=time.time(), name=name))

    def metric(
        self, x: float, values: Mapping[str, float], *, axis: Axis = "epoch", execution: int | None = None
    ) -> None:
        # The floats of NumPy and JAX are converted here, because JSON encoders do not know them.
        names, figures = tuple(values), tuple(map(float, values.values()))
        series = SeriesKey(axis, self._trial, execution)
        self._writer.send_metrics(MetricCall(series, float(x), time.time(), names, figures))

    def log(self, line: str, *, level: Level = "info", source: str = "engine") -> None:
        self._writer.send(Log(trial=self._trial, time=time.time(), line=line, level=level, source=source))

    def warning(self, code: str, message: str) -> None:
        # Each training of a search would repeat the warnings of its predecessors.
        if (code, message) not in self._warned:
            self._warned.add((code, message))
            self._writer.send(Warned(trial=self._trial, time=time.time(), code=code, message=message))

    def declared(self, rows: Space, values: Values, refused: Mapping[str, str]) -> None:
        self._writer.send(
            Declared(
                time=time.time(), trial=self._trial, rows=rows, values=dict(values), refused=dict(refused)
            )
        )

    def baseline(self, baseline: Baseline) -> None:
        self._writer.send(BaselineMeasured(time=time.time(), trial=self._trial, baseline=baseline))

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
        self._writer.send(
            ExecutionDone(
                time=time.time(),
                trial=self._trial,
                execution=execution,
                state=state,
                score=None if score is None else finite_or_none(score),
                best_epoch=best_epoch,
                epochs=epochs,
                metrics={name: finite_or_none(value) for name, value in (metrics or {}).items()},
                best=tuple(best),
            )
        )

    def checkpoint(
        self, folder: str, *, step: int, epoch: int, manifest: str, size: int, execution: int | None = None
    ) -> None:
        self._writer.send(
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

    def resumed(self, *, epoch: int, saved: str, loaded: str, execution: int | None = None) -> None:
        self._writer.send(
            Resumed(
                time=time.time(),
                trial=self._trial,
                execution=execution,
                epoch=epoch,
                saved=saved,
                loaded=loaded,
            )
        )

    def artifact(self, role: Role, path: str, *, name: str, meta: dict[str, Any] | None = None) -> None:
        self._writer.send(
            ArtifactWritten(
                time=time.time(), trial=self._trial, role=role, name=name, path=path, meta=meta or {}
            )
        )

    def request(self) -> Request | None:
        return self._control.request()

    def recorded(self) -> Sequence[str]:
        return self._control.recorded()

    def curves(self) -> Sequence[Curve]:
        return self._control.curves()
