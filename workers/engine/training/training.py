"""Trains one model an epoch at a time, with data order, stopping and state that are ours.

Between epochs everything is under control: exact validation, checkpoints, yielding. How the steps of an
epoch are run is the loop's affair; `loops` has two.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.contracts.pruning import Verdict
from workers.engine.data.batches import Batches
from workers.engine.data.table import Array
from workers.engine.errors import NanLoss
from workers.engine.killpoint import kill_point
from workers.engine.models.losses import measure
from workers.engine.models.optimizer import ensure_built
from workers.engine.models.precision import moves, scaling_metrics
from workers.engine.models.variables import assign, values
from workers.engine.models.width_padding import Widths
from workers.engine.report import Report, Yielding
from workers.engine.training.checkpoint import Snapshot
from workers.engine.training.checkpointing import Keeper
from workers.engine.training.early_stopping import Watch
from workers.engine.training.hooks import EpochHook, inner
from workers.engine.training.loops import FitLoop, Loop

PROGRESS_EVERY = 2.0


@dataclass(frozen=True)
class Held:
    """Rows that are measured exactly after each epoch, and how."""

    x: Array
    y: Array
    loss: str
    metrics: tuple[str, ...]
    scale: Array | None
    batch_size: int


@dataclass
class Plan:
    """One training to be done.

    Attributes:
        model: compiled.
        validation: None when everything is trained on.
        best: chooses the best epoch, whose weights the model has in the end; None keeps the last.
        stop: ends the training early; None runs all epochs.
        pace: called with epochs done, a fraction within an epoch.
        hook: acts between epochs.
        prune: asked after each epoch but the last, with the best values so far; a verdict ends the training.
        extra: JSON state of the caller that each checkpoint carries; `extra_arrays` likewise.
        label: put before metric names, so that two phases of one job draw two curves.
        loop: how epochs are run; Keras' `fit` if None.
        widths: what is meant of each variable, where the model was built wider than it shall be.
    """

    model: Any
    batches: Batches
    validation: Held | None
    epochs: int
    best: Watch | None
    stop: Watch | None
    keeper: Keeper
    report: Report
    pace: Callable[[float], None]
    execution: int | None = None
    first_step: int = 0
    label: str = ""
    prune: Callable[[int, Sequence[tuple[int, float]]], Verdict | None] | None = None
    loop: Loop | None = None
    widths: Widths = field(default_factory=Widths)
    hook: EpochHook = field(default_factory=EpochHook)
    extra: dict[str, Any] = field(default_factory=dict)
    extra_arrays: dict[str, list[Array]] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a training ended. Epochs count from 1; `figures` are those of the best epoch.

    Attributes:
        exhausted: it was stopped early, so more epochs would not be used.
        best: each epoch at which the watched figure was best so far, and its value.
        verdict: why it was pruned, None if it was not.
    """

    epochs: int
    best_epoch: int
    steps: int
    figures: dict[str, float]
    history: list[dict[str, float]]
    seconds: float
    exhausted: bool = False
    best: tuple[tuple[int, float], ...] = ()
    verdict: Verdict | None = None


