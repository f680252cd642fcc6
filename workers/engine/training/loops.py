"""Defines what runs an epoch's steps, and implements it with Keras' `fit`.

`FitLoop` supports every model on any mesh; `program_loop.ProgramLoop` is faster on one device.
"""

import time
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from typing import Any, Protocol

import keras
import numpy as np

from jobs.messages.events import PhaseName
from workers.engine.arrays import Array
from workers.engine.data.batches import Batch, Batches
from workers.engine.data.prefetch import Waiting, prefetched
from workers.engine.data.rows import Rows
from workers.engine.killpoint import kill_point
from workers.engine.models.variables import assign, values
from workers.engine.phases import Repeated, announce

BatchCallback = Callable[[int], None]
"""Called between batches with the number of the epoch's batches that are done."""


class Loop(Protocol):
    """Trains one model on its batches. During an epoch the model's variables may be out of date."""

    @property
    def data_wait(self) -> float | None:
        """Share of the newest epoch's step time that was spent in waiting for rows; None without waits."""

    def epoch(
        self, epoch: int, first: int, metrics: list[Array], after_batch: BatchCallback
    ) -> dict[str, float]:
        """Train on the batches for `epoch` from number `first` (from 0) on; return loss and metrics.

        Args:
            epoch: counted from 1.
            first: how many batches are done already.
            metrics: the metrics' variables after those batches; empty if `first` is 0.
            after_batch: called after some batches. It may raise; `sync` then writes the state after the
                batches done so far to the model.
        """

    def predict(self, x: Rows, batch_size: int) -> Array:
        """Return predictions with the newest weights for all validation rows, (rows, outputs) float32."""

    def weights(self) -> list[Array]:
        """Copy the newest values in `model.variables` to the host."""

    def sync(self) -> None:
        """Write the newest state to the model's variables."""

    def load(self) -> None:
        """Read the state from the model's variables, after other code has changed them."""

    def close(self) -> None:
        """Free the rows that have been read in advance. A later epoch reads them again."""

    @property
    def step_mode(self) -> str:
        """How steps are run: `fit`, or one of `STEP_MODES`.

        Modes differ by rounding, so checkpoints record it and a resumed training keeps the mode it had.
        """

    def keep_step_mode(self, mode: str) -> None:
        """Use this step mode from now on, if the loop supports it."""


class FitLoop:
    """Runs each epoch with one call to Keras' `fit`."""

    step_mode = "fit"
    data_wait: float | None = None

    def __init__(self, model: Any, batches: Batches) -> None:
        self._model = model
        self._batches = batches
        self._has_trained = False
        self._waiting = Waiting()

    def epoch(
        self, epoch: int, first: int, metrics: list[Array], after_batch: BatchCallback
    ) -> dict[str, float]:
        """See `Loop.epoch`."""
        if not self._has_trained:
            announce("compiling")
        self._has_trained = True
        began = time.perf_counter()
        self._waiting.reset()
        with closing(self._drawn(epoch, first)) as batches:
            logs = self._model.fit(
                batches,
                steps_per_epoch=self._batches.steps - first,
                initial_epoch=epoch - 1,
                epochs=epoch,
                # The batches come in the order that `Batches` has drawn, which a resumed training repeats.
                shuffle=False,
                verbose=0,
                callbacks=[_AfterBatch(self._model, first, metrics, after_batch)],
            ).history
        if not isinstance(self._batches.x, np.ndarray):
            self.data_wait = self._waiting.seconds / (time.perf_counter() - began)
        return {name: float(entries[-1]) for name, entries in logs.items()}

    def _drawn(self, epoch: int, first: int) -> Generator[Batch]:
        if isinstance(self._batches.x, np.ndarray):
            yield from self._batches.draw(epoch, first)
        else:
            yield from prefetched(self._batches.makers(epoch, first), self._waiting)

    def predict(self, x: Rows, batch_size: int) -> Array:
        """See `Loop.predict`."""
        return predict(self._model, x, batch_size, "validating")

    def weights(self) -> list[Array]:
        """See `Loop.weights`."""
        return values(self._model.variables)

    def sync(self) -> None:
        """See `Loop.sync`."""
        # During `fit` Keras keeps the newest state outside the variables.
        self._model.jax_state_sync()

    def load(self) -> None:
        """See `Loop.load`. Each call to `fit` reads the variables, so there is nothing to do."""

    def close(self) -> None:
        """See `Loop.close`. No rows are read in advance between epochs, so there is nothing to do."""

    def keep_step_mode(self, mode: str) -> None:
        """See `Loop.keep_step_mode`. There is only one mode."""


class _AfterBatch(keras.callbacks.Callback):  # type: ignore[misc,unused-ignore]
    """Calls a function after each batch, and restores an interrupted epoch's metrics."""

    def __init__(self, model: Any, first: int, metrics: list[Array], after_batch: BatchCallback) -> None:
        super().__init__()
        self._trained = model
        self._first = first
        self._metrics = metrics
        self._after_batch = after_batch

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        # `fit` resets the metrics just before this call.
        if self._metrics:
            assign(self._trained.metrics_variables, self._metrics)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        kill_point("batch")
        self._after_batch(self._first + batch + 1)


def predict_in_batches(
    call: Callable[[Array], Any], x: Rows, batch_size: int, phase: PhaseName = "evaluating"
) -> Array:
    """Return what `call` predicts for all rows, (rows, outputs) float32, in batches with one shape.

    Args:
        call: predicts one batch, (batch size, …) float32.
        x: rows, (rows, …).
        batch_size: rows in a batch.
        phase: announced while it lasts.
    """
    # The last batch is filled with repeated rows and the result is cut. So there is one compiled program, and
    # with a `batch_size` that the mesh divides, results do not depend on the number of devices.
    announce, parts = Repeated(phase), []
    with closing(_slices(x, batch_size)) as slices:
        for rows in slices:
            announce()
            filled = np.resize(rows, (batch_size, *x.shape[1:])) if len(rows) < batch_size else rows
            parts.append(np.asarray(call(filled.astype(np.float32)))[: len(rows)])
    return np.concatenate(parts)


def _slices(x: Rows, length: int) -> Generator[Array]:
    """Yield all rows in order, `length` at once; those that are not in memory are read in advance."""
    starts = range(0, len(x), length)
    if isinstance(x, np.ndarray):
        return (x[start : start + length] for start in starts)
    return prefetched((partial(x.__getitem__, slice(start, start + length)) for start in starts), Waiting())


def predict(model: Any, x: Rows, batch_size: int, phase: PhaseName = "evaluating") -> Array:
    """Return a model's predictions for all rows, (rows, outputs) float32; see `predict_in_batches`."""
    return predict_in_batches(model.predict_on_batch, x, batch_size, phase)
