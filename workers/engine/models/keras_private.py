"""Keeps in one place the private parts of Keras that the engine needs.

A Keras release may change them at any time, so `pyproject.toml` has an upper bound, and a test lets no
other module use one.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import keras
from keras.src.backend.common import global_state
from keras.src.backend.jax import trainer as jax_trainer
from keras.src.initializers import random_initializers
from keras.src.models.functional import Functional
from keras.src.saving import object_registration, saving_lib
from keras.src.utils.naming import to_snake_case

__all__ = [
    "Functional",
    "global_state",
    "object_registration",
    "random_initializers",
    "to_snake_case",
]


def layers_inside(layer: Any, *, include_self: bool = True) -> list[Any]:
    """List the layers in a model or layer at any depth, itself first."""
    return list(layer._flatten_layers(include_self=include_self))


def has_layers(layer: Any) -> bool:
    """Return whether a layer contains other layers."""
    return bool(layer._layers)


def functional_of(model: Any) -> Any:
    """Return the functional model inside a Sequential; None for other models, and before it is built."""
    return getattr(model, "_functional", None)


def operation_of(tensor: Any) -> Any:
    """Return the layer or operation that makes a symbolic tensor."""
    return tensor._keras_history.operation


def calls_of(operation: Any) -> list[Any]:
    """Return all calls of a layer or operation, in all models."""
    return list(operation._inbound_nodes)


def arguments_of(call: Any) -> tuple[Any, Any]:
    """Return the arguments of a call of a layer or operation, by position and by name."""
    return call.arguments.args, call.arguments.kwargs


def calls_by_depth(graph: Any) -> Iterable[list[Any]]:
    """Return the calls inside a functional model, in groups; none for other models."""
    groups: dict[int, list[Any]] = getattr(graph, "_nodes_by_depth", {})
    return groups.values()


def run_graph(graph: Any, inputs: Any, called: Callable[[Any], Any] = lambda operation: operation) -> Any:
    """Call a functional model's layers on other inputs; `called` returns the function for an operation."""
    return graph._run_through_graph(inputs, operation_fn=called)


def input_structure(graph: Any) -> Any:
    """Return how a functional model takes its inputs: one tensor, a list or a dictionary."""
    return graph._inputs_struct


def build_metrics(model: Any, batch: tuple[Any, ...]) -> None:
    """Create the variables for loss and metrics for a batch, as `fit` does before its first step."""
    model._symbolic_build(data_batch=batch)


def compiled_loss(model: Any) -> Any:
    """Return the object that computes a compiled model's loss, without penalties."""
    return model._compile_loss


def loss_tracker(model: Any) -> Any:
    """Return the metric that averages a compiled model's loss."""
    return model._loss_tracker


def metrics_given(model: Any) -> tuple[Any, Any]:
    """Return `metrics` and `weighted_metrics` as they were passed to `compile`."""
    compiled = model._compile_metrics
    return getattr(compiled, "_user_metrics", None), getattr(compiled, "_user_weighted_metrics", None)


def loss_given(model: Any) -> tuple[Any, Any]:
    """Return `loss` and `loss_weights` as they were passed to `compile`."""
    compiled = model._compile_loss
    return (None, None) if compiled is None else (compiled._user_loss, compiled._user_loss_weights)


def learning_rate_of(optimizer: Any) -> Any:
    """Return the rate or the schedule; the public `learning_rate` is always the present step's rate."""
    return optimizer._learning_rate


def has_weight_decay(optimizer: Any, variable: Any) -> bool:
    """Return whether an optimizer with weight decay applies it to a variable."""
    return bool(optimizer._use_weight_decay(variable))


def replace_weight_decay(optimizer: Any, apply: Callable[[Any], None]) -> None:
    """Have an optimizer apply its weight decay with another function of the variables."""
    optimizer._apply_weight_decay = apply


def moving_averages(optimizer: Any) -> list[Any]:
    """Return the trainable variables' moving averages, which `SwapEMAWeights` reads as well."""
    return list(optimizer._model_variables_moving_average)


def is_quantized(layer: Any) -> bool:
    """Return whether a layer is quantized."""
    return bool(getattr(layer, "_is_quantized", False))


