"""How an epoch is run: by Keras' `fit`, or by compiled programs of many steps.

`FitLoop` serves every model, on any mesh. `ProgramLoop` runs the same `train_step` on one device without
Keras' Python between the steps: 3 to 4 times faster on small models, and equal to the bit on dense ones.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

import jax
import keras
import numpy as np

from workers.engine.compiled.autotune import WAYS, Way
from workers.engine.compiled.device_feed import Block, Feed
from workers.engine.compiled.program import Program
from workers.engine.compiled.state import State
from workers.engine.compiled.vmapped import Lane, Shared, Slice, Trained
from workers.engine.data.batches import Batches
from workers.engine.data.table import Array
from workers.engine.killpoint import kill_point
from workers.engine.models.variables import assign, values

Between = Callable[[int], None]
"""Called between batches with how many of the epoch are done."""


class Loop(Protocol):
    """Trains one model on its batches. While an epoch runs, the model's variables may lag behind."""

    def epoch(self, epoch: int, first: int, running: list[Array], between: Between) -> dict[str, float]:
        """Train on the batches of `epoch` from number `first` (from 0) on; return loss and metrics.

        Args:
            epoch: counted from 1.
            first: batches that are done already.
            running: the metrics' variables after those, empty if `first` is 0.
            between: called now and then; may raise, and the batches so far are in the model after `sync`.
        """

    def predict(self, x: Array, batch_size: int) -> Array:
        """Return predictions for all rows, (rows, outputs) float32, with the newest weights."""

    def weights(self) -> list[Array]:
        """Copy the newest `model.variables` to the host."""

    def sync(self) -> None:
        """Bring the model's variables up to date."""

    def load(self) -> None:
        """Take the model's variables as the newest: somebody has set them."""

    @property
    def way(self) -> str:
        """Name how steps are run. Ways agree but for rounding, so a training goes on in the one it had."""

    def keep_to(self, way: str) -> None:
        """Run steps this way from now on, if it is one of this loop's."""


class FitLoop:
    """Keras' `fit`, an epoch a call."""

    way = "fit"

    def __init__(self, model: Any, batches: Batches) -> None:
        self._model = model
        self._batches = batches

    def epoch(self, epoch: int, first: int, running: list[Array], between: Between) -> dict[str, float]:
        """See `Loop.epoch`."""
        logs = self._model.fit(
            self._batches.draw(epoch, first),
            steps_per_epoch=self._batches.steps - first,
            initial_epoch=epoch - 1,
            epochs=epoch,
            shuffle=False,
            verbose=0,
            callbacks=[_Between(self._model, first, running, between)],
        ).history
        return {name: float(entries[-1]) for name, entries in logs.items()}

    def predict(self, x: Array, batch_size: int) -> Array:
        """See `Loop.predict`."""
        return predict(self._model, x, batch_size)

    def weights(self) -> list[Array]:
        """See `Loop.weights`."""
        return values(self._model.variables)

    def sync(self) -> None:
        """See `Loop.sync`: in mid-epoch the newest state is not in the variables."""
        self._model.jax_state_sync()

    def load(self) -> None:
        """See `Loop.load`; `fit` reads the variables anew for each epoch."""

    def keep_to(self, way: str) -> None:
        """See `Loop.keep_to`; there is only one."""


class _Between(keras.callbacks.Callback):  # type: ignore[misc,unused-ignore]
    """Calls back after each batch, and puts back the running means of a broken epoch after their reset."""

    def __init__(self, model: Any, first: int, running: list[Array], between: Between) -> None:
        super().__init__()
        self._trained = model
        self._first = first
        self._running = running
        self._between = between

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        if self._running:
            assign(self._trained.metrics_variables, self._running)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        kill_point("batch")
        self._between(self._first + batch + 1)


