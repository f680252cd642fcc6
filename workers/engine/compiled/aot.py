"""Compiles functions ahead of time and loads them in later processes without tracing.

JAX's persistent cache finds a program by its computation, so each process must trace and lower a function to
look it up: a quarter second in Python for a small model's step. Here the compiled program is stored
under a digest of everything that determines it: the spec, the shapes, the source code, the libraries, JAX's
settings and the processor.
"""

import functools
import hashlib
import json
import logging
import os
import pickle
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import keras
import numpy as np
from jax.experimental import serialize_executable

from workers.engine.compiled import cache, compile_lock
from workers.engine.phases import announce

log = logging.getLogger(__name__)

LIBRARIES = ("jax", "jaxlib", "keras", "numpy", "ml-dtypes")
SOURCES = ("workers/engine", "workers/runner/libraries.py", "workers/runner/environment.py", "jobs/spec")
"""Source files that define models, steps and the settings they are compiled under."""
IGNORED_SETTINGS = ("cache", "log", "dump", "dir", "debug", "profil", "traceback")
"""JAX settings with one of these in their name concern files and messages, not programs."""
COMPILER_VARIABLES = ("XLA_", "JAX_", "KERAS_", "NPROC", "OMP_", "CUDA_", "LIBTPU_")
"""Prefixes of the environment variables that compilers read."""
IGNORED_VARIABLES = ("CUDA_VISIBLE_DEVICES", "JAX_COMPILATION_CACHE_DIR")
"""Programs are the same on each of several equal devices, so the choice of device is left out."""
CHECKSUM_BYTES = hashlib.sha256().digest_size


