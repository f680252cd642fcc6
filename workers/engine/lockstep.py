"""The executions of a trial in lockstep: an epoch of each in turn, all in one call where that is faster.

Executions differ in their seeds alone, so one program serves them, and under `vmap` it serves them at once
(`stacked`). Each stays a training of its own: its order of rows, its checkpoints, its best epoch, its end.
"""

from collections.abc import Iterator, Sequence

import jax

from workers.engine.execution import Execution
from workers.engine.loops import ProgramLoop
from workers.engine.report import Yielding

MOST_BYTES = 512 << 20
"""What the rows and states of all lanes may take together."""


def groups(executions: Sequence[Execution]) -> Iterator[Sequence[Execution]]:
    """Begin executions and yield those that are to train together: all where that pays, else one by one.

    The next ones begin once the caller is done with those before.

    Raises:
        EngineError: one cannot begin.
    """
    for place, execution in enumerate(executions):
        execution.begin()
        others = executions[1:]
        if place == 0 and others and _pays(execution, len(executions)):
            for other in others:
                other.begin()
            yield executions
            return
        yield [execution]


def train(together: Sequence[Execution]) -> None:
    """Train executions to their ends, each of which is said when it comes.

    Raises:
        EngineError: of the first one that fails; the others are left where they stand.
        Yielding: asked to; the checkpoint of each that is not over stands.
    """
    for execution in together:
        if execution.over:
            execution.end()  # it had ended before an earlier runner was lost
    while open_ := [execution for execution in together if not execution.over]:
        if len(together) > 1:
            _train_ahead(together, open_)
        _one_epoch_each(open_)


def _train_ahead(together: Sequence[Execution], open_: Sequence[Execution]) -> None:
    """Train the next epoch of all in one call, if so many open ones are worth it; each then finds it done.

    Those that are over keep their lanes, which count for nothing: a program for each number of lanes would
    cost more to compile than they do.
    """
    loops = [loop for execution in together if (loop := _loop_of(execution)) is not None]
    shared, stacked = loops[0].shared(), loops[0].program.stacked
    if shared is None or any(loop.way != loops[0].way for loop in loops):  # one goes on as it began
        return
    within_an_epoch = any(execution.training.done[1] for execution in open_)
    if within_an_epoch or not stacked.pays(len(loops), len(open_)):
        return
    epochs = [execution.training.done[0] + 1 for execution in together]
    lanes = [loop.lane(epoch) for loop, epoch in zip(loops, epochs, strict=True)]
    for loop, trained in zip(loops, stacked.train(lanes, shared), strict=True):
        loop.take(trained)


def _one_epoch_each(executions: Sequence[Execution]) -> None:
    """Let each do an epoch; when one is asked to leave, all leave with a checkpoint."""
    asked: Yielding | None = None
    standing: list[Execution] = []
    for execution in executions:
        try:
            execution.next_epoch()
        except Yielding as yielding:
            asked = yielding
            continue
        if execution.over:
            execution.end()
        else:
            standing.append(execution)
    if asked is not None:
        for execution in standing:
            execution.training.save()
        raise asked


def _pays(first: Execution, lanes: int) -> bool:
    """Say whether `lanes` executions are faster together: timed on this very model once that is worth it."""
    loop = _loop_of(first)
    if loop is None or first.plan.fold is not None:  # each fold has rows of its own
        return False
    shared, stacked = loop.shared(), loop.program.stacked
    lane = loop.lane(first.training.done[0] + 1)
    if shared is None or lanes * _bytes([lane, shared.x, shared.y]) > MOST_BYTES:
        return False
    epoch = len(lane.rows)
    left = lanes * epoch * (first.around.trial.epochs - first.training.done[0])
    if loop.program.pace.steps >= epoch and loop.program.worth_stacking(lanes, left):
        stacked.measure(lane, lanes, shared, epoch * loop.program.seconds_a_step)
    return stacked.pays(lanes, lanes)


def _loop_of(execution: Execution) -> ProgramLoop | None:
    """Return the loop of an execution if nothing else acts on the model between its epochs."""
    training = execution.training
    return training.loop if isinstance(training.loop, ProgramLoop) and not training.is_acted_upon else None


def _bytes(tree: object) -> int:
    return sum(int(leaf.nbytes) for leaf in jax.tree.leaves(tree))
