"""Trials one after another in one compiled program, and the same trials stacked in one call with `vmap`.

    python -m benchmarks.stacked_trials [--pairs 15] [--stacked 2 8]

A round is an epoch of every trial by each side, one side after another: the same model, rows and optimizer,
each trial with its own state and its own order of rows, both sides many steps a call and compiled before.
What is compared is CPU time.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")

import jax
import numpy as np

from benchmarks.fused_training import Case, prepared, said
from workers.engine.data.table import Array
from workers.engine.program import Program

REGULARIZED = {"units": 64, "dropout": 0.3, "batch_norm": True}
CASES = [
    Case("digits, 16 units", "mlp", (64,), {"units": 16}, 128, 1152),
    Case("digits, 64 units", "mlp", (64,), {"units": 64}, 128, 1152),
    Case("mlp, 784 features", "mlp", (784,), {"units": 64}, 128, 8192),
    Case("mlp, dropout and batch norm", "mlp", (64,), REGULARIZED, 128, 8192),
    Case("cnn, 8 x 8 images", "cnn", (8, 8, 1), {"filters": 16, "layers": 2}, 128, 1024),
]

Epoch = Callable[[], float]
"""Trains every trial for an epoch and returns the CPU seconds that it took."""


def timed(train: Callable[[], Any]) -> Epoch:
    """Return the CPU seconds of a call, its end awaited."""

    def epoch() -> float:
        began = time.process_time()
        jax.block_until_ready(train())
        return time.process_time() - began

    return epoch


def orders(rows: int, batch: int, trials: int) -> list[Array]:
    """Draw an order of the rows for each trial, (batches, batch); what fills no batch is left out."""
    rng = np.random.default_rng(0)
    shape = rows // batch, batch
    return [rng.permutation(rows)[: shape[0] * batch].reshape(shape).astype(np.int32) for _ in range(trials)]


def in_sequence(program: Program, data: tuple[Any, Any], drawn: list[Array]) -> Epoch:
    """Return what trains the trials one after another."""
    states, dials = [program.state() for _ in drawn], program.dials()
    ones = np.ones(drawn[0].shape, np.float32)
    run = jax.jit(program._many_steps, donate_argnums=0)

    def train() -> Any:
        for trial, rows in enumerate(drawn):
            states[trial] = run(states[trial], dials, *data, rows, ones, 0, len(rows))
            jax.block_until_ready(states[trial])
        return states

    return timed(train)


def stacked(program: Program, data: tuple[Any, Any], drawn: list[Array]) -> Epoch:
    """Return what trains all trials in one call."""
    states: Any = jax.tree.map(lambda *leaves: np.stack(leaves), *(program.state() for _ in drawn))
    dials, rows = np.stack([program.dials() for _ in drawn]), np.stack(drawn)
    ones = np.ones(drawn[0].shape, np.float32)
    axes = (0, 0, None, None, 0, None, None, None)
    run = jax.jit(jax.vmap(program._many_steps, in_axes=axes), donate_argnums=0)

    def train() -> Any:
        nonlocal states
        states = run(states, dials, *data, rows, ones, 0, rows.shape[1])
        return states

    return timed(train)


def compare(case: Case, trials: int, pairs: int) -> None:
    """Time the rounds and print a line."""
    made = prepared(case)
    assert made.program is not None
    data = jax.device_put(made.batches.x), jax.device_put(made.batches.y)
    drawn = orders(case.rows, case.batch_size, trials)
    sides = [make(made.program, data, drawn) for make in (in_sequence, stacked)]
    for train in sides:
        train()  # compiles
    found: list[list[float]] = [[], []]
    for turn in range(pairs):
        for side in (turn % 2, 1 - turn % 2):
            found[side].append(sides[side]())
    milliseconds = (1000 * statistics.median(seconds) for seconds in found)
    shown = " | ".join(f"{each:8.1f}" for each in milliseconds)
    ratios = sorted(a / b for a, b in zip(*found, strict=True))
    print(f"{case.name:28} | {trials:6} | {shown} | {said(ratios)}", flush=True)


def main() -> None:
    """Compare all cases."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.stacked_trials",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--stacked", type=int, nargs="+", default=[2, 8], metavar="TRIALS")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.pairs} rounds")
    print(f"{'':28} | trials | one, ms  | vmap, ms | one after another / vmap")
    for case in CASES:
        for trials in options.stacked:
            compare(case, trials, options.pairs)


if __name__ == "__main__":
    main()
