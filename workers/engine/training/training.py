"""Trains one model epoch by epoch, with exact validation, early stopping, pruning and checkpoints.

The training owns the order of the data and all state, so it can be paused and resumed between any two
batches. A loop runs the steps of an epoch; `loops` has two.
"""

import math
import time
from collections.abc import Callable
from typing import Any

from jobs.contracts.pruning import Verdict
from workers.engine.arrays import Array
from workers.engine.compiled.phases import announced_to
from workers.engine.errors import NanLoss
from workers.engine.killpoint import kill_point
from workers.engine.models.losses import compute_metrics
from workers.engine.models.optimizer import ensure_built
from workers.engine.models.precision import has_changing_metrics, scaling_metrics
from workers.engine.models.variables import assign, values
from workers.engine.report import TaskInterrupted
from workers.engine.training import checkpoint
from workers.engine.training.checkpoint import Snapshot
from workers.engine.training.early_stopping import BestTracker
from workers.engine.training.hooks import unwrap_optimizer
from workers.engine.training.loops import FitLoop, Loop
from workers.engine.training.plan import TrainingPlan, TrainingResult

REQUEST_INTERVAL = 2.0
"""Seconds between checks for requests within an epoch."""


class Training:
    """Runs a `TrainingPlan` from the start or from a snapshot."""

    def __init__(self, plan: TrainingPlan) -> None:
        self._plan = plan
        self._model = plan.model
        self._epoch = 0  # epochs completed
        self._batch = 0  # batches completed in the epoch after them
        self._history: list[dict[str, float]] = []
        self._improvements: list[tuple[int, float]] = []  # (epoch, value) of each new best epoch
        self._best_weights: list[Array] = []
        self._epoch_metrics: list[Array] = []  # the metrics' variables after `_batch` batches of an epoch
        self._verdict: Verdict | None = None
        self._seconds_before = 0.0  # duration of the runs that were resumed from
        self._started = time.monotonic()
        self._last_check = self._started
        self._validation_seconds = math.inf  # until it has been measured, it may take long
        ensure_built(self._model)
        self._loop: Loop = plan.loop or FitLoop(plan.model, plan.batches)
        self._optimizer_changes = has_changing_metrics(self._model.optimizer)

    def run(self, resume: Snapshot | None = None) -> TrainingResult:
        """Train to the end and restore the best epoch's weights.

        Raises:
            NanLoss: the loss is NaN or infinite.
            TaskInterrupted: a pause or stop was requested; a checkpoint has been written.
        """
        self.start(resume)
        while not self.is_finished:
            self.run_epoch()
        return self.finish()

    def start(self, resume: Snapshot | None = None) -> None:
        """Prepare to train from the first epoch, or from where the snapshot was taken."""
        if resume is not None:
            self._restore(resume)
            self._report_resumption(resume)
            # No epoch follows that would report its progress.
            if self.is_finished:
                self._plan.on_progress(self._epoch)

    @property
    def is_finished(self) -> bool:
        """Whether no further epoch follows."""
        return self._epoch >= self._plan.epochs or self._is_exhausted() or self._verdict is not None

    @property
    def position(self) -> tuple[int, int]:
        """Number of epochs completed, and of batches completed in the next one."""
        return self._epoch, self._batch

    @property
    def loop(self) -> Loop:
        """The loop that runs the epochs."""
        return self._loop

    @property
    def acts_between_epochs(self) -> bool:
        """Whether a hook changes the model between epochs, or a pruner may end the training."""
        return self._plan.hook.is_active or self._plan.pruning_check is not None

    def run_epoch(self) -> None:
        """Run an epoch, or the rest of an interrupted one.

        Raises:
            NanLoss, TaskInterrupted: see `run`.
        """
        plan = self._plan
        self._train_and_validate(self._epoch + 1)
        if plan.pruning_check is not None and not self.is_finished:
            self._verdict = plan.pruning_check(self._epoch, self._improvements)
        self._serve_requests(final=self.is_finished, due=plan.checkpointer.is_due())

    def finish(self) -> TrainingResult:
        """Restore the best epoch's weights and return the result."""
        self._loop.sync()
        if self._best_weights:
            self._assign(self._model.variables, self._best_weights)
            self._loop.load()
        else:
            # The model must have the weights that were measured, which may be averages.
            self._run_hook(self._plan.hook.before_validation)
        return self._result()

    def _recompute_improvements(self) -> list[tuple[int, float]]:
        """Return the epochs of the history that improved the tracked metric."""
        if self._plan.best is None:
            return []
        tracker = BestTracker(self._plan.best.metric, self._plan.best.direction)
        values = ((epoch, metrics[tracker.metric]) for epoch, metrics in enumerate(self._history, start=1))
        return [(epoch, value) for epoch, value in values if tracker.update(epoch, value)]

    def _is_exhausted(self) -> bool:
        return self._plan.stop is not None and self._plan.stop.is_exhausted

    def _train_and_validate(self, epoch: int) -> None:
        with announced_to(self._plan.report.phase):
            metrics = self._loop.epoch(epoch, self._batch, self._epoch_metrics, self.after_batch)
        if not math.isfinite(metrics["loss"]):
            raise NanLoss(
                f"the loss became {metrics['loss']} in epoch {epoch}; try a smaller learning rate or clipnorm"
            )
        # Validation may be of other weights than the training continues with, for example of averages.
        self._run_hook(self._plan.hook.before_validation)
        metrics.update(self._validate())
        metrics.update(self._optimizer_metrics(epoch))
        self._finish_epoch(epoch, metrics)

    def _run_hook(self, act: Callable[[Any], None]) -> None:
        """Call a method of the hook with the model's variables up to date, and read its changes."""
        # Without a hook there is no need to copy the state to the model and back.
        if self._plan.hook.is_active:
            self._loop.sync()
            act(self._model)
            self._loop.load()

    def _validate(self) -> dict[str, float]:
        data = self._plan.validation
        if data is None:
            return {}
        began = time.monotonic()
        if self._validation_seconds > REQUEST_INTERVAL and len(data.x) > data.batch_size:
            self._plan.report.phase("validating")
        predictions = self._loop.predict(data.x, data.batch_size)
        self._validation_seconds = time.monotonic() - began
        metrics = compute_metrics(data.loss, data.metrics, data.y, predictions, data.scale)
        return {f"val_{name}": value for name, value in metrics.items()}

    def _optimizer_metrics(self, epoch: int) -> dict[str, float]:
        # `sync` copies the whole state, so it is called only if steps change the values read below.
        if self._optimizer_changes:
            self._loop.sync()
        optimizer = self._model.optimizer
        steps = epoch * self._plan.batches.steps
        return {
            "lr": float(unwrap_optimizer(optimizer).learning_rate),
            **scaling_metrics(optimizer, steps),
        }

    def _finish_epoch(self, epoch: int, metrics: dict[str, float]) -> None:
        plan = self._plan
        self._epoch, self._batch, self._epoch_metrics = epoch, 0, []
        self._history.append(metrics)
        if plan.best is not None and plan.best.update(epoch, metrics[plan.best.metric]):
            self._improvements.append((epoch, metrics[plan.best.metric]))
            self._best_weights = plan.widths.narrow(self._model.variables, self._loop.weights())

        def act(model: Any) -> None:
            plan.hook.after_validation(model)
            plan.hook.after_epoch(epoch, metrics, model)

        self._run_hook(act)
        if plan.stop is not None:
            plan.stop.update(epoch, metrics[plan.stop.metric])
        labelled = {plan.label + name: value for name, value in metrics.items()}
        # Before the checkpoint of this epoch: a training resumed from it never repeats this point.
        plan.report.metric(epoch, labelled, execution=plan.execution)
        kill_point("epoch")
        plan.on_progress(epoch)

    def after_batch(self, batch: int) -> None:
        """Check for requests, at most every `REQUEST_INTERVAL` seconds, in the middle of an epoch.

        Args:
            batch: number of the epoch's batches that are done.
        """
        now = time.monotonic()
        # After the last batch, requests are served once the epoch has been validated.
        if batch >= self._plan.batches.steps or now - self._last_check < REQUEST_INTERVAL:
            return
        self._last_check = now
        self._batch = batch
        self._serve_requests(final=False, due=self._plan.checkpointer.is_due(within_epoch=True))
        self._plan.on_progress(self._epoch + batch / self._plan.batches.steps)

    def _serve_requests(self, *, final: bool, due: bool) -> None:
        """Write a checkpoint if one is due or requested; interrupt the training if requested."""
        request = self._plan.report.request()
        if final or due or request is not None:
            self.save()
        # A training that has ended returns its result instead: no work is left to interrupt.
        if request in ("pause", "stop") and not final:
            raise TaskInterrupted(request)

    def save(self) -> None:
        """Write a checkpoint of the current state."""
        self._loop.sync()
        # Each epoch begins with reset metrics, so they are stored only within an epoch.
        if self._batch:
            self._epoch_metrics = values(self._model.metrics_variables)
        step = self._plan.first_step + self._epoch * self._plan.batches.steps + self._batch
        self._plan.checkpointer.write(self._snapshot(), step=step, epoch=self._epoch)

    def _snapshot(self) -> Snapshot:
        # Names of groups and keys are part of the checkpoint format. `way` is the step mode; `best` is the
        # best epoch's weights among the arrays, and the tracker's state below.
        plan = self._plan
        return Snapshot(
            arrays={
                checkpoint.WEIGHTS: self._values(self._model.variables),
                "optimizer": self._values(self._model.optimizer.variables),
                "metrics": self._epoch_metrics,
                "best": self._best_weights,
                **plan.extra_arrays,
            },
            state={
                "epoch": self._epoch,
                "batch": self._batch,
                "best": None if plan.best is None else plan.best.state(),
                "stop": None if plan.stop is None else plan.stop.state(),
                "hook": plan.hook.state(),
                "seconds": self._seconds(),
                "seed": plan.batches.seed,
                "way": self._loop.step_mode,
                "verdict": None if self._verdict is None else self._verdict.model_dump(),
                "extra": plan.extra,
            },
            history=self._history,
            lasting=frozenset({"best", *plan.extra_arrays}),
        )

    def _restore(self, snapshot: Snapshot) -> None:
        state, plan = snapshot.state, self._plan
        self._assign(self._model.variables, snapshot.arrays[checkpoint.WEIGHTS])
        self._assign(self._model.optimizer.variables, snapshot.arrays["optimizer"])
        self._loop.load()
        # Modes differ by rounding: in another one the training would not continue as it began.
        self._loop.keep_step_mode(state.get("way", ""))
        self._epoch_metrics = snapshot.arrays["metrics"]
        self._best_weights = snapshot.arrays["best"]
        self._epoch, self._batch = state["epoch"], state["batch"]
        self._history = snapshot.history
        # Checkpoints hold only the history.
        self._improvements = self._recompute_improvements()
        self._seconds_before = state["seconds"]
        if plan.best is not None and state["best"] is not None:
            plan.best.restore(state["best"])
        if plan.stop is not None and state["stop"] is not None:
            plan.stop.restore(state["stop"])
        # A pruned training stays pruned, whatever others have reached since.
        if state.get("verdict"):
            self._verdict = Verdict.model_validate(state["verdict"])
        if state.get("hook"):
            plan.hook.restore(state["hook"])

    def _report_resumption(self, snapshot: Snapshot) -> None:
        """Report the digest of the weights that the loop continues with, beside that of the checkpoint."""
        self._loop.sync()
        self._plan.report.resumed(
            epoch=self._epoch,
            saved=snapshot.weights,
            loaded=checkpoint.weights_digest(self._values(self._model.variables)),
            execution=self._plan.execution,
        )

    def _values(self, variables: Any) -> list[Array]:
        """Return the values without padding, so that a training can be resumed at any width."""
        return self._plan.widths.narrow(variables, values(variables))

    def _assign(self, variables: Any, arrays: list[Array]) -> None:
        assign(variables, self._plan.widths.widen(variables, arrays))

    def _seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._started

    def _result(self) -> TrainingResult:
        best = self._plan.best
        # Without a tracker, or without a finite value, the last epoch counts as the best.
        best_epoch = best.best_epoch if best is not None and best.best_epoch else self._epoch
        return TrainingResult(
            epochs=self._epoch,
            best_epoch=best_epoch,
            steps=self._epoch * self._plan.batches.steps,
            metrics=self._history[best_epoch - 1],
            history=self._history,
            seconds=self._seconds(),
            is_exhausted=self._is_exhausted(),
            best=tuple(self._improvements),
            verdict=self._verdict,
        )
