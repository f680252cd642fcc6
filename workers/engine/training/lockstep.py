"""The executions of a trial in lockstep: an epoch of each in turn, all in one call where that is faster.

Executions differ in their seeds alone, so one program serves them, and under `vmap` it serves them at once
(`stacked`). Each stays a training of its own: its order of rows, its checkpoints, its best epoch, its end.
"""

from collections.abc import Iterator, Sequence

import jax

from workers.engine.errors import EngineError
from workers.engine.report import Yielding
from workers.engine.training.execution import Execution
from workers.engine.training.loops import ProgramLoop

MOST_BYTES = 512 << 20
"""What the rows and states of all lanes may take together."""


def train(executions: Sequence[Execution]) -> Iterator[Sequence[Execution]]:
    """Train executions, all at once where that pays, else one by one; yield those that are done.

    The next ones begin once the caller asks for them.

    Raises:
        EngineError: of the first one that fails; the checkpoint of each beside it stands.
        Yielding: asked to; the checkpoint of each that has begun and is not over stands.
    """
    waiting = list(executions)
    while waiting:
        together = _begun(waiting)
        waiting = waiting[len(together) :]
        _train_to_the_end(together)
        for execution in together:
            execution.let_go()
        yield together


def _begun(waiting: Sequence[Execution]) -> Sequence[Execution]:
    """Begin the first of those that wait, and the others with it if that pays."""
    first, *others = waiting
    first.begin()
    if not others or not _pays(first, len(waiting)):
        return [first]
    for other in others:
        other.begin()
    for execution in waiting:
        execution.keep_less_often(len(waiting))
    return waiting


def _train_to_the_end(together: Sequence[Execution]) -> None:
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
    loops = [loop for execution in together if (loop := _stackable(execution)) is not None]
    if len(loops) < len(together) or any(execution.training.done[1] for execution in open_):
        return  # one goes on as it began, or in the middle of an epoch
    shared, stacked = loops[0].shared(), loops[0].program.stacked
    if shared is None or not stacked.pays(len(loops), len(open_)):
        return
    epochs = [execution.training.done[0] + 1 for execution in together]
    lanes = [loop.lane(epoch) for loop, epoch in zip(loops, epochs, strict=True)]
    for loop, trained in zip(loops, stacked.train(lanes, shared), strict=True):
        loop.take(trained)


def _one_epoch_each(executions: Sequence[Execution]) -> None:
    """Let each do an epoch; where one fails or must leave, the others leave a checkpoint after theirs."""
    failed: EngineError | None = None
    asked: Yielding | None = None
    standing: list[Execution] = []
    for execution in executions:
        try:
            execution.next_epoch()
            if execution.over:
                execution.end()
            else:
                standing.append(execution)
        except EngineError as error:
            failed = failed or error
        except Yielding as yielding:
            asked = yielding
    if (leaving := failed or asked) is not None:
        for execution in standing:
            execution.save()
        raise leaving


def _pays(first: Execution, lanes: int) -> bool:
    """Say whether `lanes` executions are faster together: timed on this very model once that is worth it."""
    loop = _stackable(first)
    shared = loop.shared() if loop is not None else None
    if loop is None or shared is None or first.plan.fold is not None:  # each fold has rows of its own
        return False
    program, done = loop.program, first.training.done[0]
    lane = loop.lane(done + 1)
    if lanes * _bytes([lane, shared.x, shared.y]) > MOST_BYTES:
        return False
    steps = len(lane.rows)
    left = lanes * steps * (first.around.trial.epochs - done)
    if program.worth_stacking(lanes, steps, left):
        program.stacked.measure(lane, lanes, shared, steps * program.seconds_a_step)
    return program.stacked.pays(lanes, lanes)


def _stackable(execution: Execution) -> ProgramLoop | None:
    """Return the loop of an execution that runs many steps a call, with nothing acting between its epochs."""
    training = execution.training
    loop = training.loop
    return (
        loop if isinstance(loop, ProgramLoop) and loop.way == "many" and not training.is_acted_upon else None
    )


def _bytes(tree: object) -> int:
    return sum(int(leaf.nbytes) for leaf in jax.tree.leaves(tree))
