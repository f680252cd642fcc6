"""Collects a model's variables, and its activations for one row, for a design."""

import math
from typing import NamedTuple

from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.mesh.placement import Weight
from jobs.spec.plan.plan import Plan
from jobs.spec.plan.training_memory import memory_per_device, optimizer_slots
from jobs.spec.plan.variables import described_input, model_layers


class ModelFacts(NamedTuple):
    """A model as a design sees it.

    Attributes:
        weights: its variables; empty if they are unknown before the model is built.
        activations_per_row: the bytes of activations for one row; None: unknown.
        slots: the optimizer's variables for each trained number.
        counts_positions: whether the variables have their positions, without which the work is only a part.
        note: of which of the experiment's models they are, or why they are not known; empty: nothing to add.
    """

    weights: tuple[Weight, ...]
    activations_per_row: float | None
    slots: int
    counts_positions: bool
    note: str = ""


def model_facts(spec: ExperimentSpec, profile: Profile | None, plan: Plan) -> ModelFacts:
    """Return the facts about a model.

    Args:
        spec: the experiment, without a mesh.
        profile: its data's profile; None until the data set is ready.
        plan: its plan, whose variables are whole, since it has no mesh.
    """
    described = described_input(spec, profile)
    positions: dict[str, int] = {}
    activations = None
    if described is not None:
        for layer in model_layers(spec.model, described):
            count = math.prod(layer.output[:-1])
            positions.update((variable.path, count) for variable in layer.variables)
        # Of the values in the spec: the plan's are those of the largest model of a search.
        activations = memory_per_device(spec, described).activations / spec.fit.batch_size
    elif plan.memory is not None:
        activations = plan.memory.activations / spec.fit.batch_size
    weights = tuple(
        Weight(
            variable.path,
            variable.shape,
            variable.trainable,
            # The plan has the bytes of the whole variable.
            max(variable.bytes // max(math.prod(variable.shape), 1), 1),
            positions.get(variable.path, 1),
        )
        for variable in plan.variables
    )
    return ModelFacts(
        weights, activations, optimizer_slots(spec.fit), described is not None, plan.variables_note
    )