def has_embeddings(layer: Any) -> bool:
    """Return whether a layer's values are an embedding table, not a kernel."""
    return hasattr(layer, "_embeddings")


def stored_table(layer: Any) -> Any:
    """Return a layer's kernel or table as it is stored: integers if it is quantized."""
    return layer._embeddings if has_embeddings(layer) else layer._kernel


def scale_of_einsum(layer: Any, scale: Any) -> Any:
    """Return a quantized EinsumDense's scale in a shape that divides its kernel."""
    return layer._adjust_scale_for_dequant(scale)


def layout_of(variable: Any) -> Any:
    """Return the layout or sharding with which a variable was made under a distribution; None for others."""
    return getattr(variable, "_layout", None)


def lay_out_each_batch() -> None:
    """Have `fit`, `evaluate` and `predict` divide each batch by its own shape, in this process.

    Keras 3.15.1 computes the layouts from the first batch and keeps them, so a shorter last batch that the
    mesh does not divide ends in an error of JAX.
    """

    def divided(iterator: Any, distribution: Any) -> Iterator[Any]:
        del distribution  # `_distribute_data` asks for the current one
        for batch in iterator.data_adapter.get_jax_iterator():
            yield jax_trainer._distribute_data(batch)

    jax_trainer.JAXEpochIterator._get_distributed_iterator = divided


def set_initial_value(variable: Any, value: Any) -> None:
    """Give a variable that is being made its first value."""
    variable._initialize(value)


@contextmanager
def initialized_by(initialize: Callable[[Any, Any, Callable[[Any, Any], None]], None]) -> Iterator[None]:
    """Initialize variables with a function; it gets the variable, the initializer, and Keras' own function.

    Keras has no public way to build a layer without drawing its values.
    """
    draw = keras.Variable._initialize_with_initializer
    keras.Variable._initialize_with_initializer = lambda variable, initializer: initialize(
        variable, initializer, draw
    )
    try:
        yield
    finally:
        keras.Variable._initialize_with_initializer = draw


def replace_initialization(initialize: Callable[[Any, Any, Callable[[Any, Any], None]], None]) -> None:
    """Initialize variables with a function from now on; see `initialized_by`."""
    draw = keras.Variable._initialize_with_initializer
    keras.Variable._initialize_with_initializer = lambda variable, initializer: initialize(
        variable, initializer, draw
    )


class WeightsFile(saving_lib.H5IOStore):  # type: ignore[misc,unused-ignore]
    """Keras' HDF5 file with weights. A subclass decides how a value is written and read."""

    def create(self, key: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return a new HDF5 data set in the group of the layer that is being saved."""
        if not self._h5_entry_initialized:
            self._create_h5_group(self._h5_entry_path)
        return self._h5_entry_group.create_dataset(key, shape=shape, dtype=dtype)

    def stored(self, key: str) -> Any:
        """Return an HDF5 data set of the layer that is being loaded, after Keras' checks of its size."""
        return saving_lib.safe_get_h5_dataset(self._h5_entry_group, key)


@contextmanager
def weights_in(kind: type[WeightsFile]) -> Iterator[None]:
    """Have Keras save and load weights with a subclass, in files on the disk, never in memory."""
    before = saving_lib.H5IOStore, saving_lib.is_memory_sufficient
    saving_lib.H5IOStore, saving_lib.is_memory_sufficient = kind, lambda _: False
    try:
        yield
    finally:
        saving_lib.H5IOStore, saving_lib.is_memory_sufficient = before


@contextmanager
def saved_at(time: dt.datetime) -> Iterator[None]:
    """Have Keras write a time into the files of models, instead of the present one."""
    module = saving_lib.datetime
    saving_lib.datetime = SimpleNamespace(datetime=SimpleNamespace(now=lambda: time))
    try:
        yield
    finally:
        saving_lib.datetime = module


@contextmanager
def assigned_by(value_for: Callable[[Any, Any], Any]) -> Iterator[None]:
    """Have a function replace each value that is assigned to a variable; it gets both."""
    assign = keras.Variable.assign
    keras.Variable.assign = lambda variable, value: assign(variable, value_for(variable, value))
    try:
        yield
    finally:
        keras.Variable.assign = assign
