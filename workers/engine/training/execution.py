"""Runs one execution of a trial: a training with its own seed, from model building to the reported result."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from jobs.messages.events import ExecutionState
from jobs.messages.training import ExecutionPlan, TrialPlan, TrialTask
from jobs.spec.sections import monitors
from jobs.spec.sections.evaluation import Turn
from workers.engine.arrays import Array
from workers.engine.data.dataset import Dataset
from workers.engine.data.folds import Fold, rows_for
from workers.engine.errors import CodeFailure, EngineError, NanObjective
from workers.engine.phases import announced_to
from workers.engine.report import Report
from workers.engine.training import checkpoint, pruning
from workers.engine.training.baselines import measure_baseline
from workers.engine.training.checkpoint import Snapshot
from workers.engine.training.checkpointing import Checkpointer
from workers.engine.training.declarations import report_declared
from workers.engine.training.early_stopping import BestTracker
from workers.engine.training.model_cache import ModelCache
from workers.engine.training.plan import EvaluationSet, TrainingPlan, TrainingResult
from workers.engine.training.prepare import Prepared, check_metric_name, check_monitor
from workers.engine.training.progress import TrialProgress
from workers.engine.training.restart import report_restart
from workers.engine.training.training import Training


class TrialContext(NamedTuple):
    """Objects that all executions in a trial share.

    Attributes:
        task: the trial's task.
        trial: its number, values and executions.
        dataset: the rows.
        models: built models that may be used again.
        report: for this trial's events.
        progress: sums up the executions' epochs.
        rivals: learning curves for the pruner.
        measured: the parts of the evaluation whose constant prediction the task has measured.
    """

    task: TrialTask
    trial: TrialPlan
    dataset: Dataset
    models: ModelCache
    report: Report
    progress: TrialProgress
    rivals: pruning.RivalCurves
    measured: set[Turn]


class Execution:
    """One execution. Call `start`, then `run_epoch` until `is_finished`, then `finish` and `release`.

    It reports its start, its end and its failure.

    Attributes:
        plan: number, seed, fold and checkpoints to resume from.
        context: shared with the trial's other executions.
        training: set by `start`.
        result: the training's result; set by `finish`.
        state: final state; set by `finish`.
    """

    training: Training
    _checkpointer: Checkpointer
    result: TrainingResult
    state: ExecutionState

    def __init__(self, plan: ExecutionPlan, context: TrialContext) -> None:
        self.plan = plan
        self.context = context
        self._pruning_check = pruning.pruning_check(context.task, context.trial, plan, context.rivals)

    def start(self) -> None:
        """Build the model or take it from the cache, and load the newest checkpoint, if any.

        Raises:
            EngineError: the spec or the checkpoint cannot be used.
        """
        task, trial, report = self.context.task, self.context.trial, self.context.report
        report.execution(self.plan.execution, "running")
        fold = "" if self.plan.fold is None else f" (fold {self.plan.fold})"
        report.log(f"execution {self.plan.execution}{fold} started: {trial.values}")
        rows = rows_for(self.plan.turn(), self.context.dataset, trial.spec)
        with announced_to(report.phase):
            dataset = self.context.dataset.fitted_on(rows.train)
            prepared = self._prepare(dataset, rows.train)
        # The folder of checkpoints outlives the attempt, so a later attempt can resume from them.
        parent = Path(task.checkpoints or task.folder) / f"trial-{trial.number}"
        self._checkpointer = Checkpointer(
            parent / f"execution-{self.plan.execution}",
            report,
            fence=task.fence,
            execution=self.plan.execution,
        )
        plan = self._training_plan(prepared, rows.validation)
        self.training = prepared.training(plan)
        snapshot = self._read_newest_checkpoint()
        with self._report_failure():
            self.training.start(snapshot)
        if plan.validation is not None:
            self._report_baseline(plan.validation, dataset, rows)

    def _prepare(self, dataset: Dataset, rows: Array) -> Prepared:
        """Build the model.

        Raises:
            EngineError: that is not possible. If code has failed, its declarations are reported: with other
                values it may not.
        """
        trial, report = self.context.trial, self.context.report
        name = f"trial_{trial.number}_{self.plan.execution}"
        try:
            return self.context.models.prepare(trial.spec, dataset, rows, name=name, seed=self.plan.seed)
        except CodeFailure as failure:
            if failure.hyperparameters is not None:
                report_declared(report, trial.spec, failure.hyperparameters)
            raise

    def _report_baseline(self, evaluation: EvaluationSet, dataset: Dataset, rows: Fold) -> None:
        """Measure the constant prediction, unless it is known or an earlier execution has done so."""
        turn, measured = self.plan.turn(), self.context.measured
        part = Turn(turn.repeat if turn.fold is not None else 1, turn.fold)
        if not self.plan.wants_baseline or part in measured:
            return
        measured.add(part)
        with announced_to(self.context.report.phase):
            baseline = measure_baseline(self.context.task.objective, part, evaluation, dataset, rows)
        self.context.report.baseline(baseline)

    @property
    def is_finished(self) -> bool:
        """Whether no further epoch follows."""
        return self.training.is_finished

    def run_epoch(self) -> None:
        """Run an epoch, or the rest of an interrupted one.

        Raises:
            EngineError, TaskInterrupted: see `Training.run`.
        """
        with self._report_failure():
            self.training.run_epoch()

    def save(self) -> None:
        """Write a checkpoint with the current state.

        Raises:
            DiskFull: no space is left for it.
        """
        with self._report_failure():
            self.training.save()

    def multiply_checkpoint_interval(self, factor: int) -> None:
        """Multiply the interval between checkpoints by `factor`."""
        self._checkpointer.multiply_interval(factor)

    def release(self) -> None:
        """Free the training's rows, state and best weights."""
        # A trial may have a hundred executions, which live until it ends.
        del self.training, self._checkpointer

    def finish(self) -> None:
        """Restore the best weights and report the result.

        Raises:
            NanObjective: the objective was never finite, so the trial cannot be ranked.
        """
        task, report, execution = self.context.task, self.context.report, self.plan.execution
        metric = task.objective.metric
        with self._report_failure():
            self.result = result = self.training.finish()
            self.state = "completed"
            if result.verdict is not None:
                self.state = "pruned"
            # An execution that has stopped early would not use more epochs: a promotion is pointless.
            elif self.context.trial.waits and not result.is_exhausted:
                self.state = "paused"
            score = self._score()
        best = f"{metric} {score:.4g} at epoch {result.best_epoch} of {result.epochs}"
        report.log(f"execution {execution}: {best}")
        has_pruner = task.spec.search is not None and task.spec.search.pruner is not None
        report.execution(
            execution,
            self.state,
            score=score,
            best_epoch=result.best_epoch,
            epochs=result.epochs,
            metrics=result.metrics,
            best=result.best if has_pruner else (),
        )
        self.context.progress.finish(execution, result.epochs)

    def summary(self) -> dict[str, Any]:
        """Return this execution's entry in its trial's result."""
        return {
            "execution": self.plan.execution,
            "state": self.state,
            "score": self.result.metrics[self.context.task.objective.metric],
            "best_epoch": self.result.best_epoch,
            "epochs": self.result.epochs,
            "metrics": self.result.metrics,
            "seconds": round(self.result.seconds, 3),
        }

    @contextmanager
    def _report_failure(self) -> Iterator[None]:
        try:
            yield
        except EngineError:
            self.context.report.execution(self.plan.execution, "failed")
            raise

    def _read_newest_checkpoint(self) -> Snapshot | None:
        """Return the snapshot to resume from; None starts at the first epoch."""
        newest = checkpoint.newest_intact(self.plan.checkpoints)
        if newest is None:
            name = f"Execution {self.plan.execution} of trial {self.context.trial.number}"
            report_restart(self.context.report, self.plan.earlier, self.plan.checkpoints, name=name)
            return None
        mapped = self.context.trial.spec.mesh is not None
        snapshot = checkpoint.read(Path(newest.folder), mapped=mapped)
        self.context.report.log(
            f"execution {self.plan.execution} resumes after epoch {snapshot.state['epoch']}"
        )
        return snapshot

    def _score(self) -> float:
        """Return the objective at the best epoch.

        Raises:
            NanObjective: it is NaN or infinite, and the execution was not pruned.
        """
        metric, result = self.context.task.objective.metric, self.result
        score = result.metrics[metric]
        # A pruned execution is not ranked, so its objective need not be finite.
        if result.verdict is None and not math.isfinite(score):
            raise NanObjective(
                f"{metric} was {score} in each of {result.epochs} epochs; try a smaller learning rate or "
                "another objective"
            )
        return score

    def _training_plan(self, prepared: Prepared, validation_rows: Array) -> TrainingPlan:
        objective, trial = self.context.task.objective, self.context.trial
        early, stop = trial.spec.fit.early_stopping, None
        watched = monitors.monitors_of_trial(objective, early)
        check_metric_name(watched.best.metric, prepared, "the objective")
        if early is not None:
            check_monitor(watched.stop, prepared)
            stop = BestTracker(*watched.stop, early.patience, early.min_delta)
        validation = prepared.evaluation_set(validation_rows)
        return TrainingPlan(
            model=prepared.model,
            batches=prepared.batches,
            loop=prepared.loop(validation, epochs=trial.epochs),
            widths=prepared.widths,
            validation=validation,
            epochs=trial.epochs,
            best=BestTracker(*watched.best),
            stop=stop,
            checkpointer=self._checkpointer,
            report=self.context.report,
            on_progress=self.context.progress.callback_for(self.plan.execution),
            execution=self.plan.execution,
            hook=prepared.hook(),
            pruning_check=self._pruning_check,
        )
