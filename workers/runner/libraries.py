"""Imports and configures JAX and Keras. The process environment must be set before."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def configure_jax(compile_cache: str | None, matmul: str) -> None:
    """Set JAX's compile cache and matmul precision."""
    import jax

    jax.config.update("jax_default_matmul_precision", None if matmul == "default" else matmul)
    if compile_cache is not None:
        from workers.engine.compiled import cache

        cache.enable(compile_cache)


@contextmanager
def lasting_imports() -> Iterator[None]:
    """Import modules without looking for garbage, neither meanwhile nor later: they are never freed.

    This saves a sixth of Keras' import time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


@contextmanager
def _hidden(*names: str) -> Iterator[None]:
    """Make module imports fail, unless they have been imported before."""
    hidden = [name for name in names if name not in sys.modules]
    for name in hidden:
        # None makes an import raise ImportError.
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def import_keras() -> None:
    """Import Keras as if scikit-learn and pandas were not installed.

    Keras imports both if it finds them, for wrappers and data frames that no task and no served model uses.
    Without them, a process needs 1 CPU second and 110 MB less. They can still be imported afterwards.

    Keras makes initial values on the host from then on; see `host_values`.
    """
    if "keras" not in sys.modules:
        with lasting_imports(), _hidden("sklearn", "pandas"):
            import keras  # noqa: F401
    from workers.engine.models import host_values

    host_values.install()


def set_number_type(*, in_double: bool) -> None:
    """Let this process compute in float64, or no longer: a warm runner serves tasks of both kinds."""
    import keras

    if in_double or keras.config.floatx() != "float32":
        from workers.engine.models.precision import compute_in_double

        compute_in_double(in_double)


def keep_arrow_from_threads() -> None:
    """Have pyarrow, which pandas imports, start no thread when it is imported: forks would lack it."""
    os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"


def import_for_code() -> None:
    """Import KerasTuner, with which users' models are written.

    It needs scikit-learn, so it takes a third as long as Keras. An error is left to the process of the
    task, which imports it again: a fork server must survive it.
    """
    if "keras_tuner" not in sys.modules:
        keep_arrow_from_threads()
        with lasting_imports(), suppress(ImportError):
            import keras_tuner  # noqa: F401
