"""Computes a model's variables without Keras.

The plan and the engine use this list. A test compares it with built models.
"""

import math
from collections.abc import Iterator

from jobs.spec.checks import patterns
from jobs.spec.data.encoding import encoded, roles_differ
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.policies import POLICIES, PolicyInfo, policy_of_layer
from jobs.spec.sections.model import Model
from jobs.spec.sections.precision import PrecisionSpec
from jobs.spec.templates.columns import column_layers
from jobs.spec.templates.layers import Layer, Variable, dense, without_variables


def head_units(profile: Profile) -> int:
    """Return the output layer's width; two classes need only one probability."""
    return 1 if profile.task == "binary" else profile.outputs


def described_input(spec: ExperimentSpec, profile: Profile | None) -> Profile | None:
    """Return the profile of the model's input; None if its variables are unknown before it is built.

    Args:
        spec: the experiment.
        profile: its data's profile; None until the data set is ready.
    """
    if profile is None or spec.model.info.layers is None or roles_differ(spec, profile):
        return None
    model_input = encoded(spec, profile)
    return model_input if spec.model.refusal(model_input) is None else None


def variables(model: Model, profile: Profile) -> list[Variable]:
    """Return a model's variables for given data, in Keras' layer order.

    The normalization layer has no variables, because its configuration contains mean and variance. Dropout's
    seed generators (8 bytes each, with numbered paths) are omitted.

    Raises:
        ValueError: the template has no `layers` function.
    """
    return [variable for layer in _layers(model, profile) for variable in layer.variables]


def typed_variables(spec: ExperimentSpec, profile: Profile) -> list[Variable]:
    """Return `variables` with the types that the dtype policy of each layer gives them."""
    return [
        variable._replace(dtype=layer_policy(layer, spec.precision).keeps.name)
        for layer in _layers(spec.model, profile)
        for variable in layer.variables
    ]


def parameters(model: Model, profile: Profile) -> int:
    """Count the trainable parameters."""
    return sum(math.prod(v.shape) for v in variables(model, profile) if v.trainable)


def layer_names(model: Model, profile: Profile) -> set[str]:
    """Return a model's layer names for given data, which precision overrides match.

    Raises:
        ValueError: the template has no `layers` function.
    """
    # These change only a value's form, so the layer list leaves them out.
    more = {"flatten", "target_scale"} if profile.task == "regression" else {"flatten"}
    return {layer.name for layer in _layers(model, profile)} | more


def model_layers(model: Model, profile: Profile) -> list[Layer]:
    """Return a model's layers for given data, in Keras' order.

    Raises:
        ValueError: the template has no `layers` function.
    """
    return list(_layers(model, profile))


def _layers(model: Model, profile: Profile) -> Iterator[Layer]:
    if model.info.layers is None:
        raise ValueError(f"the variables of {model.info.name} are unknown before the model is built")
    output = profile.input_shape
    yield without_variables("normalize", output)
    # A template that reads the words of texts itself places the other columns behind them.
    if not model.info.reads_tokens and (columns := column_layers(profile, tokens=True)):
        yield from columns
        output = columns[-1].output
        profile = profile.model_copy(update={"input_shape": output})
    for layer in model.info.layers(model.resolved(), profile):
        output = layer.output
        yield layer
    yield dense("output", math.prod(output), head_units(profile))


def layer_policy(layer: Layer, precision: PrecisionSpec) -> PolicyInfo:
    """Return the dtype policy that a spec gives a layer."""
    try:
        return POLICIES[policy_of_layer(layer.name, precision)]
    except patterns.UnsupportedPattern:
        # Reported by `settings.problems`.
        return POLICIES[precision.policy]
