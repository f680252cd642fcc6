"""Names, precision and dropout for a template's layers.

Layer names are fixed (`dense_1`, `conv_2`, `output` …), since layout rules and precision overrides name them.
Every layer is a built-in one, so any process can load the saved model in safe mode. Templates pass no seeds:
`initial_values` seeds every layer by its name.
"""

from dataclasses import dataclass
from typing import Any

import keras

from jobs.spec.base import Frozen
from jobs.spec.data.profile import Profile
from jobs.spec.sections.precision import PrecisionSpec
from jobs.spec.templates.info import TemplateInfo
from workers.engine.models.keras_private import layers_inside
from workers.engine.models.precision import building_policy, policy_of

RATE_ARGUMENT = "rate_argument"
"""Attribute of a Dropout layer with the name of the template argument that is its rate."""


@dataclass(frozen=True)
class Site:
    """Properties that all layers in one model share.

    Attributes:
        precision: the layers' dtype policies.
        profile: the data set's profile.
        args: the template's arguments, resolved.
        inputs: the model's input before the normalization, (rows, …) float32.
    """

    precision: PrecisionSpec
    profile: Profile
    args: Frozen
    inputs: Any

    def named(self, name: str) -> dict[str, Any]:
        """Return the name and dtype arguments for the layer `name`."""
        return {"name": name, "dtype": building_policy(policy_of(name, self.precision))}

    def dropout(self, name: str, argument: str = "dropout") -> Any:
        """Return the Dropout layer `name`, whose rate is an argument that the template declares as traced."""
        layer = keras.layers.Dropout(getattr(self.args, argument), **self.named(name))
        setattr(layer, RATE_ARGUMENT, argument)
        return layer


def set_traced(model: Any, info: TemplateInfo, args: Frozen) -> None:
    """Set the rates and the penalty in a built model's layers to the values in `args`.

    Args:
        model: built from arguments that differ from `args` only in `info.traced`.
        info: its template's properties.
        args: resolved.
    """
    for layer in layers_inside(model, include_self=False):
        if argument := getattr(layer, RATE_ARGUMENT, ""):
            layer.rate = getattr(args, argument)
    if info.head_penalty and (penalty := model.get_layer("output").kernel_regularizer) is not None:
        penalty.l2 = getattr(args, info.head_penalty)
