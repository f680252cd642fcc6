"""Trains one model epoch by epoch, with exact validation, early stopping, pruning and checkpoints.

The training owns the data order and all state, so it can be paused and resumed between any two
batches. A loop runs an epoch's steps; `loops` has two.
"""

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from workers.engine.arrays import Array
from workers.engine.errors import BadCheckpoint, NanLoss
from workers.engine.killpoint import kill_point
from workers.engine.models.devices.shards import SpreadArray
from workers.engine.models.optimizer import ensure_built, unwrap_optimizer
from workers.engine.models.precision import has_changing_metrics, instability_of_scale, scaling_metrics
from workers.engine.models.variables import are_spread, have_values, values
from workers.engine.phases import announced_to
from workers.engine.report import TaskInterrupted
from workers.engine.training import checkpoint
from workers.engine.training.checkpoint import Snapshot
from workers.engine.training.loops import FitLoop, Loop
from workers.engine.training.mesh_report import SpeedMeter
from workers.engine.training.plan import TrainingPlan, TrainingResult
from workers.engine.training.training_state import (
    WINDOWS,
    TrainingState,
    assign_narrow,
    narrow_values,
    restore_snapshot,
    take_snapshot,
)

DATA_WAIT = "system/{}data_wait_percent"
"""Metric of an epoch: the share of its time in which the steps waited for rows, in percent."""
REQUEST_INTERVAL = 2.0
"""Seconds between checks for requests within an epoch."""


