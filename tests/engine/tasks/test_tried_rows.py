"""Rows are found for a model in its own process, which may refuse some, or end."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from jobs.spec.signature import Signature
from tests.engine.tasks.model_processes import answering, running
from workers.engine.arrays import Array
from workers.engine.errors import BadModel
from workers.engine.tasks.samples.probes import find_rows
from workers.model_process.client import ModelClient, ModelFailed

IMAGES = Signature.model_validate(
    {
        "inputs": [{"name": "input", "dtype": "float32", "shape": (None, None, 1)}],
        "outputs": [{"name": "output", "dtype": "float32", "shape": (1,)}],
    }
)


@contextmanager
def connected(folder: Path, least: int | None) -> Iterator[ModelClient]:
    """Connect to a model that takes images of a size at least; None for one that ends at the first rows."""

    def answer(tensors: Sequence[Array]) -> list[Array] | None:
        if least is None:
            return None
        if (size := tensors[0].shape[1]) < least:
            raise ValueError(f"{size} pixels are too few for five poolings")
        return [np.ones((len(tensors[0]), 1), np.float32)]

    file = folder / "model.keras"
    file.touch()
    with running(answering(IMAGES, answer), folder, file, ended="it used more than 512 MiB") as model:
        client = ModelClient.connect(Path(model.socket))
        client.loaded()
        yield client
        client.close()


def test_larger_rows_are_tried_if_a_process_refuses_small_ones(tmp_path: Path) -> None:
    with connected(tmp_path, least=32) as client:
        tried = find_rows(client.predict, IMAGES)
    assert tried.rows[0].shape[1:3] == (32, 32)


def test_a_process_that_refuses_all_rows_is_refused_with_its_first_reason(tmp_path: Path) -> None:
    with connected(tmp_path, least=5_000) as client, pytest.raises(BadModel) as refusal:
        find_rows(client.predict, IMAGES)
    assert "8 pixels are too few" in str(refusal.value)
    assert "upload it again with a sample" in str(refusal.value)


def test_a_process_that_ends_is_named_with_the_rows_it_was_given(tmp_path: Path) -> None:
    cause = "512 MiB, when it was given random numbers of the length 8"
    with connected(tmp_path, least=None) as client, pytest.raises(ModelFailed, match=cause):
        find_rows(client.predict, IMAGES)