class ProgramLoop:
    """Calls into a `Program`: as many steps at once as take a quarter of a second.

    Args:
        program: of the model.
        batches: what it trains on.
        held: rows that will be predicted after each epoch, if they fit in one batch.
        epochs: how many the training has.
    """

    def __init__(self, program: Program, batches: Batches, held: Array | None = None, *, epochs: int) -> None:
        self._program = program
        self._epochs, self._steps = epochs, batches.steps
        self._feed = Feed(batches)
        self._held = held
        self._held_there = None if held is None else jax.device_put(held.astype(np.float32))
        self._foreseen: Array | None = None
        self._given: dict[str, float] | None = None
        self._way: Way | None = None
        self._newest: State | Slice = program.state()
        self._dials = program.dials()

    @property
    def _state(self) -> State:
        """The newest variables; cut out of a stack of several trainings' if they lie in one."""
        return self._newest.cut() if isinstance(self._newest, Slice) else self._newest

    @property
    def way(self) -> str:
        """See `Loop.way`."""
        return self._way or self._program.way

    def keep_to(self, way: str) -> None:
        """See `Loop.keep_to`."""
        if way in WAYS:
            self._way = way

    def epoch(self, epoch: int, first: int, running: list[Array], between: Between) -> dict[str, float]:
        """See `Loop.epoch`."""
        if self._given is not None:
            given, self._given = self._given, None
            return given
        trainable, other, optimizer, _ = self._state
        self._newest = (trainable, other, optimizer, list(running) or self._program.clear_metrics())
        done, logs = first, None
        for block in self._feed.blocks(epoch, first):
            while done < block.end:
                end = min(done + self._program.pace.steps, block.end)
                logs = self._train(block, done, end, left=(self._epochs - epoch + 1) * self._steps - done)
                done = end
                kill_point("batch")
                between(done)
        return self._program.logs(self._state) if logs is None else logs

    def _train(self, block: Block, first: int, end: int, left: int) -> dict[str, float] | None:
        """Train on some batches of a block; return the figures so far if they came with it.

        Args:
            block: has them in memory.
            first: number of the first one in the epoch.
            end: number after the last one.
            left: how many there are until the training ends, from the first one on.
        """
        program, steps = self._program, range(first - block.first, end - block.first)
        if self._way is None and program.worth_measuring(left):
            program.measure(self._state, self._dials, block.data, steps)
        began = time.perf_counter()
        last = end == block.batches or not program.pace.settled
        self._foreseen = logs = None
        if self.way == "many" and self._held is not None and last:
            self._newest, logs, self._foreseen = program.train_and_measure(
                self._state, self._dials, block.data, steps, self._held_there
            )
        else:
            self._newest = program.train(self.way, self._state, self._dials, block.data, steps)
        program.pace.note(len(steps), time.perf_counter() - began)
        return logs

    @property
    def program(self) -> Program:
        """The model's compiled steps."""
        return self._program

    def shared(self) -> Shared | None:
        """Return what loops of one program may train on together, None where not all is on the device."""
        rows = self._feed.resident
        if rows is None or self._held_there is None:
            return None
        return Shared(*rows, self._held_there, self._program.clear_metrics())

    def lane(self, epoch: int) -> Lane:
        """Return what `epoch` begins with. Whoever trains it gives the state back by `take`."""
        return Lane(self._newest, self._dials, *self._feed.table(epoch))

    def take(self, trained: Trained) -> None:
        """Take an epoch that was trained elsewhere; the next call of `epoch` returns its figures."""
        self._newest, self._given, self._foreseen = trained
        kill_point("batch")

    def predict(self, x: Array, batch_size: int) -> Array:
        """See `Loop.predict`."""
        if self._foreseen is not None and x is self._held:
            return self._foreseen
        trainable, other = self._state[:2]
        return in_batches(lambda rows: self._program.predict(trainable, other, rows), x, batch_size)

    def weights(self) -> list[Array]:
        """See `Loop.weights`."""
        return self._program.weights(self._state)

    def sync(self) -> None:
        """See `Loop.sync`."""
        self._program.put_back(self._state)

    def load(self) -> None:
        """See `Loop.load`."""
        self._foreseen = self._given = None
        self._newest = self._program.state()
        self._dials = self._program.dials()


def in_batches(call: Callable[[Array], Any], x: Array, batch_size: int) -> Array:
    """Return what `call` predicts for all rows, (rows, outputs) float32, in batches of one shape.

    The last batch is filled up with repeated rows and cut again: one compiled program, and with a
    `batch_size` that the mesh divides, figures that do not depend on the number of devices.
    """
    parts = []
    for start in range(0, len(x), batch_size):
        rows = x[start : start + batch_size]
        filled = np.resize(rows, (batch_size, *x.shape[1:])) if len(rows) < batch_size else rows
        parts.append(np.asarray(call(filled.astype(np.float32)))[: len(rows)])
    return np.concatenate(parts)


def predict(model: Any, x: Array, batch_size: int) -> Array:
    """Return a model's predictions for all rows, (rows, outputs) float32."""
    return in_batches(model.predict_on_batch, x, batch_size)
