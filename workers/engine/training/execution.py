"""One execution of a trial: a training with a seed of its own, from its beginning to what is said of it."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from jobs.contracts.events import ExecutionState
from jobs.kinds.search.payload import ExecutionPlan, TrialPlan, TrialTask
from workers.engine.data.dataset import Dataset
from workers.engine.data.folds import rows_of
from workers.engine.data.table import Array
from workers.engine.errors import EngineError, NanObjective
from workers.engine.models.losses import direction
from workers.engine.report import Report
from workers.engine.training import checkpoint, pruning
from workers.engine.training.checkpoint import Snapshot
from workers.engine.training.checkpointing import Keeper
from workers.engine.training.early_stopping import Watch
from workers.engine.training.model_cache import Stock
from workers.engine.training.prepare import Prepared, check_figure
from workers.engine.training.progress import Progress
from workers.engine.training.training import Outcome, Plan, Training


class Surroundings(NamedTuple):
    """What the executions of a trial share."""

    task: TrialTask
    trial: TrialPlan
    dataset: Dataset
    stock: Stock
    report: Report
    progress: Progress
    others: pruning.Others


class Execution:
    """Made for one plan; `begin`, then `next_epoch` until it is over, then `end`, each said to the report.

    Attributes:
        training: what trains, once it has begun.
        plan: what is to be done.
        outcome, state: how it ended, once it has.
    """

    training: Training
    _keeper: Keeper
    outcome: Outcome
    state: ExecutionState

    def __init__(self, plan: ExecutionPlan, around: Surroundings) -> None:
        self.plan = plan
        self.around = around
        self.prune = pruning.judge_of(around.task, around.trial, plan, around.others)

    def begin(self) -> None:
        """Build its model, or take a kept one, and stand where it is to begin or go on.

        Raises:
            EngineError: the spec asks for what cannot be.
        """
        task, trial, report = self.around.task, self.around.trial, self.around.report
        report.execution(self.plan.execution, "running")
        report.log(f"execution {self.plan.execution}{self._fold()} begins: {trial.values}")
        rows = rows_of(self.plan.turn(), self.around.dataset, trial.spec)
        name = f"trial_{trial.number}_{self.plan.execution}"
        prepared = self.around.stock.prepare(
            trial.spec, self.around.dataset, rows.train, name=name, seed=self.plan.seed
        )
        parent = Path(task.checkpoints or task.folder) / f"trial-{trial.number}"
        self._keeper = Keeper(
            parent / f"execution-{self.plan.execution}",
            report,
            fence=task.fence,
            execution=self.plan.execution,
        )
        self.training = Training(self._asked(prepared, rows.validation))
        snapshot = self._newest()
        with self._telling_of_failure():
            self.training.begin(snapshot)

    @property
    def over(self) -> bool:
        """Say whether no epoch is to follow."""
        return self.training.over

    def next_epoch(self) -> None:
        """Train an epoch, or what is left of one.

        Raises:
            EngineError, Yielding: see `Training.run`.
        """
        with self._telling_of_failure():
            self.training.next_epoch()

    def save(self) -> None:
        """Write a checkpoint of where it stands.

        Raises:
            DiskFull: there is no room for it.
        """
        with self._telling_of_failure():
            self.training.save()

    def keep_less_often(self, times: int) -> None:
        """Write checkpoints so many times more seldom: as many others do at the same time."""
        self._keeper.keep_less_often(times)

    def let_go(self) -> None:
        """Give back its rows, state and best weights: a trial may have a hundred executions."""
        del self.training, self._keeper

    def end(self) -> None:
        """Say how it went.

        Raises:
            NanObjective: the objective was never finite, so the trial cannot be ranked.
        """
        task, report, execution = self.around.task, self.around.report, self.plan.execution
        metric = task.objective.metric
        with self._telling_of_failure():
            self.outcome = outcome = self.training.end()
            self.state = self._state()
            score = self._score()
        best = f"{metric} {score:.4g} at epoch {outcome.best_epoch} of {outcome.epochs}"
        report.log(f"execution {execution}: {best}")
        report.execution(
            execution,
            self.state,
            score=score,
            best_epoch=outcome.best_epoch,
            epochs=outcome.epochs,
            metrics=outcome.figures,
            best=outcome.best if task.spec.search is not None and task.spec.search.pruner is not None else (),
        )
        self.around.progress.end(execution, outcome.epochs)

    def said(self) -> dict[str, Any]:
        """Return what the result of its trial holds of it."""
        return {
            "execution": self.plan.execution,
            "state": self.state,
            "score": self.outcome.figures[self.around.task.objective.metric],
            "best_epoch": self.outcome.best_epoch,
            "epochs": self.outcome.epochs,
            "metrics": self.outcome.figures,
            "seconds": round(self.outcome.seconds, 3),
        }

    @contextmanager
    def _telling_of_failure(self) -> Iterator[None]:
        try:
            yield
        except EngineError:
            self.around.report.execution(self.plan.execution, "failed")
            raise

    def _fold(self) -> str:
        return "" if self.plan.fold is None else f" (fold {self.plan.fold})"

    def _state(self) -> ExecutionState:
        if self.outcome.verdict is not None:
            return "pruned"
        return "paused" if self.around.trial.waits and not self.outcome.exhausted else "completed"

    def _newest(self) -> Snapshot | None:
        """Return what to go on from; None: begin at the first epoch."""
        found = checkpoint.newest_whole(self.plan.checkpoints)
        if found is None:
            return None
        snapshot = checkpoint.read(Path(found.folder))
        told = f"execution {self.plan.execution} goes on after epoch {snapshot.state['epoch']}"
        self.around.report.log(told)
        return snapshot

    def _score(self) -> float:
        """Return the objective at the best epoch, which need not be finite where a pruner ended it."""
        metric, outcome = self.around.task.objective.metric, self.outcome
        score = outcome.figures[metric]
        if outcome.verdict is None and not math.isfinite(score):
            raise NanObjective(
                f"{metric} was {score} at each of {outcome.epochs} epochs; try a smaller learning rate, or "
                "another objective"
            )
        return score

    def _asked(self, prepared: Prepared, held: Array) -> Plan:
        objective, trial = self.around.task.objective, self.around.trial
        early, stop = trial.spec.fit.early_stopping, None
        if early is not None:
            monitor = check_figure(early.monitor, prepared, "early_stopping.monitor")
            stop = Watch(monitor, direction(monitor), early.patience, early.min_delta)
        metric = check_figure(objective.metric, prepared, "the objective")
        measured = prepared.held(held)
        return Plan(
            model=prepared.model,
            batches=prepared.batches,
            loop=prepared.loop(measured, epochs=trial.epochs),
            widths=prepared.widths,
            validation=measured,
            epochs=trial.epochs,
            best=Watch(metric, objective.direction),
            stop=stop,
            keeper=self._keeper,
            report=self.around.report,
            pace=self.around.progress.of(self.plan.execution),
            execution=self.plan.execution,
            hook=prepared.hook(),
            prune=self.prune,
        )
