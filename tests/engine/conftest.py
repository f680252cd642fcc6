import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# Without a backend Keras fails at import.
os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from workers.runner.libraries import configure_jax, import_keras

# Without scikit-learn and pandas, as a runner does: a second less. Some test files import Keras when they are
# collected, which each process of a run does.
import_keras()


@pytest.fixture(scope="session", autouse=True)
def compiled_once() -> None:
    """Compile programs that many tests use only once, for all processes in this run."""
    configure_jax(str(Path(os.environ["TRAINYARD_TEST_HOME"], "compiled")), "default")


@pytest.fixture(autouse=True)
def quick_collections() -> Iterator[None]:
    """Exempt what lasts from garbage collection, as a runner does: each new model starts with one."""
    before = _full_collections()
    yield
    if _full_collections() > before:
        gc.collect()
        gc.freeze()


def _full_collections() -> int:
    return int(gc.get_stats()[2]["collections"])


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """Return an empty folder that this process uses for compiled programs during the test."""
    import jax

    from workers.engine.compiled import cache as programs

    before = jax.config.jax_compilation_cache_dir
    programs.enable(str(tmp_path / "cache"))
    yield tmp_path / "cache"
    programs.enable(before)
