"""Warms up a process by running a small trial on random data, before it gets its first task.

A process' first trial initializes the JAX backend and much of Keras, JAX and the engine: about a CPU
second. The warm-up does this in advance.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from jobs.messages.events import Axis, ExecutionState, Level, PhaseName, Role, TrialEnd
from jobs.messages.task import DatasetFile
from jobs.messages.training import ExecutionPlan, TrialPlan, TrialTask
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.baseline import Baseline
from jobs.spec.sections.pruning import Curve, Verdict
from jobs.spec.sections.search import Objective
from jobs.spec.space.search_space import Space, Values
from workers.engine.data.reading.arrow_file import write_columns
from workers.engine.data.store import file_digest
from workers.engine.report import Request
from workers.engine.tasks import trial

ROWS, FEATURES, CLASSES = 64, 4, 3


def warm_up(folder: Path, *, threads: int) -> None:
    """Train a small network on random rows for two epochs.

    Args:
        folder: for all files; created if necessary. The caller removes it.
        threads: the thread count in the process environment.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Through the code of every trial, so that whatever a trial needs for the first time is ready.
    trial.run(_task(folder, _random_dataset(folder / "made-up.arrow"), threads), NullReport(str(folder)))


class NullReport:
    """A `Report` that discards everything. Errors in the trial are raised."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def for_trial(self, number: int) -> Self:  # noqa: ARG002
        """See `Report.for_trial`."""
        return self

    def trial_started(self) -> None:
        """See `Report.trial_started`."""

    def trial_finished(
        self,
        error: Exception | None = None,
        *,
        state: TrialEnd = "completed",  # noqa: ARG002
        verdict: Verdict | None = None,  # noqa: ARG002
    ) -> None:
        """See `Report.trial_finished`."""
        if error is not None:
            raise error

    def progress(self, done: float, total: float, unit: str) -> None:
        """See `Report.progress`."""

    def phase(self, name: PhaseName) -> None:
        """See `Report.phase`."""

    def metric(
        self, x: float, values: Mapping[str, float], *, axis: Axis = "epoch", execution: int | None = None
    ) -> None:
        """See `Report.metric`."""

    def log(self, line: str, *, level: Level = "info", source: str = "engine") -> None:
        """See `Report.log`."""

    def warning(self, code: str, message: str) -> None:
        """See `Report.warning`."""

    def declared(self, rows: Space, values: Values, refused: Mapping[str, str]) -> None:
        """See `Report.declared`."""

    def baseline(self, baseline: Baseline) -> None:
        """See `Report.baseline`."""

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

    def checkpoint(
        self, folder: str, *, step: int, epoch: int, manifest: str, size: int, execution: int | None = None
    ) -> None:
        """See `Report.checkpoint`."""

    def resumed(self, *, epoch: int, saved: str, loaded: str, execution: int | None = None) -> None:
        """See `Report.resumed`."""

    def artifact(self, role: Role, path: str, *, name: str, meta: dict[str, Any] | None = None) -> None:
        """See `Report.artifact`."""

    def recorded(self) -> Sequence[str]:
        """See `Report.recorded`."""
        return ()

    def curves(self) -> Sequence[Curve]:
        """See `Report.curves`."""
        return ()

    def request(self) -> Request | None:
        """See `Report.request`."""
        return None


def _random_dataset(path: Path) -> DatasetFile:
    """Write random rows, (ROWS, FEATURES) float32, and class numbers, (ROWS,) int32."""
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.random((ROWS, FEATURES), np.float32),
        "y": np.arange(ROWS, dtype=np.int32) % CLASSES,
    }
    profile = Profile(
        rows=ROWS,
        kind="vector",
        task="multiclass",
        target="y",
        features=("x",),
        input_shape=(FEATURES,),
        outputs=CLASSES,
        class_labels=tuple(str(label) for label in range(CLASSES)),
        columns=(),
        preview=(),
    )
    write_columns(path, arrays, {})
    return DatasetFile(path=str(path), digest=file_digest(path), profile=profile.model_dump(mode="json"))


def _task(folder: Path, dataset: DatasetFile, threads: int) -> TrialTask:
    spec = ExperimentSpec.model_validate(
        {
            "version": 1,
            "data": {"dataset": "made-up"},
            "model": {"kind": "template", "template": "mlp", "args": {"units": 8, "layers": 1}},
            "fit": {"epochs": 2, "batch_size": 16},
        }
    )
    return TrialTask(
        folder=str(folder),
        checkpoints=str(folder / "checkpoints"),
        threads=threads,
        spec=spec,
        objective=Objective(metric="val_loss", direction="min"),
        dataset=dataset,
        trials=(TrialPlan(number=1, values={}, spec=spec, executions=(ExecutionPlan(execution=1, seed=0),)),),
    )