class Training:
    """Runs a `Plan`, from the start or from a snapshot."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._model = plan.model
        self._epoch = 0  # complete ones
        self._batch = 0  # of the epoch after them
        self._history: list[dict[str, float]] = []
        self._bests: list[tuple[int, float]] = []
        self._best_weights: list[Array] = []
        self._open_metrics: list[Array] = []
        self._verdict: Verdict | None = None
        self._seconds_before = 0.0
        self._begun = time.monotonic()
        self._looked = self._begun
        ensure_built(self._model)
        self._loop: Loop = plan.loop or FitLoop(plan.model, plan.batches)
        self._optimizer_moves = moves(self._model.optimizer)

    def run(self, resume: Snapshot | None = None) -> Outcome:
        """Train to the end and leave the best epoch's weights in the model.

        Raises:
            NanLoss: the loss is not finite any more.
            Yielding: asked to; the checkpoint stands.
        """
        self.begin(resume)
        while not self.over:
            self.next_epoch()
        return self.end()

    def begin(self, resume: Snapshot | None = None) -> None:
        """Stand at the start, or where a snapshot was taken."""
        if resume is not None:
            self._restore(resume)
            if self.over:
                self._plan.pace(self._epoch)  # it had ended before: say that it is done

    @property
    def over(self) -> bool:
        """Say whether no epoch is to follow."""
        return self._epoch >= self._plan.epochs or self._exhausted() or self._verdict is not None

    @property
    def done(self) -> tuple[int, int]:
        """Return how many epochs are complete, and how many batches of the one after them."""
        return self._epoch, self._batch

    @property
    def loop(self) -> Loop:
        """How its epochs are run."""
        return self._loop

    @property
    def is_acted_upon(self) -> bool:
        """Whether something beside the loop changes the model between epochs, or ends the training."""
        return self._plan.hook.acts or self._plan.prune is not None

    def next_epoch(self) -> None:
        """Train an epoch, or what is left of one.

        Raises:
            NanLoss, Yielding: see `run`.
        """
        plan = self._plan
        self._run_epoch(self._epoch + 1)
        if plan.prune is not None and not self.over:
            self._verdict = plan.prune(self._epoch, self._bests)
        self._serve_requests(final=self.over, due=plan.keeper.due())

    def end(self) -> Outcome:
        """Leave the best epoch's weights in the model; say how it went."""
        self._loop.sync()
        if self._best_weights:
            self._assign(self._model.variables, self._best_weights)
            self._loop.load()
        else:
            self._let_hook(self._plan.hook.before_validation)  # the model shall hold what was measured
        return self._outcome()

    def _bests_again(self) -> list[tuple[int, float]]:
        """Return where the watched figure was best in the history, as `Watch` found it then."""
        if self._plan.best is None:
            return []
        again = Watch(self._plan.best.metric, self._plan.best.direction)
        found = ((epoch, figures[again.metric]) for epoch, figures in enumerate(self._history, start=1))
        return [(epoch, value) for epoch, value in found if again.update(epoch, value)]

    def _exhausted(self) -> bool:
        return self._plan.stop is not None and self._plan.stop.exhausted

    def _run_epoch(self, epoch: int) -> None:
        figures = self._loop.epoch(epoch, self._batch, self._open_metrics, self.batch_done)
        if not math.isfinite(figures["loss"]):
            raise NanLoss(
                f"the loss became {figures['loss']} in epoch {epoch}; try a smaller learning rate or clipnorm"
            )
        self._let_hook(self._plan.hook.before_validation)
        figures.update(self._validate())
        figures.update(self._machinery(epoch))
        self._finish_epoch(epoch, figures)

    def _let_hook(self, act: Callable[[Any], None]) -> None:
        """Let the hook act on the model's variables, of which the loop may hold newer ones."""
        if self._plan.hook.acts:
            self._loop.sync()
            act(self._model)
            self._loop.load()

    def _validate(self) -> dict[str, float]:
        held = self._plan.validation
        if held is None:
            return {}
        found = measure(
            held.loss, held.metrics, held.y, self._loop.predict(held.x, held.batch_size), held.scale
        )
        return {f"val_{name}": value for name, value in found.items()}

    def _machinery(self, epoch: int) -> dict[str, float]:
        if self._optimizer_moves:
            self._loop.sync()
        optimizer = self._model.optimizer
        done = epoch * self._plan.batches.steps
        return {"lr": float(inner(optimizer).learning_rate), **scaling_metrics(optimizer, done)}

    def _finish_epoch(self, epoch: int, figures: dict[str, float]) -> None:
        plan = self._plan
        self._epoch, self._batch, self._open_metrics = epoch, 0, []
        self._history.append(figures)
        if plan.best is not None and plan.best.update(epoch, figures[plan.best.metric]):
            self._bests.append((epoch, figures[plan.best.metric]))
            self._best_weights = plan.widths.narrow(self._model.variables, self._loop.weights())
        self._let_hook(lambda model: self._leave_epoch(epoch, figures, model))
        if plan.stop is not None:
            plan.stop.update(epoch, figures[plan.stop.metric])
        named = {plan.label + name: value for name, value in figures.items()}
        plan.report.metric(epoch, named, execution=plan.execution)
        kill_point("epoch")
        plan.pace(epoch)

    def _leave_epoch(self, epoch: int, figures: dict[str, float], model: Any) -> None:
        self._plan.hook.after_validation(model)
        self._plan.hook.after_epoch(epoch, figures, model)

    def batch_done(self, batch: int) -> None:
        """Look at the clock and the requests every few batches in the middle of an epoch."""
        now = time.monotonic()
        if batch >= self._plan.batches.steps or now - self._looked < PROGRESS_EVERY:
            return  # the epoch's end is the better place for whatever is asked
        self._looked = now
        self._batch = batch
        self._serve_requests(final=False, due=self._plan.keeper.due(within_epoch=True))
        self._plan.pace(self._epoch + batch / self._plan.batches.steps)

    def _serve_requests(self, *, final: bool, due: bool) -> None:
        """Write a checkpoint where one is due or asked for; leave when asked to."""
        request = self._plan.report.request()
        if final or due or request is not None:
            self.save()
        if request in ("pause", "stop") and not final:
            raise Yielding(request)

    def save(self) -> None:
        """Write a checkpoint of where it stands."""
        self._loop.sync()
        if self._batch:
            self._open_metrics = values(self._model.metrics_variables)
        step = self._plan.first_step + self._epoch * self._plan.batches.steps + self._batch
        self._plan.keeper.commit(self._snapshot(), step=step, epoch=self._epoch)

    def _snapshot(self) -> Snapshot:
        plan = self._plan
        return Snapshot(
            arrays={
                "model": self._values(self._model.variables),
                "optimizer": self._values(self._model.optimizer.variables),
                "metrics": self._open_metrics,
                "best": self._best_weights,
                **plan.extra_arrays,
            },
            state={
                "epoch": self._epoch,
                "batch": self._batch,
                "history": self._history,
                "best": None if plan.best is None else plan.best.state(),
                "stop": None if plan.stop is None else plan.stop.state(),
                "hook": plan.hook.state(),
                "seconds": self._seconds(),
                "seed": plan.batches.seed,
                "way": self._loop.way,
                "verdict": None if self._verdict is None else self._verdict.model_dump(),
                "extra": plan.extra,
            },
        )

    def _restore(self, snapshot: Snapshot) -> None:
        state, plan = snapshot.state, self._plan
        self._assign(self._model.variables, snapshot.arrays["model"])
        self._assign(self._model.optimizer.variables, snapshot.arrays["optimizer"])
        self._loop.load()
        self._loop.keep_to(state.get("way", ""))
        self._open_metrics = snapshot.arrays["metrics"]
        self._best_weights = snapshot.arrays["best"]
        self._epoch, self._batch = state["epoch"], state["batch"]
        self._history = state["history"]
        self._bests = self._bests_again()
        self._seconds_before = state["seconds"]
        if plan.best is not None and state["best"] is not None:
            plan.best.restore(state["best"])
        if plan.stop is not None and state["stop"] is not None:
            plan.stop.restore(state["stop"])
        if state.get("verdict"):  # what was pruned never runs on, whatever others have reached since
            self._verdict = Verdict.model_validate(state["verdict"])
        if state.get("hook"):
            plan.hook.restore(state["hook"])

    def _values(self, variables: Any) -> list[Array]:
        return self._plan.widths.narrow(variables, values(variables))

    def _assign(self, variables: Any, arrays: list[Array]) -> None:
        assign(variables, self._plan.widths.widen(variables, arrays))

    def _seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._begun

    def _outcome(self) -> Outcome:
        best = self._plan.best
        best_epoch = best.best_epoch if best is not None and best.best_epoch else self._epoch
        return Outcome(
            epochs=self._epoch,
            best_epoch=best_epoch,
            steps=self._epoch * self._plan.batches.steps,
            figures=self._history[best_epoch - 1],
            history=self._history,
            seconds=self._seconds(),
            exhausted=self._exhausted(),
            best=tuple(self._bests),
            verdict=self._verdict,
        )
