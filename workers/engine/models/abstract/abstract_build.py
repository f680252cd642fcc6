"""Builds a model without bytes for its variables, and describes the needs of its training.

JAX traces the build: a variable has a shape and a type, but no value. The model can be compiled afterwards
and can be called in traced functions; its values must not be read.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import keras

from jobs.spec.plan.model_state import BuiltVariable, ModelState
from jobs.spec.templates.layers import bytes_of_type
from workers.engine.errors import EngineError, affects_process
from workers.engine.models.build_memory import small_enough
from workers.engine.models.keras_private import initialized_by, set_initial_value
from workers.model_process.library_messages import plain_message

ROWS = 8
"""A batch of this size, and one of twice the size, show what each row needs."""


@dataclass(frozen=True)
class StepModel:
    """A model with the form of its batches.

    Attributes:
        model: with an optimizer and built metrics, if `is_compiled`.
        batch: returns the parts of a batch with so many rows, as shapes and types: x, y and perhaps weights.
        is_compiled: whether its training step is known.
    """

    model: Any
    batch: Callable[[int], tuple[Any, ...]]
    is_compiled: bool = True


@dataclass(frozen=True)
class AbstractBuild:
    """A model that was built without values.

    Attributes:
        made: the model.
        references: for each optimizer variable that is like a variable of the model, by its id: that one.
        note: why the model had to be built with values after all; empty if it had not.
    """

    made: StepModel
    references: Mapping[int, Any]
    note: str = ""


def build_abstract(build: Callable[[], StepModel]) -> AbstractBuild:
    """Build a model without values for its variables.

    Code may read values while it builds its model, or draw numbers without a seed. Then the model is built
    once more with values, if it is small enough.

    Args:
        build: builds the model, and compiles it if that is known. It may be called twice.

    Raises:
        CodeBuildFailure: the model has to be built with values and is too large for this process.
        Exception: it cannot be built at all.
    """
    made: list[StepModel] = []

    def traced() -> int:
        made.append(build())
        return 0

    keras.backend.clear_session(free_memory=False)
    with _recorded_slots() as references:
        try:
            with initialized_by(_leave_empty):
                jax.eval_shape(traced)
            return AbstractBuild(made[-1], references)
        # Any error may come from a value that does not exist; a real one occurs again.
        except Exception as error:
            if affects_process(error):
                raise
            reason = _reason(error)
        keras.backend.clear_session(free_memory=False)
        references.clear()
        with small_enough():
            real = build()
    return AbstractBuild(
        real, references, f"the model was built with values to find its variables, because {reason}"
    )


def _leave_empty(variable: Any, initializer: Any, draw: Callable[[Any, Any], None]) -> None:
    """Give a variable that is being made a traced value, which has no bytes."""
    del initializer, draw
    set_initial_value(variable, jax.numpy.zeros(variable.shape, variable.dtype))


def _reason(error: BaseException) -> str:
    """Return which action of a build is impossible without values."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, jax.errors.JAXTypeError | jax.errors.JAXIndexError):
            return "it reads values of variables while it is built"
        if "[JAX RNG]" in str(cause):
            return "it draws random numbers without a seed while it is built"
        cause = cause.__cause__ or cause.__context__
    message = str(error) if isinstance(error, EngineError) else plain_message(error)
    return f"it could not be built without: {message.rstrip('.')}"


@contextmanager
def _recorded_slots() -> Iterator[dict[int, Any]]:
    """Record which optimizer variables are made like which variables of the model."""
    kind = keras.optimizers.Optimizer
    add = kind.add_variable_from_reference
    references: dict[int, Any] = {}

    def recorded(optimizer: Any, reference_variable: Any, *arguments: Any, **named: Any) -> Any:
        variable = add(optimizer, reference_variable, *arguments, **named)
        references[id(variable)] = reference_variable
        return variable

    kind.add_variable_from_reference = recorded
    try:
        yield references
    finally:
        kind.add_variable_from_reference = add


def state_of(build: AbstractBuild) -> ModelState:
    """Describe the variables of a model, those of its optimizer, and the memory for each row of a batch."""
    model, compiled = build.made.model, build.made.is_compiled
    optimizer = list(model.optimizer.variables) if compiled else []
    slots: dict[int, int] = {}
    for variable in optimizer:
        if (reference := build.references.get(id(variable))) is not None:
            slots[id(reference)] = slots.get(id(reference), 0) + 1
    trainable = {id(variable) for variable in model.trainable_variables}
    listed = tuple(
        BuiltVariable(
            path=variable.path,
            shape=tuple(variable.shape),
            dtype=str(variable.dtype),
            trainable=id(variable) in trainable,
            slots=slots.get(id(variable), 0) if compiled else None,
        )
        for variable in model.weights
    )
    beside = (variable for variable in optimizer if id(variable) not in build.references)
    return ModelState(
        variables=listed,
        optimizer_bytes=sum(_bytes_of(variable) for variable in beside),
        row_bytes=_row_bytes(build.made),
    )


def _bytes_of(part: Any) -> int:
    """Return the bytes of a variable, or of an array that is known by its shape and type."""
    size = bytes_of_type(str(part.dtype))
    for length in part.shape:
        size *= int(length)
    return size


def _row_bytes(made: StepModel) -> int | None:
    """Return the bytes for each row that the forward pass keeps for the backward pass; None if unknown."""
    model = made.model
    if not model.trainable_variables:
        return 0
    trainable, other = (
        [described(variable) for variable in group]
        for group in (model.trainable_variables, model.non_trainable_variables)
    )

    def kept(trainable: Any, other: Any, x: Any) -> Any:
        def outputs(trainable: Any) -> Any:
            return keras.tree.flatten(model.stateless_call(trainable, other, x, training=True)[0])

        # The function for the backward pass is a tree of the values that it reads.
        return jax.vjp(outputs, trainable)[1]

    sizes = []
    try:
        for rows in (ROWS, 2 * ROWS):
            leaves = jax.tree.leaves(jax.eval_shape(kept, trainable, other, made.batch(rows)[0]))
            sizes.append(sum(_bytes_of(leaf) for leaf in leaves))
    # The model may be of a class of users, whose call may raise anything.
    except Exception as error:
        if affects_process(error):
            raise
        return None
    return max((sizes[1] - sizes[0]) // ROWS, 0)


def described(variable: Any, sharding: Any = None) -> Any:
    """Return a variable's shape and type, as functions that are traced take it."""
    return jax.ShapeDtypeStruct(tuple(variable.shape), jax.numpy.dtype(variable.dtype), sharding=sharding)
