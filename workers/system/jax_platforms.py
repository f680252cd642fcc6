"""Reads JAX_PLATFORMS, and asks JAX in another process whether it can use these platforms."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import NamedTuple

VARIABLE = "JAX_PLATFORMS"
GPU_PLATFORMS = ("cuda", "gpu")
PROBE_SECONDS = 120.0
_PROBE = """
import json, sys
try:
    import jax
    found = [[device.platform, device.id, device.device_kind] for device in jax.devices()]
    print(json.dumps({"devices": found}))
except BaseException as error:
    print(json.dumps({"error": str(error) or "it has no plugin for this platform"}))
"""


class PlatformDevice(NamedTuple):
    """A device as JAX names it."""

    platform: str
    id: int
    kind: str


class Probe(NamedTuple):
    """JAX's devices, or why it has none."""

    devices: tuple[PlatformDevice, ...] = ()
    error: str = ""


def requested_platforms(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the platforms that an operator has chosen, the default one first; empty: JAX chooses."""
    names = (name.strip() for name in environment.get(VARIABLE, "").split(","))
    return tuple(name for name in names if name)


def probe(environment: Mapping[str, str]) -> Probe:
    """Start JAX in another process and return its devices. It takes some seconds.

    Args:
        environment: the process's variables.
    """
    variables = {**environment, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    try:
        done = subprocess.run(  # noqa: S603 - this program, with a constant text
            [sys.executable, "-c", _PROBE],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Probe(error=f"JAX did not start within {PROBE_SECONDS:.0f} s")
    lines = done.stdout.decode(errors="replace").splitlines()
    try:
        answer = json.loads(lines[-1])
    except (IndexError, ValueError):
        return Probe(error=f"JAX ended with the exit status {done.returncode}")
    if "error" in answer:
        return Probe(error=" ".join(answer["error"].split()))
    return Probe(tuple(PlatformDevice(*device) for device in answer["devices"]))
