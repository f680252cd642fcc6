"""Compares training executions of a trial one after another with training them in one call under `vmap`.

    python -m benchmarks.stacked_executions [--pairs 15] [--executions 2 8]

In a round, each side trains every execution for one epoch with the programs that trials use
(`workers.engine.compiled.vmapped`): the same model, rows and optimizer, each execution with its own state and
order of rows. Both sides are compiled first. CPU time is compared. The last column is the engine's choice: it
times both on each model and uses one call where that is clearly faster.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")

import jax
import numpy as np

from benchmarks.fused_training import Case, median_and_quartiles, prepared
from workers.engine.compiled.autotune import MAX_TIME_RATIO
from workers.engine.compiled.program import Program
from workers.engine.compiled.vmapped import EpochInputs, SharedInputs, VmappedProgram

REGULARIZED = {"units": 64, "dropout": 0.3, "batch_norm": True}
CASES = [
    Case("digits, 16 units", "mlp", (64,), {"units": 16}, 128, 1152),
    Case("digits, 64 units", "mlp", (64,), {"units": 64}, 128, 1152),
    Case("mlp, 784 features", "mlp", (784,), {"units": 64}, 128, 8192),
    Case("mlp, dropout and batch norm", "mlp", (64,), REGULARIZED, 128, 8192),
    Case("cnn, 8 x 8 images", "cnn", (8, 8, 1), {"filters": 16, "layers": 2}, 128, 1024),
]

VALIDATION_ROWS = 256
Epoch = Callable[[], float]
"""Trains every execution for an epoch and returns the CPU seconds."""


def inputs_of(program: Program, case: Case, count: int) -> list[EpochInputs]:
    """Return the inputs of an epoch, each with its own order of rows; incomplete batches are left out."""
    rng = np.random.default_rng(0)
    shape = case.rows // case.batch_size, case.batch_size
    orders = [rng.permutation(case.rows)[: shape[0] * shape[1]].reshape(shape) for _ in range(count)]
    ones = np.ones(shape, np.float32)
    return [
        EpochInputs(program.state(), program.hyperparameters(), rows.astype(np.int32), ones)
        for rows in orders
    ]


def training(vmapped: VmappedProgram, inputs: list[EpochInputs], shared: SharedInputs, at_once: int) -> Epoch:
    """Return a function that trains all executions, `at_once` of them in each call."""

    def epoch() -> float:
        began = time.process_time()
        for first in range(0, len(inputs), at_once):
            call = slice(first, first + at_once)
            states = [state for state, _, _ in vmapped.train(inputs[call], shared)]
            inputs[call] = [
                epoch._replace(state=new) for epoch, new in zip(inputs[call], states, strict=True)
            ]
        return time.process_time() - began

    return epoch


def compare(case: Case, count: int, pairs: int) -> None:
    """Time the rounds and print a line."""
    case_training = prepared(case)
    assert case_training.program is not None
    program, batches = case_training.program, case_training.batches
    validation_x = batches.x[:VALIDATION_ROWS].astype(np.float32)
    shared = SharedInputs(
        *map(jax.device_put, (batches.x, batches.y)),
        (jax.device_put(validation_x),),
        program.initial_metrics(),
    )
    sides = [
        training(program.vmapped, inputs_of(program, case, count), shared, at_once) for at_once in (1, count)
    ]
    for train in sides:
        train()  # compiles
    seconds: list[list[float]] = [[], []]
    for turn in range(pairs):
        for side in (turn % 2, 1 - turn % 2):
            seconds[side].append(sides[side]())
    milliseconds = (1000 * statistics.median(side) for side in seconds)
    line = " | ".join(f"{value:8.1f}" for value in milliseconds)
    ratios = sorted(a / b for a, b in zip(*seconds, strict=True))
    chosen = "in one call" if min(seconds[1]) < MAX_TIME_RATIO * min(seconds[0]) else "one by one"
    print(f"{case.name:28} | {count:5} | {line} | {median_and_quartiles(ratios):24} | {chosen}", flush=True)


def main() -> None:
    """Compare all cases."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.stacked_executions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--executions", type=int, nargs="+", default=[2, 8], metavar="NUMBER")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.pairs} rounds")
    print(f"{'':28} | execs | one, ms  | vmap, ms | {'one by one / vmap':24} | chosen")
    for case in CASES:
        for count in options.executions:
            compare(case, count, options.pairs)


if __name__ == "__main__":
    main()
