"""Makes JAX use the accelerator that the runner was given, or fail: never the CPU without notice."""

import importlib.util
import os
from collections.abc import Mapping

from workers.engine.errors import NoAccelerator
from workers.runner.environment import Environment

NO_PLUGIN = "it has no plugin for it"
CHOSEN = {"cuda": "gpu", "rocm": "gpu"}
"""How JAX calls the devices of these platforms."""
CUDA_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")


def use_accelerator(environment: Environment) -> None:
    """Choose JAX's platform. With an accelerator, also start JAX and check the result.

    Raises:
        NoAccelerator: the process was given a GPU, or its task needs one, and JAX cannot use it.
    """
    import jax

    # JAX has read this variable when it was imported; in a forked runner, before there were devices.
    if "JAX_PLATFORMS" not in os.environ and (pinned := _platform(os.environ)) is not None:
        jax.config.update("jax_platforms", pinned)
    expected = expected_platform(environment, os.environ)
    if expected is None:
        return
    try:
        backend = jax.default_backend()
    # An assertion of JAX fails if there is no device of the platform at all.
    except (RuntimeError, AssertionError) as error:
        raise NoAccelerator(_message(expected, f"cannot use it: {str(error) or NO_PLUGIN}")) from error
    if backend != expected:
        raise NoAccelerator(_message(expected, f"uses the {backend.upper()}"))


def expected_platform(environment: Environment, variables: Mapping[str, str]) -> str | None:
    """Return the platform that JAX must use, by JAX's name for it; None if it may use the CPU."""
    if environment.platform is not None:
        platform = {"cuda": "gpu"}.get(environment.platform, environment.platform)
        return None if platform == "cpu" else platform
    # With several platforms, JAX uses the next one if the first is missing.
    chosen = variables.get("JAX_PLATFORMS", "").split(",")[0].strip()
    if chosen:
        return None if chosen == "cpu" else CHOSEN.get(chosen, chosen)
    return "gpu" if variables.get("CUDA_VISIBLE_DEVICES") else None


def _platform(variables: Mapping[str, str]) -> str | None:
    """Return the platform for a task that names none; None leaves the choice to JAX."""
    # The supervisor sets it to the runner's GPUs, and to nothing where the runner has none.
    visible = variables.get("CUDA_VISIBLE_DEVICES")
    if visible:
        return "cuda"
    # With the plugin installed and all GPUs hidden, JAX would fail instead of using the CPU.
    return "cpu" if visible == "" and any(map(importlib.util.find_spec, CUDA_PLUGINS)) else None


def _message(expected: str, reason: str) -> str:
    visible_devices = os.environ.get("CUDA_VISIBLE_DEVICES") or "none"
    return (
        f"this run needs a {expected.upper()} (CUDA_VISIBLE_DEVICES: {visible_devices}), but JAX {reason}. "
        "Check nvidia-smi on the worker's machine, and the help page about GPUs"
    )
