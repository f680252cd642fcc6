import os
from pathlib import Path

import pytest

# Keras without a backend named dies at import; one thread keeps two cores free for the others.
os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")


@pytest.fixture(scope="session", autouse=True)
def compiled_once() -> None:
    """Let programs that are equal in many tests be compiled once, for all processes of this run."""
    from workers.runner.libraries import configure_jax

    configure_jax(str(Path(os.environ["TRAINYARD_TEST_HOME"], "compiled")), "default")


@pytest.fixture
def cache(tmp_path):
    """Return the folder of compiled programs that this process uses meanwhile."""
    import jax

    from workers.engine.compiled import cache as programs

    before = jax.config.jax_compilation_cache_dir
    programs.use(str(tmp_path / "cache"))
    yield tmp_path / "cache"
    programs.use(before)
