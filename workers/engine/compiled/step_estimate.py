"""Compiles the training step of a model without values, and reads what each device will hold and compute."""

import time
from typing import Any

import jax
import keras

from jobs.spec.plan.compiled_step import CompiledStep
from jobs.spec.plan.model_state import ModelState
from jobs.spec.sections.fit import FitSpec
from jobs.spec.sections.mesh import MeshSpec
from workers.engine.compiled.cache import bypass_jax_cache
from workers.engine.compiled.collectives import collectives_in
from workers.engine.models.abstract.abstract_build import AbstractBuild, described


def compile_step(
    build: AbstractBuild, state: ModelState, fit: FitSpec, mesh: MeshSpec, rows: int
) -> CompiledStep:
    """Compile the training step for the devices of the present distribution.

    Args:
        build: the model, with an optimizer.
        state: its variables.
        fit: the experiment's section.
        mesh: the devices and the layout; Keras' distribution has been set to it.
        rows: of the whole batch.
    """
    model, distribution = build.made.model, keras.distribution.distribution()
    groups = (
        model.trainable_variables,
        model.non_trainable_variables,
        model.optimizer.variables,
        model.metrics_variables,
    )
    shardings = tuple(
        [_sharding(distribution, build.references.get(id(variable), variable)) for variable in group]
        for group in groups
    )
    arguments = tuple(
        [described(variable, sharding) for variable, sharding in zip(group, of_group, strict=True)]
        for group, of_group in zip(groups, shardings, strict=True)
    )
    batch = jax.tree.map(lambda part: _divided(distribution, part), build.made.batch(rows))
    began = time.perf_counter()
    step = jax.jit(model.train_step, donate_argnums=0, out_shardings=(None, shardings))
    # A stored program may come without its text and its plan of the memory.
    with bypass_jax_cache():
        program = step.lower(arguments, batch).compile()
    seconds = time.perf_counter() - began
    memory, (collectives, has_loops) = program.memory_analysis(), collectives_in(program.as_text())
    held = state.held(fit, mesh)
    return CompiledStep(
        devices=mesh.size(),
        batch_size=rows,
        weights=held.weights,
        gradients=held.gradients,
        optimizer=held.optimizer,
        batch=max(memory.argument_size_in_bytes - held.weights - held.optimizer, 0),
        temporaries=memory.temp_size_in_bytes,
        flops=_flops(program),
        collectives=collectives,
        has_loops=has_loops,
        seconds=round(seconds, 3),
    )


def _sharding(distribution: Any, variable: Any) -> Any:
    """Return how a variable is divided; slots of an optimizer are divided like their variables."""
    return distribution.get_variable_layout(variable).backend_layout


def _divided(distribution: Any, part: Any) -> Any:
    layout = distribution.get_data_layout(part.shape).backend_layout
    return jax.ShapeDtypeStruct(part.shape, part.dtype, sharding=layout)


def _flops(program: Any) -> float | None:
    analysis = program.cost_analysis()
    # Some platforms return a list with one entry.
    entry = analysis[0] if isinstance(analysis, list) and analysis else analysis
    flops = entry.get("flops") if isinstance(entry, dict) else None
    return float(flops) if flops is not None and flops >= 0 else None
