"""Chooses the environment variables that limit a model child to a part of one GPU."""

import contextlib
from collections.abc import Mapping

FRACTION_VARIABLE = "TRAINYARD_SERVING_GPU_FRACTION"
"""The largest part of a GPU's memory that one version may use."""
# While a version is replaced, the old one and the new one are loaded at the same time.
DEFAULT_FRACTION = 0.4
_MOST_GPUS = 64
_ALLOWED_PREFIXES = ("XLA_PYTHON_CLIENT_", "XLA_CLIENT_")
_FRACTIONS = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")


def gpu_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a child; those in the prediction server's own environment come first.

    They have no effect on a machine without a GPU.

    Args:
        environment: the prediction server's.

    Raises:
        ValueError: the fraction is not a number above 0 and at most 1.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    chosen = {
        # By default JAX takes three quarters of a GPU when it starts.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        # As `nvidia-smi` and the workers number GPUs; CUDA's own order is the fastest GPU first.
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        **{name: value for name, value in environment.items() if name.startswith(_ALLOWED_PREFIXES)},
        # A version uses one GPU. On each further one that it sees, JAX would take some memory.
        "CUDA_VISIBLE_DEVICES": visible,
    }
    # JAX refuses to start if both of its names for the fraction are set.
    if not any(name in environment for name in _FRACTIONS):
        chosen["XLA_CLIENT_MEM_FRACTION"] = str(_fraction(environment.get(FRACTION_VARIABLE)))
    # With CUDA installed and all GPUs hidden, JAX would fail instead of using the CPU.
    if visible in ("", "-1"):
        chosen["JAX_PLATFORMS"] = environment.get("JAX_PLATFORMS", "cpu")
    return chosen


def gpus_of_mesh(environment: Mapping[str, str], count: int) -> str:
    """Return `CUDA_VISIBLE_DEVICES` for a child with a mesh: the first `count` GPUs of the server.

    CUDA leaves out numbers of GPUs that the machine does not have. A child takes some memory on each GPU that
    it sees, so it sees no others.

    Args:
        environment: the prediction server's.
        count: how many devices the mesh has.
    """
    named = environment.get("CUDA_VISIBLE_DEVICES")
    most = min(count, _MOST_GPUS)
    gpus = [str(number) for number in range(most)] if named is None else named.split(",")
    return ",".join(gpu.strip() for gpu in gpus[:most])


def _fraction(text: str | None) -> float:
    if not text:
        return DEFAULT_FRACTION
    with contextlib.suppress(ValueError):
        if 0 < (fraction := float(text)) <= 1:
            return fraction
    raise ValueError(f"{FRACTION_VARIABLE}={text} is not a number above 0 and at most 1, such as 0.4")
