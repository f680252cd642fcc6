"""The engine's `Report`, spoken over the event pipe."""

import time
from collections.abc import Mapping
from typing import Any, Literal

from jobs.spec.events import (
    ArtifactWritten,
    Axis,
    CheckpointCommitted,
    ExecutionDone,
    Level,
    Log,
    Metric,
    Progress,
    Role,
    Warned,
)
from workers.engine.report import Request, finite
from workers.runner.inbox import Inbox
from workers.runner.outlet import Outlet

PROGRESS_PAUSE = 0.2


class Speaker:
    """Turns the engine's calls into events; implements `workers.engine.report.Report`."""

    def __init__(self, outlet: Outlet, inbox: Inbox, folder: str) -> None:
        self.folder = folder
        self._outlet = outlet
        self._inbox = inbox
        self._warned: set[tuple[str, str]] = set()
        self._progressed = -PROGRESS_PAUSE

    def progress(self, done: float, total: float, unit: str) -> None:
        """See `Report.progress`; short epochs come faster than any page can show."""
        now = time.monotonic()
        if done < total and now - self._progressed < PROGRESS_PAUSE:
            return
        self._progressed = now
        self._outlet.send(Progress(time=time.time(), done=done, total=total, unit=unit))

    def metric(
        self, x: float, values: Mapping[str, float], *, axis: Axis = "epoch", execution: int | None = None
    ) -> None:
        """See `Report.metric`."""
        now = time.time()
        points = tuple((name, float(x), finite(value), now) for name, value in values.items())
        self._outlet.send(Metric(time=now, x=axis, points=points, execution=execution))

    def log(self, line: str, *, level: Level = "info", source: str = "engine") -> None:
        """See `Report.log`."""
        self._outlet.send(Log(time=time.time(), line=line, level=level, source=source))

    def warning(self, code: str, message: str) -> None:
        """See `Report.warning`; a repeated one is dropped."""
        if (code, message) not in self._warned:
            self._warned.add((code, message))
            self._outlet.send(Warned(time=time.time(), code=code, message=message))

    def execution(
        self,
        execution: int,
        state: Literal["running", "completed", "failed"],
        *,
        score: float | None = None,
        best_epoch: int | None = None,
        epochs: int = 0,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """See `Report.execution`."""
        self._outlet.send(
            ExecutionDone(
                time=time.time(),
                execution=execution,
                state=state,
                score=None if score is None else finite(score),
                best_epoch=best_epoch,
                epochs=epochs,
                metrics={name: finite(value) for name, value in (metrics or {}).items()},
            )
        )

    def checkpoint(
        self, folder: str, *, step: int, epoch: int, manifest: str, size: int, execution: int | None = None
    ) -> None:
        """See `Report.checkpoint`."""
        self._outlet.send(
            CheckpointCommitted(
                time=time.time(),
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
        event = ArtifactWritten(time=time.time(), role=role, name=name, path=path, meta=meta or {})
        self._outlet.send(event)

    def request(self) -> Request | None:
        """See `Report.request`."""
        return self._inbox.request()
