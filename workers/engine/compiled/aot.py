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
import numpy as np
from jax.experimental import serialize_executable

from workers.engine.compiled import cache

log = logging.getLogger(__name__)

LIBRARIES = ("jax", "jaxlib", "keras", "numpy", "ml-dtypes")
ROOMS = ("workers/engine", "workers/runner/libraries.py", "workers/runner/environment.py", "jobs/contracts")
"""Where our own code makes models, steps and the settings that they are compiled under."""
OF_NO_STEP = ("cache", "log", "dump", "dir", "debug", "profil", "traceback")
"""JAX's settings with these in their names are about files and messages."""
VARIABLES = ("XLA_", "JAX_", "KERAS_", "NPROC", "OMP_", "CUDA_", "LIBTPU_")
"""Beginnings of the environment variables that compilers read."""
OF_NO_PROGRAM = ("CUDA_VISIBLE_DEVICES", "JAX_COMPILATION_CACHE_DIR")
"""Not which of several like devices a runner has: their programs are the same."""
CHECKSUM = hashlib.sha256().digest_size


class Ahead:
    """A function, compiled for each shape of its arguments or loaded as another process has compiled it.

    Args:
        function: of arrays and trees of arrays.
        name: under which the programs are kept: a digest of all that the function follows from but its
            arguments.
        donated: the argument that it consumes, if it does.
    """

    def __init__(self, function: Callable[..., Any], name: str, donated: int | None = None) -> None:
        self._jit = jax.jit(function, donate_argnums=() if donated is None else donated)
        self._name = name
        self._programs: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Call it. Of arguments that are trees the shapes must be the same at each call."""
        shapes = tuple((each.shape, each.dtype) for each in arguments if hasattr(each, "shape"))
        if (program := self._programs.get(shapes)) is None:
            program = self._programs[shapes] = self._program(arguments)
        return program(*arguments)

    def _program(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        programs = cache.in_use()
        if programs is None:
            return self._jit
        leaves, tree = jax.tree.flatten(arguments)
        shapes = [f"{jax.numpy.result_type(leaf)}{np.shape(leaf)}" for leaf in leaves]
        body = {"name": self._name, "shapes": shapes, "tree": str(tree), "made of": made_of()}
        key = f"whole-{digest(body)}"
        if (kept := programs.get(key)) is not None and (program := _load(kept)) is not None:
            return program
        with cache.apart():
            compiled = self._jit.lower(*arguments).compile()
        if (written := _written(compiled)) is not None:
            programs.put(key, written)
        return compiled


def digest(body: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a JSON object."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def made_of() -> dict[str, Any]:
    """Return what every program of this process follows from, whatever it computes."""
    device = jax.devices()[0]
    return {
        "constants": constants(),
        "settings": {name: str(getattr(jax.config, name, None)) for name in _settings()},
        "keras": [keras.config.floatx(), keras.config.epsilon(), keras.config.image_data_format()],
        "environment": {name: value for name, value in os.environ.items() if _is_read(name)},
        "device": [device.platform, device.device_kind, device.client.platform_version, jax.device_count()],
    }


@functools.cache
def constants() -> dict[str, Any]:
    """Return what cannot change while a process lives; a fork server asks once for all its runners."""
    libraries = {name: version(name) for name in LIBRARIES}
    return {"libraries": libraries, "code": _code_digest(), "processor": _processor()}


def _is_read(variable: str) -> bool:
    return variable.startswith(VARIABLES) and variable not in OF_NO_PROGRAM


def _code_digest() -> str:
    root = Path(__file__).parents[2]
    files = sorted(file for room in ROOMS for file in [root / room, *(root / room).rglob("*.py")])
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files if file.is_file())).hexdigest()


@functools.cache
def _settings() -> tuple[str, ...]:
    return tuple(sorted(name for name in jax.config.values if not any(word in name for word in OF_NO_STEP)))


def _processor() -> str:
    """Return what this processor can do: a program for another one may use what it lacks."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        flags = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        flags = platform.processor()
    return f"{platform.machine()} {flags}"


def _written(compiled: Any) -> bytes | None:
    """Write a program out behind its checksum; None where that cannot be: it serves this process alone."""
    try:
        program = pickle.dumps(serialize_executable.serialize(compiled))
    except Exception:  # whatever a backend says that cannot do it
        log.warning("a compiled program cannot be kept for later processes", exc_info=True)
        return None
    return hashlib.sha256(program).digest() + program


def _load(kept: bytes) -> Callable[..., Any] | None:
    """Return a program that was kept; None if it is of no use, and then it is compiled and kept anew."""
    checksum, program = kept[:CHECKSUM], kept[CHECKSUM:]
    if hashlib.sha256(program).digest() != checksum:
        log.warning("a kept program is damaged and is compiled anew")  # it is machine code: never run it
        return None
    try:
        # The folder is its project's own, and what is compiled in it runs as code whoever unpacks it.
        parts = pickle.loads(program)  # noqa: S301
        # Where more devices are seen, a program without a mesh is still for the first one.
        loaded: Callable[..., Any] = serialize_executable.deserialize_and_load(
            *parts, execution_devices=jax.devices()[:1]
        )
    except Exception:  # written by what is not quite like us, in whatever way that shows
        log.warning("a kept program cannot be loaded and is compiled anew", exc_info=True)
        return None
    return loaded
