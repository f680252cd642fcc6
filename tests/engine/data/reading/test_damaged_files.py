"""Damaged uploads end as a refusal with a reason, never as an internal error.

`TRAINYARD_FUZZ_FILES` sets the number of damaged files for each format.
"""

import errno
import io
import json
import os
import random
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest

from jobs.kinds.profile.payload import ProfileTask
from jobs.spec.data.file_limits import FileLimits
from tests.engine.helpers import RecordingReport
from workers.engine.data.reading.damage import reading
from workers.engine.errors import DamagedFile, RefusedInput
from workers.engine.models.untrusted import scan
from workers.engine.tasks import profile

FILES = int(os.environ.get("TRAINYARD_FUZZ_FILES") or 60)
LIMITS = FileLimits(expanded_bytes=50_000_000)
FRAME = pd.DataFrame(
    {"a": np.arange(40) * 1.5, "text": ["red", "blue", None, "green"] * 10, "y": ["p", "q"] * 20}
)
FRAME["text"] = FRAME["text"].fillna("none")


def csv() -> bytes:
    return FRAME.to_csv(index=False).encode()


def parquet() -> bytes:
    file = io.BytesIO()
    FRAME.to_parquet(file)
    return file.getvalue()


def npz() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, a=FRAME["a"].to_numpy(), t=np.array(["r", "blue"] * 20), y=np.arange(40) % 2)
    return file.getvalue()


def keras() -> bytes:
    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        file["layers/dense/vars/0"] = np.ones((4, 3), np.float32)
        file["layers/dense/vars/1"] = np.ones(3, np.float32)
    dense = {"module": "keras.layers", "class_name": "Dense", "config": {"units": 3}, "registered_name": None}
    config = {"module": "keras", "class_name": "Sequential", "config": {"layers": [dense]}}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("model.weights.h5", weights.getvalue())
    return file.getvalue()


def damaged(body: bytes, rng: random.Random) -> bytes:
    """Cut a file, change some bits, overwrite a part, repeat a part, or make a number in it huge."""
    changed, start = bytearray(body), rng.randrange(len(body))
    length = rng.randint(1, 40)
    match rng.randrange(5):
        case 0:
            del changed[start:]
        case 1:
            for _ in range(rng.randint(1, 8)):
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        case 2:
            changed[start : start + length] = rng.randbytes(length)
        case 3:
            changed[start:start] = changed[start : start + length]
        case _:
            changed[start : start + 8] = b"\xff" * 8
    return bytes(changed)


def read(source: str, path: Path) -> None:
    if source == "keras":
        scan(path)
        return
    folder = str(path.parent)
    task = ProfileTask(folder=folder, source=source, path=str(path), limits=LIMITS)
    profile.run(task, RecordingReport(folder))


SOURCES = {"csv": csv, "npz": npz, "parquet": parquet, "keras": keras}


@pytest.mark.parametrize("source", SOURCES)
def test_the_undamaged_file_is_accepted(tmp_path: Path, source: str) -> None:
    path = tmp_path / f"upload.{source}"
    path.write_bytes(SOURCES[source]())
    read(source, path)


@pytest.mark.parametrize("source", SOURCES)
def test_a_damaged_file_is_refused_with_a_reason(tmp_path: Path, source: str) -> None:
    body, rng = SOURCES[source](), random.Random(source)
    path = tmp_path / f"upload.{source}"
    for _ in range(FILES):
        path.write_bytes(damaged(body, rng))
        try:
            read(source, path)
        except RefusedInput as refusal:
            assert str(tmp_path) not in str(refusal)


@pytest.mark.parametrize("source", ["npz", "parquet", "keras"])
def test_half_a_file_is_named_as_damaged(tmp_path: Path, source: str) -> None:
    body = SOURCES[source]()
    path = tmp_path / f"upload.{source}"
    path.write_bytes(body[: len(body) // 2])
    with pytest.raises(DamagedFile, match=f"^this file is damaged: upload.{source} "):
        read(source, path)


@pytest.mark.parametrize("number", [errno.ENOMEM, errno.ENOSPC, errno.EMFILE, errno.EIO])
def test_an_error_of_the_machine_is_not_reported_as_damage_of_the_file(tmp_path: Path, number: Any) -> None:
    with pytest.raises(OSError, match="of the machine"), reading(tmp_path / "d.csv", "CSV"):
        raise OSError(number, "of the machine")
