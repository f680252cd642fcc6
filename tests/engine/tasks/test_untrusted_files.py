"""Model files from strangers: bombs, links and damage are refused before they are loaded."""

import pickle
import resource
import zipfile
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest

from tests.engine.tasks.test_register import Config, dense, plain, rewrite, save, weights
from tests.engine.tasks.test_registration import registered
from workers.engine.errors import BadModel, DamagedFile
from workers.engine.models.untrusted import scan


def test_a_shape_with_a_million_axes_is_rejected(tmp_path: Path) -> None:
    path = rewrite(
        save(tmp_path, plain), lambda config: dense(config)["config"].update(units=[1 << 24] * 1_000_000)
    )
    with pytest.raises(BadModel, match="1,000,000 axes"):
        scan(path)


@pytest.mark.parametrize("name", ["config.json", "model.weights.h5"])
def test_a_damaged_member_is_rejected(tmp_path: Path, name: str) -> None:
    path = tmp_path / "damaged.keras"
    with zipfile.ZipFile(save(tmp_path, plain)) as source, zipfile.ZipFile(path, "w") as target:
        for member in source.namelist():
            target.writestr(member, source.read(member), zipfile.ZIP_DEFLATED)
        start = target.getinfo(name).header_offset + 30 + len(name)
    body = bytearray(path.read_bytes())
    body[start : start + 8] = b"\xff" * 8
    path.write_bytes(body)
    with pytest.raises(DamagedFile, match=r"this file is damaged: damaged\.keras"):
        scan(path)


def test_a_shape_bomb_is_rejected_by_its_number(tmp_path: Path) -> None:
    path = rewrite(save(tmp_path, plain), lambda config: dense(config)["config"].update(units=10**9))
    with pytest.raises(BadModel, match=r"units = 1,000,000,000"):
        scan(path)


def test_a_bomb_of_moderate_numbers_is_rejected_by_the_size_of_the_file(tmp_path: Path) -> None:
    def inflate(config: Config) -> None:
        dense(config)["config"]["units"] = 100_000
        dense(config)["build_config"]["input_shape"] = [None, 100_000]

    with pytest.raises(BadModel, match="requests about 10,000,000,000 parameters, but the file stores"):
        scan(rewrite(save(tmp_path, plain), inflate))


def test_a_bomb_without_input_shapes_is_rejected_before_it_allocates_memory(tmp_path: Path) -> None:
    def inflate(config: Config) -> None:
        for layer in config["config"]["layers"]:
            if layer["class_name"] == "Dense":
                layer["config"]["units"] = 100_000
                layer.pop("build_config")

    path = rewrite(save(tmp_path, lambda x: plain(keras.layers.Dense(3)(x))), inflate)
    scan(path)  # sees nothing wrong
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadModel, match=r"would create 10,000,\d+,\d+ parameters, but the file stores"):
        registered(path, tmp_path / "run", foreign=True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB, of the 40 GB requested


@pytest.mark.parametrize("kind", ["pickle", "h5", "npz", "empty", "text"])
def test_other_files_under_the_right_name_are_rejected(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "model.keras"
    if kind == "pickle":
        path.write_bytes(pickle.dumps({"a": 1}))
    elif kind == "h5":
        h5py.File(path, "w").close()
    elif kind == "npz":
        with path.open("wb") as file:
            np.savez(file, a=np.zeros(3))
    else:
        path.write_bytes(b"" if kind == "empty" else b"hello")
    with pytest.raises(BadModel):
        scan(path)


def external_link(file: Any) -> None:
    file["layers"] = h5py.ExternalLink("/etc/passwd", "/x")


def soft_link(file: Any) -> None:
    file["layers"] = h5py.SoftLink("/elsewhere")


def virtual(file: Any) -> None:
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("/etc/other.h5", "x", (4,))
    file.create_virtual_dataset("x", layout)


def external_data(file: Any) -> None:
    file.create_dataset("x", (4,), "u1", external=[("/etc/passwd", 0, 4)])


def bomb(file: Any) -> None:
    file.create_dataset("x", (1 << 30,), "f4", chunks=(1 << 16,), compression="gzip")


def texts(file: Any) -> None:
    file["x"] = ["a text"]


def no_shape(file: Any) -> None:
    file["x"] = h5py.Empty("f4")


def loop(file: Any) -> None:
    file.create_group("a")["again"] = file["/"]


@pytest.mark.parametrize(
    "fill", [external_link, soft_link, virtual, external_data, bomb, texts, no_shape, loop]
)
def test_weights_outside_the_file_are_rejected(tmp_path: Path, fill: Any) -> None:
    path = rewrite(save(tmp_path, plain), weights=weights(fill))
    with pytest.raises(BadModel):
        scan(path)
