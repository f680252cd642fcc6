"""Runs the train task: finds the best epoch, retrains on training and validation data, evaluates.

It follows F. Chollet's recipe in the Keras guides. A first training on the training part finds the best
number of epochs. A second one, from new weights, includes the validation rows and runs for
`int(best · factor)` epochs, since it has more data. Validation metrics are those of the first training, as
the second has been trained on these rows. Test data is used once, for the final evaluation.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobs.kinds.train.payload import TrainTask
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.data.table import Array
from workers.engine.evaluation.evaluate import evaluate, scores
from workers.engine.models.losses import direction
from workers.engine.report import Report
from workers.engine.tasks.artifacts import write_json, write_test_predictions, write_validation_predictions
from workers.engine.tasks.export import export
from workers.engine.training import checkpoint
from workers.engine.training.checkpoint import Snapshot
from workers.engine.training.checkpointing import Checkpointer
from workers.engine.training.early_stopping import BestTracker
from workers.engine.training.loops import predict
from workers.engine.training.prepare import Prepared, check_metric_name, predict_batch_size, prepare
from workers.engine.training.training import Training, TrainingPlan, TrainingResult

FIND_PHASE, RETRAIN_PHASE = "find", "again"
"""The phases: find the best epoch; retrain on training and validation data. Part of the checkpoint format."""


@dataclass(frozen=True)
class FirstPhase:
    """Result of the first phase. Checkpoints of the second store it, so its field names must not change.

    Attributes:
        best_epoch: counted from 1.
        epochs: number of epochs trained.
        steps: number of training steps.
        score: objective at the best epoch.
        figures: metrics of the best epoch by name.
        rates: learning rate of each epoch.
    """

    best_epoch: int
    epochs: int
    steps: int
    score: float
    figures: dict[str, float]
    rates: tuple[float, ...] = ()


def run(task: TrainTask, report: Report) -> dict[str, Any]:
    """Train, export and evaluate a model; write it with its summary, evaluation and predictions as artifacts.

    Returns:
        The job's result: metrics on validation and test data, epochs and the model's signature.

    Raises:
        BadData, BadLayout, BadSpec: see `prepare.prepare`.
        NanLoss, TaskInterrupted: see `training.Training.run`.
    """
    return _TrainRun(task, report).run()


class _TrainRun:
    def __init__(self, task: TrainTask, report: Report) -> None:
        self._task = task
        self._report = report
        self._dataset = load_dataset(task.dataset, task.spec.data)
        self._parent = Path(task.checkpoints or Path(task.folder) / "checkpoints")
        self._epochs = task.retrain.epochs_cap if task.retrain is not None else task.spec.fit.epochs

    def run(self) -> dict[str, Any]:
        newest = checkpoint.newest_intact(self._task.resume)
        snapshot = None if newest is None else checkpoint.read(Path(newest.folder))
        if snapshot is not None and snapshot.state["extra"]["phase"] == RETRAIN_PHASE:
            first = FirstPhase(**snapshot.state["extra"]["found"])
            validation = snapshot.arrays["validation"]
            prepared, epochs = self._retrain(first, validation, snapshot)
        else:
            self._report.log("finding the best epoch on the training part")
            prepared, first, validation = self._find_best_epoch(snapshot)
            epochs = first.best_epoch
            if self._retrains():
                prepared, epochs = self._retrain(first, validation, None)
        write_validation_predictions(self._report, *validation)
        return self._finish(prepared, first, epochs)

    def _retrains(self) -> bool:
        return self._task.retrain is not None and self._task.retrain.include_validation

    def _prepare(self, rows: Array) -> Prepared:
        task = self._task
        return prepare(task.spec, self._dataset, rows, name=task.model_name, seed=task.spec.fit.seed)

    def _checkpointer(self) -> Checkpointer:
        return Checkpointer(self._parent, self._report, fence=self._task.fence)

    def _find_best_epoch(self, snapshot: Snapshot | None) -> tuple[Prepared, FirstPhase, list[Array]]:
        parts = self._dataset.parts
        prepared = self._prepare(parts.train)
        best, stop = self._trackers(prepared)
        validation = prepared.evaluation_set(parts.validation)
        loop = prepared.loop(validation, epochs=self._epochs)
        plan = TrainingPlan(
            model=prepared.model,
            batches=prepared.batches,
            loop=loop,
            validation=validation,
            epochs=self._epochs,
            best=best,
            stop=stop,
            checkpointer=self._checkpointer(),
            report=self._report,
            on_progress=lambda epochs: self._report.progress(
                epochs, self._expected_epochs(epochs, best, stop), "epochs"
            ),
            hook=prepared.hook(),
            extra={"phase": FIND_PHASE},
        )
        result = Training(plan).run(snapshot)
        if result.best_epoch == self._epochs:
            self._report.warning(
                "cap_reached",
                f"the best epoch is the last one allowed ({self._epochs}): more epochs may help",
            )
        y_pred = loop.predict(validation.x, validation.batch_size)
        return prepared, self._first_phase(result), [parts.validation, validation.y, y_pred]

    def _first_phase(self, result: TrainingResult) -> FirstPhase:
        score = result.metrics[self._task.objective.metric]
        rates = tuple(epoch["lr"] for epoch in result.history)
        return FirstPhase(result.best_epoch, result.epochs, result.steps, score, result.metrics, rates)

    def _trackers(self, prepared: Prepared) -> tuple[BestTracker | None, BestTracker | None]:
        """Return the trackers that choose the best epoch and that stop the first phase early."""
        retrain, early = self._task.retrain, self._task.spec.fit.early_stopping
        objective = self._task.objective
        check_metric_name(objective.metric, prepared, "the objective")
        if early is None and retrain is None:
            return BestTracker(objective.metric, objective.direction), None
        metric = early.monitor if early is not None else objective.metric
        better = objective.direction if metric == objective.metric else direction(metric)
        check_metric_name(metric, prepared, "early_stopping.monitor")
        patience = retrain.patience if retrain is not None else early.patience if early is not None else None
        stop = BestTracker(metric, better, patience, early.min_delta if early is not None else 0.0)
        keeps_last = retrain is None and early is not None and not early.restore_best
        return (None if keeps_last else BestTracker(metric, better)), stop

    def _expected_epochs(self, epochs: float, best: BestTracker | None, stop: BestTracker | None) -> float:
        """Estimate the epochs of both phases, assuming that the best epoch does not change any more."""
        patience = stop.patience if stop is not None else None
        so_far = best.best_epoch if best is not None else 0
        first = min(self._epochs, so_far + patience) if patience is not None else self._epochs
        return max(first, epochs) + (self._retrain_epochs(so_far) if self._retrains() else 0)

    def _retrain_epochs(self, best_epoch: int) -> int:
        factor = self._task.retrain.epochs_factor if self._task.retrain is not None else 1.0
        # 1e-9: 10 · 1.1 should give 11, but the product may be 10.999… in floating point
        return max(int(best_epoch * factor + 1e-9), 1)

    def _retrain(
        self, first: FirstPhase, validation: list[Array], snapshot: Snapshot | None
    ) -> tuple[Prepared, int]:
        epochs = self._retrain_epochs(first.best_epoch)
        if epochs == first.best_epoch:
            self._report.warning(
                "retrain_adds_nothing",
                f"int({first.best_epoch} × factor) is {epochs}: the second training has no more epochs than "
                "the first needed",
            )
        self._report.log(
            f"best epoch {first.best_epoch}; retraining on training and validation data for {epochs} epochs"
        )
        prepared = self._prepare(self._dataset.parts.train_and_validation())
        before = first.epochs
        plan = TrainingPlan(
            model=prepared.model,
            batches=prepared.batches,
            loop=prepared.loop(epochs=epochs),
            validation=None,
            epochs=epochs,
            best=None,
            stop=None,
            checkpointer=self._checkpointer(),
            report=self._report,
            on_progress=lambda done: self._report.progress(before + done, before + epochs, "epochs"),
            first_step=first.steps,
            label="retrain_",
            hook=prepared.hook(first.rates),
            extra={"phase": RETRAIN_PHASE, "found": asdict(first)},
            extra_arrays={"validation": validation},
        )
        Training(plan).run(snapshot)
        return prepared, epochs

    def _finish(self, prepared: Prepared, first: FirstPhase, epochs: int) -> dict[str, Any]:
        exported = export(prepared, self._report, self._task.model_name, self._task.spec.fit.seed)
        rows = self._dataset.parts.test
        y_true = self._dataset.y[rows]
        y_pred = predict(
            exported.model, self._dataset.x[rows], predict_batch_size(self._task.spec, len(rows))
        )
        evaluation = self._evaluate(self._dataset, rows, y_true, y_pred)
        validation = {
            name.removeprefix("val_"): v for name, v in first.figures.items() if name.startswith("val_")
        }
        return {
            "metrics": {"test": scores(evaluation), "validation": validation},
            "score": first.score,
            "best_epoch": first.best_epoch,
            "epochs": epochs,
            "epochs_to_find": first.epochs,
            "signature": json.loads(exported.signature.model_dump_json()),
            "class_labels": list(self._dataset.profile.class_labels),
            "parameters": exported.parameters,
            "bytes": exported.bytes,
            "train_rows": len(prepared.batches.x),
            "test_rows": len(rows),
        }

    def _evaluate(self, dataset: Dataset, rows: Array, y_true: Array, y_pred: Array) -> dict[str, Any]:
        labels, task = dataset.profile.class_labels, dataset.task
        evaluation = evaluate(task, y_true, y_pred, labels, seed=self._task.spec.fit.seed)
        write_json(self._report, "evaluation", "evaluation.json", evaluation)
        write_test_predictions(self._report, task, np.asarray(rows), y_true, y_pred, labels)
        return evaluation
