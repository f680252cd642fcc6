"""JAX and Keras, imported and set as runners want them; the process environment must stand before."""

import sys


def configure_jax(compile_cache: str | None, matmul: str) -> None:
    """Set JAX's own options: the compile cache (small programs too) and the matmul precision."""
    import jax

    jax.config.update("jax_default_matmul_precision", None if matmul == "default" else matmul)
    if compile_cache is not None:
        from workers.engine.compiled import cache

        cache.use(compile_cache)


def import_keras() -> None:
    """Import Keras as if scikit-learn and pandas were not installed: 1 s of CPU and 110 MB less a process.

    Keras imports both wherever it finds them, for wrappers and data frames that no task hands it. What
    the engine itself needs of them it imports afterwards, as ever.
    """
    hidden = [name for name in ("sklearn", "pandas") if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # to an import: not installed
    try:
        import keras  # noqa: F401
    finally:
        for name in hidden:
            del sys.modules[name]
