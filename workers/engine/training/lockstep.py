"""Trains a trial's executions in lockstep: one epoch each in turn, in one call where that is faster.

Executions differ only in their seeds, so one program serves them all, and under `jax.vmap` it can train
them in one call (see `compiled.vmapped`). Each keeps its own row order, checkpoints, best epoch and end.
"""

from collections.abc import Iterator, Sequence

import jax

from workers.engine.errors import EngineError
from workers.engine.phases import announced_to
from workers.engine.report import TaskInterrupted
from workers.engine.training.execution import Execution
from workers.engine.training.program_loop import ProgramLoop

MAX_BYTES = 512 << 20
"""Limit for the memory of one call: the rows, and the states and row orders of all executions."""


def train(executions: Sequence[Execution]) -> Iterator[Sequence[Execution]]:
    """Train executions, several in one call where that is faster, and yield each group that has ended.

    The next group starts when the caller asks for it, so a caller can stop after a group.

    Raises:
        EngineError: an execution failed; the others in its group have written a checkpoint.
        TaskInterrupted: on request; each execution that has started and not ended has written a checkpoint.
    """
    waiting = list(executions)
    while waiting:
        group = _start_group(waiting)
        waiting = waiting[len(group) :]
        for execution in group:
            # A runner was killed after the checkpoint of the last epoch, before it reported the end.
            if execution.is_finished:
                execution.finish()
        while active := [execution for execution in group if not execution.is_finished]:
            if len(group) > 1:
                _precompute_epoch(group, active)
            _run_epoch_of_each(active)
        for execution in group:
            execution.release()
        yield group


def _start_group(waiting: Sequence[Execution]) -> Sequence[Execution]:
    """Start the first execution, and all others with it if one call for all is faster."""
    first, *others = waiting
    first.start()
    if not others or not _vmap_is_faster(first, len(waiting)):
        return [first]
    for other in others:
        other.start()
    for execution in waiting:
        # 32 executions with a checkpoint per second each spent more time on writing than they saved.
        execution.multiply_checkpoint_interval(len(waiting))
    return waiting


def _precompute_epoch(group: Sequence[Execution], active: Sequence[Execution]) -> None:
    """Train the group's next epoch in one call if that is still faster; the loops keep the results.

    Args:
        group: all executions in the group.
        active: those that have not ended.
    """
    # Executions that have ended stay in the call and their results are discarded: compiling a program for
    # each number of executions would cost more than computing them.
    loops = [loop for execution in group if (loop := _vmappable_loop(execution)) is not None]
    # One may have resumed in another step mode, or in the middle of an epoch.
    if len(loops) < len(group) or any(execution.training.position[1] for execution in active):
        return
    shared, vmapped = loops[0].shared_inputs(), loops[0].program.vmapped
    if shared is None or not vmapped.is_faster(len(loops), len(active)):
        return
    epochs = [execution.training.position[0] + 1 for execution in group]
    inputs = [loop.epoch_inputs(epoch) for loop, epoch in zip(loops, epochs, strict=True)]
    with announced_to(active[0].context.report.phase):
        results = vmapped.train(inputs, shared)
    for loop, result in zip(loops, results, strict=True):
        loop.set_epoch_result(result)


def _run_epoch_of_each(executions: Sequence[Execution]) -> None:
    """Run one epoch for each execution. If one fails or is interrupted, the others write a checkpoint."""
    failure: EngineError | None = None
    interruption: TaskInterrupted | None = None
    unfinished: list[Execution] = []
    for execution in executions:
        try:
            execution.run_epoch()
            if execution.is_finished:
                execution.finish()
            else:
                unfinished.append(execution)
        # The first failure is raised below, after the others have finished this epoch.
        except EngineError as error:
            failure = failure or error
        except TaskInterrupted as request:
            interruption = request
    if (reason := failure or interruption) is not None:
        for execution in unfinished:
            execution.save()
        raise reason


def _vmap_is_faster(first: Execution, count: int) -> bool:
    """Return whether `count` executions train faster in one call; times it on this model when that pays.

    Each call does one measurement at most, so that the trial begins soon.

    Args:
        first: an execution that has started.
        count: how many executions there are.
    """
    loop = _vmappable_loop(first)
    shared = loop.shared_inputs() if loop is not None else None
    # One call trains all executions on the same rows, but each fold has its own.
    if loop is None or shared is None or first.plan.fold is not None:
        return False
    program, epochs_done = loop.program, first.training.position[0]
    inputs = loop.epoch_inputs(epochs_done + 1)
    leaves = jax.tree.leaves([inputs, shared.x, shared.y])
    if count * sum(int(leaf.nbytes) for leaf in leaves) > MAX_BYTES:
        return False
    epochs_left = count * (first.context.trial.epochs - epochs_done)
    with announced_to(first.context.report.phase):
        program.vmapped.measure(inputs, count, shared, epochs_left)
    return program.vmapped.is_faster(count, count)


def _vmappable_loop(execution: Execution) -> ProgramLoop | None:
    """Return an execution's loop if it may run a whole epoch per call and nothing acts between them."""
    training = execution.training
    loop = training.loop
    if not isinstance(loop, ProgramLoop) or loop.step_mode != "many" or training.acts_between_epochs:
        return None
    return None if loop.call_length.is_fixed else loop
