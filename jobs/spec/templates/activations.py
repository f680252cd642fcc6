"""Lists the templates' activations. Each maps 0 to 0, which `width_padding` requires."""

from typing import Any, Literal, get_args

Activation = Literal["relu", "gelu", "silu", "tanh"]
ACTIVATION_RANGE: dict[str, Any] = {"kind": "choice", "values": list(get_args(Activation))}
