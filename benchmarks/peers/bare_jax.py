"""Trains a dense network with Adam in plain JAX: a lower bound for the duration of an epoch.

There are no layers, metric objects or settings: the epoch is one compiled loop over the shuffled rows. Only
arithmetic remains, so no loop around Keras' `train_step` can be much faster.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from workers.engine.compiled.autotune import gathers_before_loop

FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-7


class State(NamedTuple):
    """Weights, both of Adam's moments, and the number of steps."""

    weights: dict[str, Any]
    first: dict[str, Any]
    second: dict[str, Any]
    steps: Any


def trains(x: Any, y: Any, *, units: int, batch_size: int, learning_rate: float) -> Callable[[int], float]:
    """Return a function that trains one hidden layer on ten classes and returns its CPU seconds.

    Args:
        x: (rows, features) float32.
        y: (rows,) int32.
        units: of the hidden layer.
        batch_size: rows in a batch.
        learning_rate: of Adam.
    """
    rng = np.random.default_rng(0)
    state = initial_state(rng, x.shape[1], units)
    epoch = jax.jit(partial(run_epoch, batch_size=batch_size, learning_rate=learning_rate), donate_argnums=0)
    x, y = jnp.asarray(x), jnp.asarray(y, dtype=jnp.int32)

    def train(epochs: int) -> float:
        nonlocal state
        began = time.process_time()
        for _ in range(epochs):
            state, sums = epoch(state, rng.permutation(len(x)), x, y)
            jax.block_until_ready(sums)
        return time.process_time() - began

    train(1)
    return train


def initial_state(rng: np.random.Generator, features: int, units: int) -> State:
    """Return the state before the first step."""
    shapes = {"hidden": (features, units), "hidden_bias": (units,), "out": (units, 10), "out_bias": (10,)}
    weights = {name: jnp.asarray(rng.normal(0, 0.05, s), jnp.float32) for name, s in shapes.items()}
    return State(weights, jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights), 0.0)


def run_epoch(state: State, order: Any, x: Any, y: Any, *, batch_size: int, learning_rate: float) -> Any:
    """Return the state after an epoch, with the sums of loss and accuracy over its steps."""
    gathered = gathers_before_loop(x.nbytes + y.nbytes)  # the choice with less CPU time
    if gathered:
        x, y = x[order], y[order]

    def step(number: Any, carried: Any) -> Any:
        state, sums = carried
        if gathered:
            batch = [lax.dynamic_slice_in_dim(array, number * batch_size, batch_size) for array in (x, y)]
        else:
            rows = lax.dynamic_slice_in_dim(order, number * batch_size, batch_size)
            batch = [x[rows], y[rows]]
        (loss, accuracy), gradients = jax.value_and_grad(loss_of, has_aux=True)(state.weights, *batch)
        return adam(state, gradients, learning_rate), (sums[0] + loss, sums[1] + accuracy)

    return lax.fori_loop(0, len(order) // batch_size, step, (state, (0.0, 0.0)))


def loss_of(weights: dict[str, Any], x: Any, y: Any) -> Any:
    """Return the mean cross-entropy and accuracy of a batch."""
    hidden = jax.nn.relu(x @ weights["hidden"] + weights["hidden_bias"])
    logits = hidden @ weights["out"] + weights["out_bias"]
    loss = -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1).mean()
    return loss, (logits.argmax(axis=1) == y).mean()


def adam(state: State, gradients: dict[str, Any], learning_rate: float) -> State:
    """Do one Adam step (Kingma and Ba 2015, end of section 2)."""
    steps = state.steps + 1.0
    first = jax.tree.map(lambda m, g: m + (g - m) * (1 - FIRST_DECAY), state.first, gradients)
    second = jax.tree.map(lambda v, g: v + (g * g - v) * (1 - SECOND_DECAY), state.second, gradients)
    rate = learning_rate * jnp.sqrt(1 - SECOND_DECAY**steps) / (1 - FIRST_DECAY**steps)
    weights = jax.tree.map(
        lambda w, m, v: w - rate * m / (jnp.sqrt(v) + EPSILON), state.weights, first, second
    )
    return State(weights, first, second, steps)
