"""Reports how a training's variables are divided over its mesh, and how fast its steps are."""

import time
from pathlib import Path
from typing import Any

from jobs.messages.reports.shardings import Shardings
from jobs.spec.sections.mesh import MeshSpec
from workers.engine.models.devices.live_shardings import read_shardings
from workers.engine.report import Report

FILE = "shardings.json"
STEPS_PER_SECOND, ROWS_PER_SECOND = "system/{}steps_per_second", "system/{}rows_per_second"
"""Metrics of an epoch on a mesh."""


def report_shardings(report: Report, model: Any, mesh: MeshSpec, batch_size: int, *, is_trial: bool) -> None:
    """Write the shardings of a model's live arrays as an artifact, at the start of its training.

    Args:
        report: receives the artifact and the warnings.
        model: built and compiled.
        mesh: its design.
        batch_size: rows in a batch.
        is_trial: whether more models follow in this task, of which only the first is reported.
    """
    path = Path(report.folder) / FILE
    if is_trial and path.exists():
        return
    shardings = read_shardings(model, mesh, batch_size)
    path.write_text(shardings.model_dump_json(), encoding="utf-8")
    report.artifact("shardings", FILE, name=FILE)
    _warn_of_unmatched(report, shardings)


def _warn_of_unmatched(report: Report, shardings: Shardings) -> None:
    for match in shardings.unmatched:
        report.warning(
            "rule_without_variable",
            f"The layout rule {match} matches no variable of this model, so it divides nothing in it. It may "
            "match in another model of the search; otherwise correct it or leave it out.",
        )


class SpeedMeter:
    """Measures the speed of epochs, without the first call of a run, which compiles.

    Args:
        batch_size: rows in a batch; None if the code of a user chooses it.
        label: see `TrainingPlan.label`.
    """

    def __init__(self, batch_size: int | None, label: str) -> None:
        self._batch_size, self._label = batch_size, label
        self._has_compiled = False
        self._since = self._until = 0.0
        self._first = self._last = 0

    def begin(self, first: int) -> None:
        """Begin an epoch at the batch number `first`."""
        self._since = self._until = time.perf_counter()
        self._first = self._last = first

    def add(self, batch: int) -> None:
        """Note that so many of the epoch's batches are done."""
        self._last, self._until = batch, time.perf_counter()
        if not self._has_compiled:
            self._has_compiled = True
            self.begin(batch)

    def end(self) -> dict[str, float]:
        """Return the epoch's metrics; none if it had one call, which compiled."""
        steps, seconds = self._last - self._first, self._until - self._since
        if steps <= 0 or seconds <= 0:
            return {}
        metrics = {STEPS_PER_SECOND.format(self._label): steps / seconds}
        if self._batch_size is not None:
            metrics[ROWS_PER_SECOND.format(self._label)] = steps / seconds * self._batch_size
        return metrics
