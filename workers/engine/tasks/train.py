"""The train task: find the best epoch, train again on train + validation, evaluate on test once.

After F. Chollet's recipe in the Keras guides: a first training on the training part finds how many
epochs are best; a second one from scratch sees the validation rows too, for `int(best · factor)`
epochs, since it has more to learn from. Its validation figures are those of the first phase: the
second has seen these rows.
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
from workers.engine.training.checkpointing import Keeper
from workers.engine.training.early_stopping import Watch
from workers.engine.training.loops import predict
from workers.engine.training.prepare import Prepared, check_figure, predict_batch_size, prepare
from workers.engine.training.training import Outcome, Plan, Training

FIND, AGAIN = "find", "again"
"""The phases: find the best epoch; train again on train + validation."""


@dataclass(frozen=True)
class Found:
    """What the first phase found, as every checkpoint of the second carries it."""

    best_epoch: int
    epochs: int
    steps: int
    score: float
    figures: dict[str, float]
    rates: tuple[float, ...] = ()


def run(task: TrainTask, report: Report) -> dict[str, Any]:
    """Train, save, evaluate; artifacts: model, summary, validation predictions, evaluation, predictions.

    Raises:
        NanLoss, BadSpec, BadData, BadLayout: as their names say.
    """
    return _Train(task, report).run()


class _Train:
    def __init__(self, task: TrainTask, report: Report) -> None:
        self._task = task
        self._report = report
        self._dataset = load_dataset(task.dataset, task.spec.data)
        self._parent = Path(task.checkpoints or Path(task.folder) / "checkpoints")
        self._epochs = task.retrain.epochs_cap if task.retrain is not None else task.spec.fit.epochs

    def run(self) -> dict[str, Any]:
        newest = checkpoint.newest_whole(self._task.resume)
        snapshot = None if newest is None else checkpoint.read(Path(newest.folder))
        if snapshot is not None and snapshot.state["extra"]["phase"] == AGAIN:
            found = Found(**snapshot.state["extra"]["found"])
            validation = snapshot.arrays["validation"]
            prepared, epochs = self._train_again(found, validation, snapshot)
        else:
            self._report.log("looking for the best epoch on the training part")
            prepared, found, validation = self._find_best_epoch(snapshot)
            epochs = found.best_epoch
            if self._trains_again():
                prepared, epochs = self._train_again(found, validation, None)
        write_validation_predictions(self._report, *validation)
        return self._finish(prepared, found, epochs)

    def _trains_again(self) -> bool:
        return self._task.retrain is not None and self._task.retrain.include_validation

    def _prepare(self, rows: Array) -> Prepared:
        task = self._task
        return prepare(task.spec, self._dataset, rows, name=task.model_name, seed=task.spec.fit.seed)

    def _keeper(self) -> Keeper:
        return Keeper(self._parent, self._report, fence=self._task.fence)

    def _find_best_epoch(self, snapshot: Snapshot | None) -> tuple[Prepared, Found, list[Array]]:
        parts = self._dataset.parts
        prepared = self._prepare(parts.train)
        best, stop = self._watches(prepared)
        held = prepared.held(parts.validation)
        loop = prepared.loop(held, epochs=self._epochs)
        plan = Plan(
            model=prepared.model,
            batches=prepared.batches,
            loop=loop,
            validation=held,
            epochs=self._epochs,
            best=best,
            stop=stop,
            keeper=self._keeper(),
            report=self._report,
            pace=lambda epochs: self._report.progress(epochs, self._expected(epochs, best, stop), "epochs"),
            hook=prepared.hook(),
            extra={"phase": FIND},
        )
        outcome = Training(plan).run(snapshot)
        self._warn_of_cap(outcome)
        y_pred = loop.predict(held.x, held.batch_size)
        return prepared, self._found(outcome), [parts.validation, held.y, y_pred]

    def _found(self, outcome: Outcome) -> Found:
        score = outcome.figures[self._task.objective.metric]
        rates = tuple(epoch["lr"] for epoch in outcome.history)
        return Found(outcome.best_epoch, outcome.epochs, outcome.steps, score, outcome.figures, rates)

    def _watches(self, prepared: Prepared) -> tuple[Watch | None, Watch | None]:
        """Return who chooses the best epoch and who ends the first phase."""
        retrain, early = self._task.retrain, self._task.spec.fit.early_stopping
        objective = self._task.objective
        check_figure(objective.metric, prepared, "the objective")
        if early is None and retrain is None:
            return Watch(objective.metric, objective.direction), None
        metric = early.monitor if early is not None else objective.metric
        better = objective.direction if metric == objective.metric else direction(metric)
        check_figure(metric, prepared, "early_stopping.monitor")
        patience = retrain.patience if retrain is not None else early.patience if early is not None else None
        stop = Watch(metric, better, patience, early.min_delta if early is not None else 0.0)
        keeps_last = retrain is None and early is not None and not early.restore_best
        return (None if keeps_last else Watch(metric, better)), stop

    def _expected(self, epochs: float, best: Watch | None, stop: Watch | None) -> float:
        """Estimate the epochs of both phases: no later best epoch than now is assumed."""
        patience = stop.patience if stop is not None else None
        so_far = best.best_epoch if best is not None else 0
        first = min(self._epochs, so_far + patience) if patience is not None else self._epochs
        return max(first, epochs) + (self._epochs_again(so_far) if self._trains_again() else 0)

    def _epochs_again(self, best_epoch: int) -> int:
        factor = self._task.retrain.epochs_factor if self._task.retrain is not None else 1.0
        # 1e-9: 10 · 1.1 is 11 for people, 10.999… for int()
        return max(int(best_epoch * factor + 1e-9), 1)

    def _train_again(
        self, found: Found, validation: list[Array], snapshot: Snapshot | None
    ) -> tuple[Prepared, int]:
        epochs = self._epochs_again(found.best_epoch)
        if epochs == found.best_epoch:
            self._report.warning(
                "retrain_adds_nothing",
                f"int({found.best_epoch} × factor) is {epochs} again: the second training runs no longer "
                "than the best epoch of the first",
            )
        self._report.log(f"best epoch {found.best_epoch}; training on both parts for {epochs} epochs")
        prepared = self._prepare(self._dataset.parts.both())
        before = found.epochs
        plan = Plan(
            model=prepared.model,
            batches=prepared.batches,
            loop=prepared.loop(epochs=epochs),
            validation=None,
            epochs=epochs,
            best=None,
            stop=None,
            keeper=self._keeper(),
            report=self._report,
            pace=lambda done: self._report.progress(before + done, before + epochs, "epochs"),
            first_step=found.steps,
            label="retrain_",
            hook=prepared.hook(found.rates),
            extra={"phase": AGAIN, "found": asdict(found)},
            extra_arrays={"validation": validation},
        )
        Training(plan).run(snapshot)
        return prepared, epochs

    def _warn_of_cap(self, outcome: Outcome) -> None:
        if outcome.best_epoch == self._epochs:
            self._report.warning(
                "cap_reached",
                f"the best epoch is the last one allowed ({self._epochs}): more epochs may do better",
            )

    def _finish(self, prepared: Prepared, found: Found, epochs: int) -> dict[str, Any]:
        exported = export(prepared, self._report, self._task.model_name, self._task.spec.fit.seed)
        rows = self._dataset.parts.test
        y_true = self._dataset.y[rows]
        y_pred = predict(
            exported.model, self._dataset.x[rows], predict_batch_size(self._task.spec, len(rows))
        )
        evaluation = self._evaluate(self._dataset, rows, y_true, y_pred)
        validation = {
            name.removeprefix("val_"): v for name, v in found.figures.items() if name.startswith("val_")
        }
        return {
            "metrics": {"test": scores(evaluation), "validation": validation},
            "score": found.score,
            "best_epoch": found.best_epoch,
            "epochs": epochs,
            "epochs_to_find": found.epochs,
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
