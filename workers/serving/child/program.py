"""Compiles a model for inputs with fixed shapes, and checks that a program fits into memory."""

import logging
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from workers.engine.errors import is_out_of_memory
from workers.model_process.dtypes import computed_dtype
from workers.model_process.errors import plain_text
from workers.model_process.frames import MAX_BODY
from workers.serving.child.failures import OutOfMemory, ShapesRefused
from workers.serving.child.model import PureModel
from workers.system.usable_memory import available_memory

logger = logging.getLogger("trainyard.serving.child")

# Programs that need less are run without a look at the free memory, which takes less than a millisecond.
_SMALL_BYTES = 64 * 2**20


class Program(NamedTuple):
    """A compiled model, the bytes it needs beside its inputs, and its outputs' bytes."""

    run: Any
    needed_bytes: int
    output_bytes: int


def compile_program(model: PureModel, jitted: Any, shapes: Sequence[tuple[int, ...]]) -> Program:
    """Compile the model for inputs with these shapes, batch dimension first.

    Args:
        model: has the weights, and the inputs' names and types.
        jitted: `model.apply` under `jax.jit`.
        shapes: in the signature's order.

    Raises:
        ShapesRefused: the model cannot compute inputs with these shapes.
    """
    specs = model.signature.inputs
    placed = model.batch_sharding
    arguments = [
        jax.ShapeDtypeStruct(
            shape, computed_dtype(spec.dtype), sharding=None if placed is None else placed(shape[0])
        )
        for shape, spec in zip(shapes, specs, strict=True)
    ]
    try:
        lowered = jitted.lower(model.weights, arguments)
    # The layers run as Python code here, and any of them may raise anything for a shape that it refuses.
    except Exception as error:
        if is_out_of_memory(error):
            raise
        logger.warning("inputs of %s were refused: %s", shapes, plain_text(str(error), limit=300))
        named = zip(specs, shapes, strict=True)
        row_shapes = ", ".join(f"{spec.name!r} of {list(shape[1:])}" for spec, shape in named)
        raise ShapesRefused(f"The model cannot compute rows with {row_shapes}") from error
    output_bytes = sum(math.prod(out.shape) * out.dtype.itemsize for out in lowered.out_info)
    compiled = lowered.compile()
    analysis = compiled.memory_analysis()
    temporary = 0 if analysis is None else analysis.temp_size_in_bytes
    return Program(compiled, temporary + output_bytes, output_bytes)


def check_memory(program: Program, *, input_bytes: int = 0) -> None:
    """Refuse a batch for which the kernel would end this process.

    Args:
        program: computes the batch.
        input_bytes: of inputs that are not made yet.

    Raises:
        OutOfMemory: it needs more than is free, or its outputs are larger than a frame.
    """
    if program.output_bytes > MAX_BODY:
        raise OutOfMemory(
            f"The outputs of one batch would have {program.output_bytes:,} bytes; the limit is {MAX_BODY:,}"
        )
    # A GPU refuses by itself what does not fit.
    # NumPy has one copy of the inputs, and JAX another.
    needed = program.needed_bytes + 2 * input_bytes
    if needed < _SMALL_BYTES or jax.default_backend() != "cpu":
        return
    free = available_memory()
    if free is not None and needed > 0.9 * free:
        raise OutOfMemory(
            f"The batch needs {needed / 2**30:.1f} GiB of memory, and {free / 2**30:.1f} GiB are free"
        )
