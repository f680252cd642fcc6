"""Compiled functions that later processes load by what they were made of, without tracing them.

JAX finds a compiled program by what it computes, which takes tracing and lowering it first: a quarter of a
second of Python for the step of a small model, in every process. Here the program of a model lies in the same
folder under a digest of all that it follows from: the spec, the rows' shapes, our code, the libraries, JAX's
settings, the processor.
"""

import functools
import hashlib
import json
import logging
import os
import pickle
import platform
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import keras
from jax.experimental import serialize_executable

from workers.engine import compilecache

log = logging.getLogger(__name__)

LIBRARIES = ("jax", "jaxlib", "keras", "numpy", "ml-dtypes")
SETTINGS = (
    "jax_default_matmul_precision",
    "jax_enable_x64",
    "jax_default_prng_impl",
    "jax_numpy_dtype_promotion",
)
VARIABLES = ("XLA_", "JAX_", "KERAS_", "NPROC", "OMP_")
"""Beginnings of the environment variables that compilers read."""


class Ahead:
    """A function, compiled for each shape of its arguments or loaded as another process has compiled it.

    Args:
        function: of arrays and trees of arrays.
        name: under which the programs are kept: a digest of all that the function follows from but its
            arguments; None to keep none.
        donated: the argument that it consumes, if it does.
    """

    def __init__(self, function: Callable[..., Any], name: str | None, donated: int | None = None) -> None:
        self._jit = jax.jit(function, donate_argnums=() if donated is None else donated)
        self._name = name
        self._programs: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Call it. Of arguments that are trees the shapes must be the same at each call."""
        if self._name is None:
            return self._jit(*arguments)
        shapes = tuple((each.shape, each.dtype) for each in arguments if hasattr(each, "shape"))
        if (program := self._programs.get(shapes)) is None:
            program = self._programs[shapes] = self._program(shapes, arguments)
        return program(*arguments)

    def _program(self, shapes: tuple[Any, ...], arguments: tuple[Any, ...]) -> Callable[..., Any]:
        cache = compilecache.in_use()
        if cache is None:
            return self._jit
        key = f"whole-{digest({'name': self._name, 'shapes': str(shapes), 'made of': made_of()})}"
        if (kept := cache.get(key)) is not None and (program := _load(kept)) is not None:
            return program
        with compilecache.apart():
            compiled = self._jit.lower(*arguments).compile()
        cache.put(key, pickle.dumps(serialize_executable.serialize(compiled)))
        return compiled


def digest(body: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a JSON object."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def made_of() -> dict[str, Any]:
    """Return what every program of this process follows from, whatever it computes."""
    device = jax.devices()[0]
    return {
        "constants": constants(),
        "settings": {name: str(getattr(jax.config, name)) for name in SETTINGS},
        "keras": [keras.config.floatx(), keras.config.epsilon(), keras.config.image_data_format()],
        "environment": {k: v for k, v in os.environ.items() if k.startswith(VARIABLES)},
        "device": [device.platform, device.device_kind, jax.device_count()],
    }


@functools.cache
def constants() -> dict[str, Any]:
    """Return what cannot change while a process lives; a fork server asks once for all its runners."""
    libraries = {name: version(name) for name in LIBRARIES}
    return {"libraries": libraries, "code": _code_digest(), "processor": _processor()}


def _code_digest() -> str:
    """Return a digest of the modules that models and steps are made by: this room's and the spec's."""
    engine = Path(__file__).parent
    rooms = (engine, engine.parents[1] / "jobs" / "spec")
    files = sorted(file for room in rooms for file in room.rglob("*.py"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _processor() -> str:
    """Return what this processor can do: a program for another one may use what it lacks."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        flags = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        flags = platform.processor()
    return f"{platform.machine()} {flags}"


def _load(kept: bytes) -> Callable[..., Any] | None:
    """Return a program that was kept; None if it is of no use, and then it is compiled and kept anew."""
    try:
        # The folder is its project's own, and what is compiled in it runs as code whoever unpacks it.
        parts = pickle.loads(kept)  # noqa: S301
        program: Callable[..., Any] = serialize_executable.deserialize_and_load(*parts)
    except Exception:  # a torn or foreign file, in whatever way it shows
        log.warning("a kept program cannot be loaded and is compiled anew", exc_info=True)
        return None
    return program
