"""Runs the train task: finds the best epoch, retrains on training and validation data, evaluates.

It follows F. Chollet's recipe in the Keras guides. A first training on the training part finds the best
number of epochs, by the measure that `jobs.spec.sections.monitors` defines. A second one, from new weights,
includes the validation rows and runs for `int(best · factor)` epochs, since it has more data. Validation
metrics come from the first training, as the second has been trained on these rows. Test data is used once,
for the final evaluation.
"""

import math
from pathlib import Path
from typing import Any

from jobs.messages.task import EarlierTraining, required
from jobs.messages.training import Choice, Measured, TrainTask
from jobs.spec.sections import monitors
from workers.engine.arrays import Array
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.data.rows import selected
from workers.engine.evaluation.evaluate import evaluate, scores
from workers.engine.models import base_models
from workers.engine.models.devices.loading import leaving_mesh
from workers.engine.models.own_code.in_use import using_code
from workers.engine.phases import announced_to
from workers.engine.report import Report, finite_or_none
from workers.engine.tasks.artifacts import write_json, write_test_predictions, write_validation_predictions
from workers.engine.tasks.export import export
from workers.engine.tasks.first_phase import FIND_PHASE, RETRAIN_PHASE, FirstPhase
from workers.engine.tasks.objective import measure_objective
from workers.engine.training import checkpoint
from workers.engine.training.checkpoint import Snapshot
from workers.engine.training.checkpointing import Checkpointer
from workers.engine.training.early_stopping import BestTracker
from workers.engine.training.loops import predict
from workers.engine.training.plan import TrainingPlan, TrainingResult
from workers.engine.training.prepare import (
    Prepared,
    check_metric_name,
    check_monitor,
    predict_batch_size,
    prepare,
)
from workers.engine.training.restart import report_restart


def run(task: TrainTask, report: Report) -> dict[str, Any]:
    """Train, export and evaluate a model; write it with its summary, evaluation and predictions as artifacts.

    Returns:
        The job's result: metrics on validation and test data, epochs and the model's signature.

    Raises:
        BadData, BadLayout, BadSpec: see `prepare.prepare`.
        NanLoss, TaskInterrupted: see `training.Training.run`.
    """
    with using_code(task.code, Path(task.folder)), leaving_mesh():
        return _TrainRun(task, report).run()


