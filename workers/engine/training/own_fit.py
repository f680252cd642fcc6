"""Trains a model with a HyperModel class's `fit`, or with one call to Keras' `fit`.

The whole training is one call, as in KerasTuner. A callback reports each epoch, keeps the best weights and
serves requests. The call cannot be continued, so a training that was interrupted begins again.
"""

import math
import time
from collections.abc import Mapping
from typing import Any

import keras

from jobs.messages.task import EarlierTraining
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.search import Objective
from workers.engine.arrays import Array
from workers.engine.data.batches import Batches
from workers.engine.data.rows import Rows
from workers.engine.errors import BadLayout, CodeFitFailure, NanLoss
from workers.engine.evaluation.metric_results import numbers_of
from workers.engine.models.code_models.code_build import CodeBuild, finished_rows
from workers.engine.models.devices import live_shardings
from workers.engine.models.mesh import current as current_mesh
from workers.engine.models.own_code.failures import calling
from workers.engine.models.own_code.in_use import passes_batch_size
from workers.engine.models.variables import are_spread, held
from workers.engine.phases import announced_to
from workers.engine.report import TaskInterrupted
from workers.engine.training.checkpoint import BEST, Snapshot
from workers.engine.training.declarations import report_declared
from workers.engine.training.fit_arguments import accepted
from workers.engine.training.fit_results import (
    LOSS,
    NOT_TRAINED,
    UNNAMED,
    Untouched,
    epochs_of,
    names_in_histories,
    returned_values,
    training_names,
    with_objectives,
)
from workers.engine.training.loops import FitLoop, Loop, predict_in_batches
from workers.engine.training.mesh_report import SpeedMeter
from workers.engine.training.plan import TrainingPlan, TrainingResult
from workers.engine.training.restart import report_restart
from workers.engine.training.training import REQUEST_INTERVAL, Training
from workers.engine.training.training_state import snapshot_of

FINISHED = "own_fit_finished"
"""Key of the state of a checkpoint: the epochs for which the call was made, once it has returned."""
KEEPS_LAST = "own_fit_keeps_last"
"""Key of that state: the best epoch's weights are not known, so the model has the last ones."""


class CodeFitLoop(FitLoop):
    """Predicts with a model whose rows may have to pass the code's function `preprocess` before."""

    def __init__(self, build: CodeBuild, batches: Batches) -> None:
        super().__init__(build.model, batches)
        self._build = build

    def predict(self, x: Rows, batch_size: int) -> Array:
        """See `Loop.predict`."""
        return predict_in_batches(
            lambda rows: self._model.predict_on_batch(self._build.prepared(rows)), x, batch_size, "validating"
        )


