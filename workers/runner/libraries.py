"""Imports and configures JAX and Keras. The process environment must be set before."""

import sys


def configure_jax(compile_cache: str | None, matmul: str) -> None:
    """Set JAX's compile cache and matmul precision."""
    import jax

    jax.config.update("jax_default_matmul_precision", None if matmul == "default" else matmul)
    if compile_cache is not None:
        from workers.engine.compiled import cache

        cache.enable(compile_cache)


def import_keras() -> None:
    """Import Keras as if scikit-learn and pandas were not installed.

    Keras imports both if it finds them, for wrappers and data frames that no task and no served model uses.
    Without them, a process needs 1 s of CPU and 110 MB less. They can still be imported afterwards.

    Keras makes initial values on the host from then on; see `host_values`.
    """
    hidden = [name for name in ("sklearn", "pandas") if name not in sys.modules]
    for name in hidden:
        # None makes an import raise ImportError.
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        import keras  # noqa: F401
    finally:
        for name in hidden:
            del sys.modules[name]
    from workers.engine.models import host_values

    host_values.install()
