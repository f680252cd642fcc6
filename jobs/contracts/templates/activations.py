"""The activations that templates offer: each is 0 at 0, which `width_padding` relies on."""

from typing import Any, Literal, get_args

Activation = Literal["relu", "gelu", "silu", "tanh"]
ACTIVATION_RANGE: dict[str, Any] = {"kind": "choice", "values": list(get_args(Activation))}
