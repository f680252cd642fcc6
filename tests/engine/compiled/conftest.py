import numpy as np
import pytest

from tests.engine.helpers import blobs, profiled
from workers.engine.data.dataset import Dataset


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    from jobs.spec.sections.data import DataSpec
    from workers.engine.data.dataset import load_dataset

    folder = tmp_path_factory.mktemp("program")
    x, y = blobs()
    np.savez(folder / "blobs.npz", x=x, y=y)
    return load_dataset(
        profiled(folder / "p", source="npz", path=str(folder / "blobs.npz")), DataSpec(dataset="b")
    )