class Training:
    """Runs a `TrainingPlan` from the start or from a snapshot.

    A subclass for models that are not trained by gradient replaces the methods that read or write variables.
    """

    def __init__(self, plan: TrainingPlan) -> None:
        self._plan = plan
        self._model = plan.model
        self._state = TrainingState()
        self._last_check = self._state.started
        self._validation_seconds = math.inf  # until it has been measured, it may take long
        self._speed = None if plan.mesh is None else SpeedMeter(plan.batches.size, plan.label)
        self._loop: Loop = self._set_up()

    def _set_up(self) -> Loop:
        """Prepare the model; return the loop that trains it."""
        ensure_built(self._model)
        self._optimizer_changes = has_changing_metrics(self._model.optimizer)
        return self._plan.loop or FitLoop(self._model, self._plan.batches)

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
            self._state = self._restore(resume)
            # Modes differ by rounding: in another one the training would not continue as it began. Stored
            # checkpoints call the step mode "way".
            self._loop.keep_step_mode(resume.state.get("way", ""))
            self._keep_order(resume.state.get(WINDOWS))
            self._report_resumption(resume)
            # No epoch follows that would report its progress.
            if self.is_finished:
                self._plan.on_progress(self._state.epoch)

    def _keep_order(self, parts: list[int] | None) -> None:
        """Keep the checkpoint's row order until an epoch that has begun ends.

        Args:
            parts: where the file's parts begin, in whose order the epoch began; None for any order.
        """
        batches, epoch = self._plan.batches, self._state.epoch + 1
        if (parts is None) == (batches.parts is None):
            return
        # In another order the batches that follow would use some rows again, and others never.
        if self._state.batch:
            batches.keep_parts(epoch, None if parts is None else np.asarray(parts))
        self._plan.report.log(
            "this run has more or less memory than the one before, so its order of rows differs from epoch "
            f"{epoch + bool(self._state.batch)} on"
        )

    @property
    def is_finished(self) -> bool:
        """Whether no further epoch follows."""
        state = self._state
        return state.epoch >= self._plan.epochs or self._is_exhausted() or state.verdict is not None

    @property
    def position(self) -> tuple[int, int]:
        """How many epochs are completed, and how many batches in the next one."""
        return self._state.epoch, self._state.batch

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
        with ExitStack() as on_error:
            # The rows of the next epoch are being read already.
            on_error.callback(self._loop.close)
            self._run_epoch()
            on_error.pop_all()

    def _run_epoch(self) -> None:
        plan = self._plan
        self._train_and_validate(self._state.epoch + 1)
        if plan.pruning_check is not None and not self.is_finished:
            self._state.verdict = plan.pruning_check(self._state.epoch, self._state.improvements)
        self._serve_requests(final=self.is_finished, due=plan.checkpointer.is_due())

    def finish(self) -> TrainingResult:
        """Restore the best epoch's weights and return the result."""
        self._loop.close()
        self._restore_best()
        self._plan.checkpointer.discard()
        return self._result()

    def _restore_best(self) -> None:
        self._loop.sync()
        if self._state.best_weights:
            assign_narrow(self._plan, self._model.variables, self._state.best_weights)
            self._loop.load()
        else:
            # The model must have the weights that were measured, which may be averages.
            self._run_hook(self._plan.hook.before_validation)

    def _is_exhausted(self) -> bool:
        return self._plan.stop is not None and self._plan.stop.is_exhausted

    def _train_and_validate(self, epoch: int) -> None:
        if self._speed is not None:
            self._speed.begin(self._state.batch)
        with announced_to(self._plan.report.phase):
            metrics = self._loop.epoch(epoch, self._state.batch, self._state.epoch_metrics, self.after_batch)
        speed = {} if self._speed is None else self._speed.end()
        if not math.isfinite(metrics["loss"]):
            raise NanLoss(
                f"the loss became {metrics['loss']} in epoch {epoch}; try a smaller learning rate or clipnorm"
            )
        # Validation may be of other weights than the training continues with, for example of averages.
        self._run_hook(self._plan.hook.before_validation)
        metrics.update(self._validate())
        metrics.update(self._optimizer_metrics(epoch))
        self._finish_epoch(epoch, metrics, speed)

    def _run_hook(self, act: Callable[[Any], None]) -> None:
        """Call a hook method with the model's variables up to date, and read its changes."""
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
        with announced_to(self._plan.report.phase):
            metrics = data.measured_by(self._loop)
        self._validation_seconds = time.monotonic() - began
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

    def _finish_epoch(self, epoch: int, metrics: dict[str, float], speed: dict[str, float]) -> None:
        plan, state = self._plan, self._state
        state.epoch, state.batch, state.epoch_metrics = epoch, 0, []
        state.history.append(metrics)
        if plan.best is not None and plan.best.update(epoch, metrics[plan.best.metric]):
            state.improvements.append((epoch, metrics[plan.best.metric]))
            state.best_weights = self._copy_weights()

        def act(model: Any) -> None:
            plan.hook.after_validation(model)
            plan.hook.after_epoch(epoch, metrics, model)

        self._run_hook(act)
        if plan.stop is not None:
            plan.stop.update(epoch, metrics[plan.stop.metric])
        # Speed and waits are not part of the history, which a resumed training repeats bit for bit.
        labelled = {**{plan.label + name: value for name, value in metrics.items()}, **speed}
        if (wait := self._loop.data_wait) is not None:
            labelled[DATA_WAIT.format(plan.label)] = round(100 * wait, 3)
        # Before the checkpoint of this epoch: a training resumed from it never repeats this point.
        plan.report.metric(epoch, labelled, execution=plan.execution)
        if warning := instability_of_scale(state.history, plan.batches.steps):
            plan.report.warning("loss_scale_unstable", warning)
        kill_point("epoch")
        plan.on_progress(epoch)

    def _copy_weights(self) -> list[Array]:
        if are_spread(self._model.variables):
            # Devices and host may lack the memory for another model, and the next checkpoint needs the file.
            return self._plan.checkpointer.keep(checkpoint.BEST, self._current_weights())
        return self._plan.widths.narrow(self._model.variables, self._loop.weights())

    def after_batch(self, batch: int) -> None:
        """Check for requests, at most every `REQUEST_INTERVAL` seconds, in the middle of an epoch.

        Args:
            batch: how many batches are done in the epoch.
        """
        now = time.monotonic()
        if self._speed is not None:
            self._speed.add(batch)
        # After the last batch, requests are served once the epoch has been validated.
        if batch >= self._plan.batches.steps or now - self._last_check < REQUEST_INTERVAL:
            return
        self._last_check = now
        self._state.batch = batch
        self._serve_requests(final=False, due=self._plan.checkpointer.is_due(within_epoch=True))
        self._plan.on_progress(self._state.epoch + batch / self._plan.batches.steps)

    def _serve_requests(self, *, final: bool, due: bool) -> None:
        """Write a checkpoint if one is due or requested; interrupt the training if requested."""
        request = self._plan.report.request()
        if final or due or request is not None:
            self.save()
        # A training that has ended returns its result instead: no work is left to interrupt.
        if request in ("pause", "stop") and not final:
            self._plan.checkpointer.discard()
            raise TaskInterrupted(request)

    def save(self) -> None:
        """Write a checkpoint with the current state."""
        state = self._state
        self._loop.sync()
        # Each epoch begins with reset metrics, so they are stored only within an epoch.
        if state.batch:
            state.epoch_metrics = values(self._model.metrics_variables)
        step = self._plan.first_step + state.epoch * self._plan.batches.steps + state.batch
        self._plan.checkpointer.write(self._take_snapshot(), step=step, epoch=state.epoch)

    def _take_snapshot(self) -> Snapshot:
        return take_snapshot(self._plan, self._state, self._loop.step_mode)

    def _restore(self, snapshot: Snapshot) -> TrainingState:
        """Write a snapshot to the model and the plan; return the training's state."""
        state = restore_snapshot(self._plan, snapshot, started=self._state.started)
        self._loop.load()
        return state

    def _report_resumption(self, snapshot: Snapshot) -> None:
        """Report the digest of the weights that the loop continues with, beside the checkpoint's."""
        self._plan.report.resumed(
            epoch=self._state.epoch,
            saved=snapshot.weights,
            loaded=self._digest_of_loaded(snapshot),
            execution=self._plan.execution,
        )

    def _digest_of_loaded(self, snapshot: Snapshot) -> str:
        current = self._current_weights()
        if not any(isinstance(array, SpreadArray) for array in current):
            return checkpoint.weights_digest(current)
        # Computing the digest would take another file of this size.
        if not have_values(current, snapshot.arrays[checkpoint.WEIGHTS]):
            raise BadCheckpoint(
                "the devices hold other weights than the checkpoint from which they were read"
            )
        return snapshot.weights

    def _current_weights(self) -> list[Any]:
        """Return the weights as a checkpoint has them."""
        self._loop.sync()
        return narrow_values(self._plan, self._model.variables)

    def _best_epoch(self) -> int:
        best = self._plan.best
        # Without a tracker, or without a finite value, the last epoch counts as the best.
        return best.best_epoch if best is not None and best.best_epoch else self._state.epoch

    def _result(self) -> TrainingResult:
        best_epoch, state = self._best_epoch(), self._state
        return TrainingResult(
            epochs=state.epoch,
            best_epoch=best_epoch,
            steps=state.epoch * self._plan.batches.steps,
            metrics=state.history[best_epoch - 1],
            history=state.history,
            seconds=state.seconds,
            is_exhausted=self._is_exhausted(),
            best=tuple(state.improvements),
            verdict=state.verdict,
        )