class AheadOfTimeFunction:
    """A function that is compiled once for each argument shape, or loaded if another process did so.

    Args:
        function: takes arrays and array trees.
        name: identifies the function among stored programs; must depend on everything that determines it
            except its arguments.
        donated: index for the argument whose buffers the program may reuse, if any.
        devices: those of the mesh on which it runs; None for the first device.
        out_shardings: how its results are divided over them; JAX chooses if absent.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        donated: int | None = None,
        *,
        devices: Sequence[Any] | None = None,
        out_shardings: Any = None,
    ) -> None:
        chosen = {} if out_shardings is None else {"out_shardings": out_shardings}
        self._jit = jax.jit(function, donate_argnums=() if donated is None else donated, **chosen)
        self._devices = devices
        self._name = name
        self._programs: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Call the function. Arguments that are trees must have the same shapes in every call."""
        shapes = _shapes(arguments)
        if (program := self._programs.get(shapes)) is None:
            announce("compiling")
            program = self._programs[shapes] = self._load_or_compile(arguments)
        return program(*arguments)

    def is_compiled(self, *arguments: Any) -> bool:
        """Return whether a call with these argument shapes needs no compilation."""
        return _shapes(arguments) in self._programs

    def _load_or_compile(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        programs = cache.active()
        if programs is None:
            return self._jit
        leaves, tree = jax.tree.flatten(arguments)
        shapes = [f"{jax.numpy.result_type(leaf)}{np.shape(leaf)}" for leaf in leaves]
        body = {"name": self._name, "shapes": shapes, "tree": str(tree), "fingerprint": fingerprint()}
        # `whole-` sets these files apart from those of JAX's own cache in the same folder.
        key = f"whole-{json_digest(body)}"
        if (program := self._load(programs, key)) is not None:
            return program
        # Runners that start together need the same program.
        with compile_lock.first(programs.folder / f".{key}.lock") as is_first:
            if is_first:
                # Another process may have stored it after the look above and before the lock was free.
                return self._load(programs, key) or self._compile(arguments, programs, key)
        # The first one has stored it, unless it was killed or its programs cannot be stored.
        return self._load(programs, key) or self._compile(arguments, programs, key)

    def _load(self, programs: cache.FileCache, key: str) -> Callable[..., Any] | None:
        """Return the program stored under `key`, or None if there is none that can be used."""
        stored = programs.get(key)
        return None if stored is None else _deserialize(stored, self._devices)

    def _compile(self, arguments: tuple[Any, ...], programs: cache.FileCache, key: str) -> Callable[..., Any]:
        # On CPU, XLA cannot serialize a program that came out of JAX's own cache.
        with cache.bypass_jax_cache():
            compiled: Callable[..., Any] = self._jit.lower(*arguments).compile()
        if (serialized := _serialize(compiled)) is not None:
            programs.put(key, serialized)
        return compiled


def _shapes(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((argument.shape, argument.dtype) for argument in arguments if hasattr(argument, "shape"))


def json_digest(body: Mapping[str, Any]) -> str:
    """Return the SHA-256 of an object as JSON with sorted keys, in hex digits."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def fingerprint() -> dict[str, Any]:
    """Return everything outside a function that determines its compiled program, as JSON values."""
    device = jax.devices()[0]
    return {
        "constants": static_fingerprint(),
        "settings": {name: str(getattr(jax.config, name, None)) for name in _relevant_settings()},
        "keras": [keras.config.floatx(), keras.config.epsilon(), keras.config.image_data_format()],
        "environment": {
            name: value
            for name, value in os.environ.items()
            if name.startswith(COMPILER_VARIABLES) and name not in IGNORED_VARIABLES
        },
        "device": [device.platform, device.device_kind, device.client.platform_version, jax.device_count()],
    }


@functools.cache
def static_fingerprint() -> dict[str, Any]:
    """Return the part of the fingerprint that cannot change in a process.

    A fork server calls it before it forks, so that no runner computes it again.
    """
    libraries = {name: version(name) for name in LIBRARIES}
    # A change of any of these sources may change the computation of a step.
    root = Path(__file__).parents[2]
    files = sorted(file for source in SOURCES for file in [root / source, *(root / source).rglob("*.py")])
    code = hashlib.sha256(b"\0".join(file.read_bytes() for file in files if file.is_file())).hexdigest()
    return {"libraries": libraries, "code": code, "processor": _processor()}


@functools.cache
def _relevant_settings() -> tuple[str, ...]:
    """Return which JAX settings may change a program, by name."""
    names = jax.config.values
    return tuple(sorted(name for name in names if not any(word in name for word in IGNORED_SETTINGS)))


def _processor() -> str:
    """Return the processor's architecture and instruction sets."""
    # A program compiled for one processor may use instructions that another one lacks.
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        flags = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        flags = platform.processor()
    return f"{platform.machine()} {flags}"


def _serialize(compiled: Any) -> bytes | None:
    """Return a compiled program behind its checksum, or None if this backend cannot serialize programs."""
    program = _result_or_warning(
        "a compiled program cannot be stored for later processes",
        lambda: pickle.dumps(serialize_executable.serialize(compiled)),
    )
    return None if program is None else hashlib.sha256(program).digest() + program


def _deserialize(stored: bytes, devices: Sequence[Any] | None) -> Callable[..., Any] | None:
    """Return a stored program, or None if it is unusable; it is then compiled and stored again."""
    checksum, program = stored[:CHECKSUM_BYTES], stored[CHECKSUM_BYTES:]
    # It is machine code: a damaged program must never run.
    if hashlib.sha256(program).digest() != checksum:
        log.warning("a stored program is damaged and is compiled again")
        return None
    return _result_or_warning(
        "a stored program cannot be loaded and is compiled again", lambda: _loaded(program, devices)
    )


def _loaded(program: bytes, devices: Sequence[Any] | None) -> Callable[..., Any]:
    # The folder belongs to one project and its programs run as machine code: unpickling adds no risk.
    parts = pickle.loads(program)  # noqa: S301
    # Without a mesh a program is for the first device, however many this process sees.
    loaded: Callable[..., Any] = serialize_executable.deserialize_and_load(
        *parts, execution_devices=jax.devices()[:1] if devices is None else devices
    )
    return loaded


def _result_or_warning[T](message: str, compute: Callable[[], T]) -> T | None:
    """Return a result; None with a warning if that fails: a stored program only saves time."""
    try:
        return compute()
    # Each backend raises its own type when it does not support this, and a program of a slightly different
    # environment fails in unpredictable ways.
    except Exception:
        log.warning(message, exc_info=True)
        return None