class OwnFitTraining(Training):
    """Runs a training as one call.

    Args:
        plan: the training.
        build: the model.
        spec: the batch size and the row order for a class without its own `fit`.
        validation: rows, targets and perhaps weights that the call gets, also in a training without
            validation.
    """

    def __init__(
        self, plan: TrainingPlan, build: CodeBuild, spec: ExperimentSpec, *, validation: tuple[Array, ...]
    ) -> None:
        self._build = build
        self._spec = spec
        self._validation_rows = validation
        self._is_over = False
        self._keeps_last = False
        self._returned: dict[str, float] = {}
        best = [] if plan.best is None else [plan.best.metric]
        searched = () if spec.search is None or plan.best is None else spec.search.objectives or ()
        self._objectives = tuple(dict.fromkeys([*best, *(objective.metric for objective in searched)]))
        super().__init__(plan)
        if build.own_fit and plan.mesh is not None:
            self._speed = SpeedMeter(None, plan.label)

    def _set_up(self) -> Loop:
        self._optimizer_changes = False
        return CodeFitLoop(self._build, self._plan.batches)

    def start(self, resume: Snapshot | None = None) -> None:
        """See `Training.start`. A call that has not returned begins again."""
        if resume is not None and resume.state["extra"].get(FINISHED) == self._plan.epochs:
            self._returned = resume.state["extra"]["returned"]
            self._keeps_last = resume.state["extra"].get(KEEPS_LAST, False)
            self._is_over = True
            self._plan.extra = {**resume.state["extra"]}
            super().start(resume)
        elif resume is not None:
            earlier = EarlierTraining(epoch=resume.state["epoch"])
            reason = "fit is one call, which cannot be continued"
            report_restart(self._plan.report, earlier, (), reason=reason)

    @property
    def model(self) -> Any:
        """The model that was built. The code may train another one."""
        return self._plan.model

    @property
    def is_finished(self) -> bool:
        """See `Training.is_finished`."""
        return self._is_over

    def _run_epoch(self) -> None:
        """Run all epochs."""
        before = Untouched(self._plan.model)
        try:
            with announced_to(self._plan.report.phase), calling(CodeFitFailure, "fit"):
                answer = self._call()
        finally:
            # Also if it failed: with other values it may not.
            if self._plan.execution is not None:
                report_declared(self._plan.report, self._spec, self._build.hyperparameters)
        # The model of a trial is not kept.
        if self._plan.execution is None and before.is_still_so():
            self._plan.report.warning("not_trained", NOT_TRAINED)
        if self._spec.mesh is not None and current_mesh() is None:
            # The callbacks may not have been passed on to the training that shows it.
            self.check_mesh(self._plan.model)
        self._loop.sync()
        self._returned = self._checked(answer)
        self._is_over = True
        plan = self._plan
        self._state.epoch = max(self._state.epoch, 1)
        if not self._state.history and self._returned:
            plan.report.metric(self._state.epoch, self._labelled(self._returned), execution=plan.execution)
        plan.extra = {**plan.extra, FINISHED: plan.epochs, "returned": self._returned}
        if self._keeps_last:
            plan.extra[KEEPS_LAST] = True
        self._serve_requests(final=True, due=True)
        plan.on_progress(self._state.epoch)

    def _call(self) -> Any:
        plan, build = self._plan, self._build
        x, *targets = self._validation_rows
        keras.config.disable_interactive_logging()
        fit = self._spec.fit
        arguments: dict[str, Any] = {
            "batch_size": fit.batch_size,
            "epochs": plan.epochs,
            "callbacks": [_EpochReporter(self)],
        }
        if build.evaluates_rows:
            arguments["validation_data"] = (build.prepared(x), build.targets(targets[0]), *targets[1:])
        if plan.batches.is_weighted:
            arguments["sample_weight"] = plan.batches.weights
        rows = build.prepared(plan.batches.x[:]), plan.batches.y
        if not build.own_fit:
            return plan.model.fit(*rows, shuffle=fit.shuffle, **arguments)
        if not passes_batch_size():
            plan.report.log("an earlier release has submitted this job: its fit gets no batch_size")
            del arguments["batch_size"]
        if not fit.shuffle:
            # Otherwise it is left to the class, as KerasTuner does.
            arguments["shuffle"] = False
        given = accepted(build.hypermodel, arguments)
        return build.hypermodel.fit(build.hyperparameters, plan.model, *rows, **given)

    def _checked(self, answer: Any) -> dict[str, float]:
        """Return the values that the call returned, by name; none for a `History`.

        Raises:
            CodeFitFailure: it returned something else, or an objective is unknown.
        """
        objectives, plan = self._objectives, self._plan
        on_training_rows = training_names(plan.model) | names_in_histories(answer)
        if isinstance(answer, keras.callbacks.History) and not self._state.history:
            self._record_afterwards(answer, on_training_rows)
        main = (
            Objective(metric=UNNAMED)
            if plan.best is None
            else Objective(metric=plan.best.metric, direction=plan.best.direction)
        )
        returned = with_objectives(returned_values(answer, main), objectives, on_training_rows)
        if plan.validation is None:
            returned = _without_validation(returned)
        measured = {*returned, *(name for epoch in self._state.history for name in epoch)}
        if plan.best is not None and (missing := [name for name in objectives if name not in measured]):
            listed = ", ".join(sorted(measured)) or "nothing"
            raise CodeFitFailure(
                f"fit measured {listed}, but the objective is {missing[0]}; pass validation_data on to "
                f"model.fit, or report {missing[0]} by the callbacks or in the result"
            )
        return returned

    def _record_afterwards(self, history: Any, on_training_rows: frozenset[str]) -> None:
        """Record the epochs of a call that did not pass the callbacks on. Only its last weights are known."""
        for values_of_epoch in epochs_of(history):
            self.record(values_of_epoch, on_training_rows)
        state, plan = self._state, self._plan
        state.best_weights = []
        # A trial is measured by its best epoch, as in KerasTuner. Its weights are not used.
        if plan.best is None or plan.execution is not None or self._best_epoch() == state.epoch:
            return
        self._keeps_last = True
        plan.report.warning(
            "callbacks_not_passed_on",
            f"fit does not pass on its callbacks, so the weights of the best epoch by {plan.best.metric}, "
            f"epoch {self._best_epoch()}, are not known: the model has the last weights, and its values are "
            f"those of epoch {state.epoch}. To keep the best epoch, pass callbacks on to model.fit.",
        )

    def record(self, logs: Mapping[str, Any], on_training_rows: frozenset[str]) -> bool:
        """Record an epoch's measures; return whether the training should end now.

        Args:
            logs: the measures by name.
            on_training_rows: names of values of the training rows; see `training_names`.

        Raises:
            NanLoss: the loss is NaN or infinite.
            TaskInterrupted: a pause or stop was requested.
        """
        plan, state = self._plan, self._state
        objective = plan.best.metric if plan.best is not None else ""
        values_of_epoch = {**numbers_of(logs), **self._validate()}
        metrics = with_objectives(values_of_epoch, self._objectives, on_training_rows)
        state.epoch += 1
        if not math.isfinite(metrics.get(LOSS, 0.0)):
            raise NanLoss(
                f"the loss became {metrics[LOSS]} in epoch {state.epoch}; try a smaller learning rate"
            )
        if plan.validation is None:
            # The rows are part of the training.
            metrics = _without_validation(metrics)
        state.history.append(metrics)
        if (
            plan.best is not None
            and objective in metrics
            and plan.best.update(state.epoch, metrics[objective])
        ):
            state.improvements.append((state.epoch, metrics[objective]))
            self._loop.sync()
            state.best_weights = self._kept_weights()
        if plan.stop is not None and plan.stop.metric in metrics:
            plan.stop.update(state.epoch, metrics[plan.stop.metric])
        speed = {} if self._speed is None else self._speed.end()
        plan.report.metric(state.epoch, {**self._labelled(metrics), **speed}, execution=plan.execution)
        plan.on_progress(min(state.epoch, plan.epochs))
        if plan.pruning_check is not None and state.epoch < plan.epochs:
            state.verdict = plan.pruning_check(state.epoch, state.improvements)
        self.interrupt()
        return self._is_exhausted() or state.verdict is not None

    def _validate(self) -> dict[str, float]:
        """Measure validation rows by the loss and metrics of the experiment, if the code cannot evaluate."""
        build = self._build
        data = None if build.evaluates_rows else self._plan.validation
        if data is None:
            return {}
        self._loop.sync()
        predictions = finished_rows(self._loop.predict(data.x, data.batch_size), build.output, build.shape)
        return {f"val_{name}": value for name, value in data.measure(data.metrics, predictions).items()}

    def check_mesh(self, model: Any) -> None:
        """Compare a model with the mesh before its first step: `fit` may have cleared the session.

        Raises:
            BadLayout: a variable is not where the mesh puts it.
        """
        if self._spec.mesh is not None and (sentence := live_shardings.difference(model)) is not None:
            raise BadLayout(sentence)

    def interrupt(self) -> None:
        """Interrupt the training if that is requested.

        Raises:
            TaskInterrupted: a pause or stop was requested.
        """
        request = self._plan.report.request()
        if request in ("pause", "stop"):
            raise TaskInterrupted(request)

    def begin_epoch(self) -> None:
        """Begin to measure the speed of an epoch."""
        if self._speed is not None:
            self._speed.begin(0)

    def check_time(self, batch: int) -> None:
        """Serve requests within an epoch, at most every `REQUEST_INTERVAL` seconds.

        Args:
            batch: how many batches are done in the epoch.
        """
        if self._speed is not None:
            self._speed.add(batch)
        now = time.monotonic()
        if now - self._last_check >= REQUEST_INTERVAL:
            self._last_check = now
            self.interrupt()

    def _labelled(self, metrics: Mapping[str, float]) -> dict[str, float]:
        return {self._plan.label + name: value for name, value in metrics.items()}

    def _take_snapshot(self) -> Snapshot:
        arrays = {"weights": held(self._model.variables), "optimizer": self._optimizer_values()}
        return snapshot_of(self._plan, self._state, self._loop.step_mode, arrays)

    def _kept_weights(self) -> list[Array]:
        variables = self._plan.model.variables
        current = held(variables)
        return self._plan.checkpointer.keep(BEST, current) if are_spread(variables) else current

    def _optimizer_values(self) -> list[Array]:
        optimizer = getattr(self._model, "optimizer", None)
        return [] if optimizer is None else held(optimizer.variables)

    def _restore_best(self) -> None:
        # The objective that was returned is that of the last weights.
        objective = self._plan.best.metric if self._plan.best is not None else ""
        if objective in self._returned:
            self._state.best_weights = []
        super()._restore_best()

    def _result(self) -> TrainingResult:
        state = self._state
        objective = self._plan.best.metric if self._plan.best is not None else ""
        history = state.history or [{}]
        is_last = self._keeps_last or objective in self._returned
        best = len(history) if is_last else self._best_epoch()
        best = min(max(best, 1), len(history))
        metrics = {**history[best - 1], **self._returned}
        return TrainingResult(
            epochs=state.epoch,
            best_epoch=best if state.history else state.epoch,
            steps=state.epoch * self._plan.batches.steps,
            metrics=metrics,
            history=state.history,
            seconds=state.seconds,
            is_exhausted=self._is_exhausted(),
            best=tuple(state.improvements),
            verdict=state.verdict,
            keeps_last=self._keeps_last,
        )


def _without_validation(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if not name.startswith("val_")}


class _EpochReporter(keras.callbacks.Callback):  # type: ignore[misc,unused-ignore]
    """Passes each epoch's measures to the training."""

    def __init__(self, training: OwnFitTraining) -> None:
        super().__init__()
        self._training = training

    def __deepcopy__(self, _: Any) -> "_EpochReporter":
        return self

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        self._training.check_mesh(self.model if self.model is not None else self._training.model)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        self._training.begin_epoch()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        self._training.check_time(batch + 1)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        if self._training.record(logs or {}, self._names()) and self.model is not None:
            self.model.stop_training = True

    def _names(self) -> frozenset[str]:
        # A `fit` may train another model than the one that was built.
        return training_names(self.model if self.model is not None else self._training.model)