class _TrainRun:
    """One task's two phases, and what follows them."""

    _dataset: Dataset

    def __init__(self, task: TrainTask, report: Report) -> None:
        self._task = task
        self._report = report
        self._parent = Path(task.checkpoints or Path(task.folder) / "checkpoints")
        self._epochs = task.retrain.epochs_cap if task.retrain is not None else task.spec.fit.epochs
        objective = task.objective if task.spec.search is not None else None
        self._monitors = monitors.monitors_of_training(objective, task.retrain, task.spec.fit.early_stopping)

    def run(self) -> dict[str, Any]:
        self._report.phase("loading")
        spec = self._task.spec
        base_models.provide(self._task.base_model)
        with announced_to(self._report.phase):
            self._dataset = load_dataset(
                required(self._task.dataset),
                spec.required_data,
                spec.texts,
                self._task.in_memory_bytes,
                base_models.features_of(spec.model),
            )
        newest = checkpoint.newest_intact(self._task.resume)
        if newest is None:
            report_restart(self._report, self._task.earlier, self._task.resume)
        # A checkpoint of the second phase holds the results of the first, which is then not repeated.
        mapped = spec.mesh is not None
        snapshot = None if newest is None else checkpoint.read(Path(newest.folder), mapped=mapped)
        if snapshot is not None and snapshot.state["extra"]["phase"] == RETRAIN_PHASE:
            first = FirstPhase.from_snapshot(snapshot)
            validation = snapshot.arrays["validation"]
            prepared, epochs = self._retrain(first, validation, snapshot)
        else:
            self._report.log("finding the best epoch on the training part")
            prepared, first, validation = self._find_best_epoch(snapshot)
            epochs = first.best_epoch
            if self._retrains():
                prepared, epochs = self._retrain(first, validation, None)
        write_validation_predictions(self._report, *validation)
        return self._finish(prepared, first, epochs, validation)

    def _retrains(self) -> bool:
        return self._task.retrain is not None and self._task.retrain.include_validation

    def _prepare(self, rows: Array) -> Prepared:
        task = self._task
        with announced_to(self._report.phase):
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
        result = prepared.training(plan).run(self._resumable(snapshot))
        if prepared.chooses_epoch and not result.keeps_last:
            self._warn_if_cut_short(result)
        # An ensemble fits its weights to these predictions, so they come from a model that has not been
        # trained on the validation rows.
        with announced_to(self._report.phase):
            y_pred = prepared.saved_form(loop.predict(validation.x, validation.batch_size))
        first = FirstPhase(
            best_epoch=result.best_epoch,
            epochs=result.epochs,
            steps=result.steps,
            score=result.metrics[self._task.objective.metric],
            figures=result.metrics,
            # Trees have none.
            rates=tuple(epoch["lr"] for epoch in result.history if "lr" in epoch),
            stopped_by=self._monitors.stop.metric if result.is_exhausted else "",
        )
        return prepared, first, [parts.validation, validation.y, y_pred]

    def _resumable(self, snapshot: Snapshot | None) -> Snapshot | None:
        """Return the snapshot, unless it holds the best epoch by another measure than the current one.

        An earlier release chose epochs by the early stopping measure. The weights that such a checkpoint
        holds belong to the wrong epoch, and the right one's are gone.
        """
        if snapshot is None:
            return None
        tracked = (snapshot.state["best"] or {}).get("metric", self._monitors.best.metric)
        if tracked == self._monitors.best.metric:
            return snapshot
        reason = f"its checkpoint has the best epoch by {tracked}, not by {self._monitors.best.metric}"
        earlier = self._task.earlier or EarlierTraining(epoch=snapshot.state["epoch"])
        report_restart(self._report, earlier, self._task.resume, reason=reason)
        return None

    def _warn_if_cut_short(self, result: TrainingResult) -> None:
        best, stop = self._monitors
        if result.best_epoch == self._epochs:
            self._report.warning(
                "cap_reached",
                f"the best epoch by {best.metric} is the last one allowed ({self._epochs}): more epochs may "
                "help. Raise the limit and train again.",
            )
        elif result.best_epoch == result.epochs and result.is_exhausted and stop.metric != best.metric:
            self._report.warning(
                "stopped_while_improving",
                f"early stopping by {stop.metric} ended the training after epoch {result.epochs}, in which "
                f"{best.metric} was still at its best: more epochs may help. Leave early_stopping.monitor "
                f"empty to stop by {best.metric}, or raise the patience.",
            )

    def _trackers(self, prepared: Prepared) -> tuple[BestTracker | None, BestTracker | None]:
        """Return the trackers that choose the best epoch and that stop the first phase early."""
        retrain, early = self._task.retrain, self._task.spec.fit.early_stopping
        check_metric_name(self._task.objective.metric, prepared, "the objective")
        check_metric_name(self._monitors.best.metric, prepared, "after.retrain.monitor")
        best = BestTracker(*self._monitors.best)
        if early is None and retrain is None:
            return best, None
        check_monitor(self._monitors.stop, prepared)
        stop = BestTracker(*self._monitors.stop)
        if early is not None:
            stop.patience, stop.min_delta = early.patience, early.min_delta
        if retrain is not None:
            # The recipe searches for the best epoch with a high patience of its own.
            stop.patience = retrain.patience
        return (None if self._keeps_last() else best), stop

    def _keeps_last(self) -> bool:
        """Return whether the model keeps the last epoch's weights, not the best one's."""
        early = self._task.spec.fit.early_stopping
        return self._task.retrain is None and early is not None and not early.restore_best

    def _expected_epochs(self, epochs: float, best: BestTracker | None, stop: BestTracker | None) -> float:
        """Estimate both phases' epochs, assuming that the best epoch does not change any more."""
        patience = stop.patience if stop is not None else None
        so_far = best.best_epoch if best is not None else 0
        first = min(self._epochs, so_far + patience) if patience is not None else self._epochs
        return max(first, epochs) + (self._retrain_epochs(so_far) if self._retrains() else 0)

    def _retrain_epochs(self, best_epoch: int) -> int:
        factor = self._task.retrain.epochs_factor if self._task.retrain is not None else 1.0
        # 1e-9: 100 · 1.15 should give 115, but in floating point the product is 114.999…
        return max(int(best_epoch * factor + 1e-9), 1)

    def _retrain(
        self, first: FirstPhase, validation: list[Array], snapshot: Snapshot | None
    ) -> tuple[Prepared, int]:
        epochs = self._retrain_epochs(first.best_epoch)
        if epochs == first.best_epoch:
            least = math.ceil(100 * (epochs + 1) / epochs) / 100
            self._report.warning(
                "retrain_adds_nothing",
                f"the final training has more rows but no more epochs: best epoch {epochs} × epochs_factor "
                f"is below {epochs + 1}, so the model may be trained too little. Set epochs_factor to at "
                f"least {least:g} and retrain.",
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
            # The newest checkpoint is the one with the most steps: it must be one of this phase.
            first_step=first.steps,
            label="retrain_",
            # Without validation rows a plateau cannot be detected: the first phase's learning rates are used.
            hook=prepared.hook(first.rates),
            extra=first.to_extra(),
            extra_arrays={"validation": validation, **first.to_arrays()},
        )
        prepared.training(plan).run(snapshot)
        return prepared, epochs

    def _finish(
        self, prepared: Prepared, first: FirstPhase, epochs: int, validation: list[Array]
    ) -> dict[str, Any]:
        self._report.phase("saving")
        exported = export(prepared, self._report, self._task.model_name)
        # The test rows are predicted by the model as loaded from its file, which is what will be served.
        self._report.phase("evaluating")
        rows = self._dataset.parts.test
        y_true = self._dataset.y[rows]
        batch_size = predict_batch_size(self._task.spec, len(rows))
        with announced_to(self._report.phase):
            y_pred = predict(exported.model, selected(self._dataset.x, rows), batch_size)
        labels, task = self._dataset.profile.class_labels, self._dataset.task
        weights = self._dataset.weights_of(rows)
        evaluation = evaluate(task, y_true, y_pred, labels, self._task.spec.fit.seed, weights)
        write_json(self._report, "evaluation", "evaluation.json", evaluation)
        write_test_predictions(self._report, task, rows, y_true, y_pred, labels)
        figures = {
            name.removeprefix("val_"): v for name, v in first.figures.items() if name.startswith("val_")
        }
        compared = self._measured(prepared, validation, (y_true, y_pred)) if self._task.retrain else {}
        return {
            "metrics": {"test": scores(evaluation), "validation": figures},
            "score": first.score,
            "choice": self._choice(prepared, first).model_dump(),
            "measured": {part: values.model_dump() for part, values in compared.items()},
            "best_epoch": first.best_epoch,
            "epochs": epochs,
            "epochs_to_find": first.epochs,
            "signature": exported.signature.model_dump(mode="json"),
            "class_labels": list(self._dataset.profile.class_labels),
            "parameters": exported.parameters,
            "bytes": exported.bytes,
            "train_rows": len(prepared.batches.x),
            "test_rows": len(rows),
        }

    def _choice(self, prepared: Prepared, first: FirstPhase) -> Choice:
        """Return the chosen epoch, with its measure and rows."""
        best = self._monitors.best
        return Choice(
            metric=best.metric,
            direction=best.direction,
            value=finite_or_none(first.figures[best.metric]),
            epoch=first.best_epoch,
            epochs=first.epochs,
            rows=len(self._dataset.parts.validation),
            stopped_by=first.stopped_by,
            keeps_last=self._keeps_last() or not prepared.chooses_epoch,
        )

    def _measured(
        self, prepared: Prepared, validation: list[Array], test: tuple[Array, Array]
    ) -> dict[str, Measured]:
        """Return the objective on validation and test rows with its 95 % interval, by data part.

        On validation rows it comes from the first phase: the second one has been trained on them.
        """
        parts = self._dataset.parts
        rows = prepared.evaluation_set(parts.validation)
        metric, seed = self._task.objective.metric, self._task.spec.fit.seed
        if not rows.computes(metric.removeprefix("val_")):
            return {}
        numbers, y, p = validation
        return {
            "validation": measure_objective(metric, rows, y, p, seed, self._dataset.weights_of(numbers)),
            "test": measure_objective(metric, rows, *test, seed, self._dataset.weights_of(parts.test)),
        }
