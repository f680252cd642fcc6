"""Lists the dtype policies: their formats, their use in training and inference, and the layers that get them.

The form, the plan, REST and the engine read this table.
"""

from typing import NamedTuple

from jobs.spec.checks import patterns
from jobs.spec.number_formats import FORMATS, NumberFormat
from jobs.spec.sections.precision import UNSUPPORTED_POLICIES, Policy, PrecisionSpec

HALF = ("float16", "bfloat16")
"""Formats of 16 bits, to which a trained model can be cast."""
OUTPUT_LAYERS = ("normalize", "output", "output_activation", "target_scale")
"""These are never below float32 unless overridden: in 16 bits raw inputs overflow and probabilities are
rounded."""


class PolicyInfo(NamedTuple):
    """A dtype policy.

    Attributes:
        name: the value in `precision.policy`.
        computes: the format of its computations.
        keeps: the format of its weights, their gradients and the optimizer's variables.
        training: what training with it means, as a sentence.
        inference: what predicting with it means, as a sentence.
        layers: which layers get it; empty: all of them, except for input scaling and output.
    """

    name: Policy
    computes: NumberFormat
    keeps: NumberFormat
    training: str
    inference: str
    layers: str = ""

    @property
    def refusal(self) -> str:
        """Return why training refuses it; empty if it trains."""
        return UNSUPPORTED_POLICIES.get(self.name, "")

    @property
    def activation_bytes(self) -> int:
        """Return the size of one number that a layer passes on."""
        # The results of products in 8 bits are wider.
        return FORMATS["float32"].bytes if self.name == "float8" else self.computes.bytes

    @property
    def training_bytes(self) -> int:
        """Return the bytes for each parameter in a training with Adam: weight, gradient and two slots."""
        return 4 * self.keeps.bytes


POLICIES: dict[Policy, PolicyInfo] = {
    info.name: info
    for info in (
        PolicyInfo(
            "float32",
            FORMATS["float32"],
            FORMATS["float32"],
            "Trains everything. The reference for the others.",
            "Predicts as it was trained.",
        ),
        PolicyInfo(
            "mixed_bfloat16",
            FORMATS["bfloat16"],
            FORMATS["float32"],
            "Trains nearly everything: the range of float32, so no loss scale, but coarse steps. The weights "
            "stay in float32.",
            "Faster where the device computes in bfloat16; the file is as large as in float32.",
        ),
        PolicyInfo(
            "mixed_float16",
            FORMATS["float16"],
            FORMATS["float32"],
            "Trains with a scaled loss: finer steps than bfloat16 in a small range, so small gradients would "
            "become 0. The weights stay in float32.",
            "Faster where the device computes in float16; values above 65 504 overflow.",
        ),
        PolicyInfo(
            "bfloat16",
            FORMATS["bfloat16"],
            FORMATS["bfloat16"],
            "Refused: an update below 1/256 of its weight is rounded away. With Adam, digits reached an "
            "accuracy of 0.73 instead of 0.97.",
            "Half the file and memory. Cast a trained model by the step Quantize.",
        ),
        PolicyInfo(
            "float16",
            FORMATS["float16"],
            FORMATS["float16"],
            "Refused: gradients overflow, and the optimizer's small numbers become 0. With Adam, digits "
            "reached an accuracy of 0.67 instead of 0.97.",
            "Half the file and memory, finer steps than bfloat16. Cast a trained model by the step Quantize.",
        ),
        PolicyInfo(
            "float64",
            FORMATS["float64"],
            FORMATS["float64"],
            "Trains everything, to check numerics: twice the memory, and slow on most GPUs.",
            "The prediction server computes in float32, so it gains nothing there.",
        ),
        PolicyInfo(
            "float8",
            FORMATS["float8_e4m3fn"],
            FORMATS["float32"],
            "Trains dense layers: their inputs and kernels are rounded to 8 bits, gradients to e5m2, each "
            "with a scale that follows the largest values. Only worth it for large layers on new GPUs.",
            "Predicts as it was trained; elsewhere than on new GPUs 8 bits are emulated, which is slower.",
            layers="Dense and EinsumDense outside attention; all others stay in float32",
        ),
    )
}
"""By name, in the order in which the form lists them."""


def policy_of_layer(layer: str, precision: PrecisionSpec) -> Policy:
    """Return the policy for the layer named `layer`. The last matching override wins.

    Raises:
        UnsupportedPattern: an override's pattern is refused; older releases accepted more patterns.
    """
    chosen = precision.policy
    if layer in OUTPUT_LAYERS and POLICIES[chosen].computes.bytes < FORMATS["float32"].bytes:
        chosen = "float32"
    for override in precision.overrides:
        if patterns.found_in(override.match, layer):
            chosen = override.policy
    return chosen


def needs_double(precision: PrecisionSpec) -> bool:
    """Return whether a run needs numbers of 64 bits, which JAX computes only if x64 is enabled."""
    return "float64" in (precision.policy, *(override.policy for override in precision.overrides))
