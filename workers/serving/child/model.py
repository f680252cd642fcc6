"""Loads a `.keras` file as a pure function of weights and inputs, with its signature."""

import atexit
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import keras
import numpy as np
from jax import numpy as jnp

from jobs.spec.signature import Signature, TensorSpec
from workers.engine.models import keras_private
from workers.engine.models.devices.memory import check_fits
from workers.engine.models.graph import graph_of
from workers.engine.models.outputs import output_names
from workers.model_process.dtypes import computed_dtype, served_dtype

if TYPE_CHECKING:
    from workers.serving.child.mesh import MeshLoad

_DRAWN = (
    keras.initializers.Orthogonal,
    keras.initializers.RandomNormal,
    keras.initializers.RandomUniform,
    keras.initializers.TruncatedNormal,
    keras.initializers.VarianceScaling,
    keras.initializers.Zeros,
)
_CODE = contextlib.ExitStack()
atexit.register(_CODE.close)


@dataclass(frozen=True)
class PureModel:
    """A model whose weights are arguments, never constants, of its function.

    Attributes:
        weights: trainable and non-trainable values, as `apply` takes them.
        signature: names, served dtypes and shapes without the batch dimension.
        batch_sharding: the sharding of a batch by its number of rows; None on one device.
    """

    weights: tuple[list[Any], list[Any]]
    signature: Signature
    _model: Any
    batch_sharding: Callable[[int], Any] | None = None

    def apply(self, weights: tuple[list[Any], list[Any]], inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs, flat, in the dtypes they are computed in; inference mode, no side effects.

        Args:
            weights: as in `self.weights`.
            inputs: arrays in the signature's order, each [batch, …].
        """
        model = self._model
        typed = [
            jnp.asarray(array, computed_dtype(tensor.dtype))
            for array, tensor in zip(inputs, model.inputs, strict=True)
        ]
        structured = keras.tree.pack_sequence_as(keras_private.input_structure(model), typed)
        outputs, _ = model.stateless_call(*weights, structured, training=False)
        return tuple(
            jnp.asarray(output, computed_dtype(spec.dtype))
            for output, spec in zip(keras.tree.flatten(outputs), self.signature.outputs, strict=True)
        )


def load(path: Path, code: Path | None = None, mesh: "MeshLoad | None" = None) -> PureModel:
    """Load a model, uncompiled: in safe mode with no custom objects, or with the objects in its code.

    Args:
        path: the file.
        code: its code's folder. This process must be in a sandbox then.
        mesh: the devices over which it is divided; None for one device.

    Raises:
        LargerThanDevice: the device has not enough memory for it.
        BadModel: the mesh has not, or too little of it is free.
        CodeImportFailure: the code cannot be imported.
        ValueError: it cannot be loaded, was never built, or has tensors with unsupported types.
    """
    graph = graph_of(mesh.load(path) if mesh is not None else _load_on_one_device(path, code))
    if not getattr(graph, "inputs", None):
        raise ValueError("the model has no symbolic inputs; serve a Functional or a built Sequential model")
    weights = (
        [variable.value for variable in graph.trainable_variables],
        [variable.value for variable in graph.non_trainable_variables],
    )
    signature = Signature(
        inputs=_specs([tensor.name for tensor in graph.inputs], graph.inputs),
        outputs=_specs(output_names(graph), graph.outputs),
    )
    if mesh is None:
        return PureModel(jax.device_put(weights), signature, graph)
    return PureModel(weights, signature, graph, mesh.batch_sharding(weights))


def _load_on_one_device(path: Path, code: Path | None) -> Any:
    check_fits(path)
    if code is None:
        with _variables_begin_as_zeros():
            return keras.saving.load_model(path, compile=False, safe_mode=True)
    from workers.engine.models.own_code.in_use import using_folder
    from workers.engine.models.own_objects import objects_for

    # Never left: a layer may import a module of the code when it is called.
    _CODE.enter_context(using_folder(code))
    with objects_for(path):
        return keras.saving.load_model(path, compile=False, safe_mode=False)


@contextlib.contextmanager
def _variables_begin_as_zeros() -> Iterator[None]:
    """Have variables with random initial values begin as zeros: the file replaces them all.

    Drawing the values would take most of a load's time, because JAX compiles programs for it.
    """

    def initialize(variable: Any, initializer: Any, draw: Callable[[Any, Any], None]) -> None:
        if isinstance(initializer, _DRAWN):
            zeros = np.zeros(variable.shape, jax.dtypes.canonicalize_dtype(variable.dtype))
            # `jnp.zeros` would compile a program, too.
            keras_private.set_initial_value(variable, jax.device_put(zeros))
        else:
            draw(variable, initializer)

    with keras_private.initialized_by(initialize):
        yield


def _specs(names: Sequence[str], tensors: Sequence[Any]) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(name=name, dtype=served_dtype(tensor.dtype), shape=tuple(tensor.shape[1:]))
        for name, tensor in zip(names, tensors, strict=True)
    )
