"""Blocks of divided arrays, mapped files, and models that do not fit on one device."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import keras
import ml_dtypes
import numpy as np
import pytest

from jobs.spec.sections.mesh import MeshSpec
from workers.engine.errors import BadModel
from workers.engine.models.devices import memory, shards
from workers.engine.models.devices.memory import LargerThanDevice
from workers.engine.models.devices.shards import SpreadArray, places
from workers.engine.models.files import load_model, save_model
from workers.engine.training.array_groups import MappedArrays, read_group, weights_digest, write_group
from workers.engine.training.checkpoint import Snapshot, read, write
from workers.engine.training.shared_files import SharedFiles


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "BLOCK_BYTES", 64)


class Part:
    """A part on one CPU device, as JAX shows it."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def devices(self) -> list[Any]:
        return [SimpleNamespace(platform="cpu")]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values


def divided(values: np.ndarray, columns: int) -> SpreadArray:
    """Return an array whose columns are on several devices, each part on two of them."""
    width = values.shape[-1] // columns
    parts = [
        SimpleNamespace(
            index=(slice(None), slice(i * width, (i + 1) * width)),
            data=Part(values[:, i * width : (i + 1) * width] if replica == 0 else np.zeros(0)),
            replica_id=replica,
        )
        for i in range(columns)
        for replica in (0, 1)
    ]
    value = SimpleNamespace(
        shape=values.shape, dtype=values.dtype, nbytes=values.nbytes, addressable_shards=parts
    )
    return SpreadArray(value)


@pytest.mark.parametrize("shape", [(), (3,), (100,), (7, 5), (2, 100), (3, 2, 40), (0, 4), (4, 0), (2, 3, 1)])
def test_blocks_are_small_and_follow_each_other_in_the_order_of_the_file(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    blocks = [values[place] for place in places(shape, 4)]
    assert all(block.nbytes <= 64 for block in blocks)
    assert b"".join(block.tobytes() for block in blocks) == values.tobytes()


@pytest.mark.parametrize("shape", [(), (100,), (7, 5), (3, 2, 40)])
def test_blocks_are_cut_on_devices_whose_memory_the_host_cannot_read(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    blocks = [np.asarray(shards.cut_on_device(jax.device_put(values), place)) for place in places(shape, 4)]
    assert b"".join(block.tobytes() for block in blocks) == values.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_a_divided_array_has_the_file_and_digest_of_the_whole_one(tmp_path: Path, dtype: Any) -> None:
    values = np.arange(9 * 40).reshape(9, 40).astype(dtype)
    write_group(tmp_path / "whole.npz", [values])
    from workers.engine.data.store import write_npz

    array = divided(values, 4)
    stored = array.view("u2") if dtype is ml_dtypes.bfloat16 else array
    write_npz(tmp_path / "divided.npz", {"00000": stored})
    assert (tmp_path / "divided.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    [mapped] = read_group(tmp_path / "divided.npz", [np.dtype(dtype).name], mapped=True)
    assert mapped.dtype == dtype
    np.testing.assert_array_equal(mapped, values)
    assert weights_digest([mapped]) == weights_digest([values])


def test_checkpoints_link_the_file_of_mapped_arrays(tmp_path: Path) -> None:
    write_group(tmp_path / "kept.npz", [np.arange(4.0)])
    best = read_group(tmp_path / "kept.npz", ["float64"], mapped=True)
    assert isinstance(best, MappedArrays)
    shared = SharedFiles()
    snapshot = Snapshot({"model": [], "best": best}, {}, lasting=frozenset({"best"}))
    first = write(tmp_path / "c", snapshot, fence=1, step=1, shared=shared).folder
    # The file is replaced by that of a better epoch; checkpoints keep theirs.
    (tmp_path / "kept.npz").unlink()
    second = write(tmp_path / "c", snapshot, fence=1, step=2, shared=shared).folder
    assert (first / "best.npz").samefile(second / "best.npz")
    np.testing.assert_array_equal(read(second, mapped=True).arrays["best"][0], np.arange(4.0))


def saved(folder: Path) -> Path:
    inputs = keras.Input((8,))
    save_model(keras.Model(inputs, keras.layers.Dense(64)(inputs)), folder / "m.keras")
    return folder / "m.keras"


def test_a_model_that_does_not_fit_on_the_device_is_refused_with_both_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path)
    load_model(path, tmp_path)
    monkeypatch.setattr(memory, "total_memory", lambda: 1024)
    with pytest.raises(BadModel, match=r"its weights have .* GiB, and this machine has .* GiB: load"):
        load_model(path, tmp_path)


def test_the_prediction_server_refuses_it_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.serving.child.model import load

    path = saved(tmp_path)
    monkeypatch.setattr(memory, "total_memory", lambda: 1024)
    with pytest.raises(BadModel, match="this machine has"):
        load(path)


def test_the_memory_of_a_gpu_counts_and_not_that_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = SimpleNamespace(device_kind="A GPU", memory_stats=lambda: {"bytes_limit": 100})
    monkeypatch.setattr(jax, "devices", lambda: [gpu])
    with pytest.raises(BadModel, match="the A GPU that this process may use has"):
        memory.check_fits(saved(tmp_path))


def test_the_mesh_of_a_model_is_named_where_the_process_has_too_few_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "total_memory", lambda: 1024)
    rules = [{"match": ".*kernel", "axes": [None, "model"]}]
    mesh = MeshSpec.model_validate(
        {"devices": "gpu", "shape": [4], "axis_names": ["model"], "batch_axis": None, "layout": rules}
    )
    found = len(jax.devices())
    with pytest.raises(LargerThanDevice, match=rf"with the 4 devices of its mesh \(this one has {found}\)"):
        load_model(saved(tmp_path), tmp_path, mesh)
    without_rules = mesh.model_copy(update={"layout": ()})
    with pytest.raises(LargerThanDevice, match="larger machine, or train a smaller model"):
        load_model(tmp_path / "m.keras", tmp_path, without_rules)


def test_the_devices_of_a_mesh_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path)
    needed = memory._weights_bytes(path)
    devices = [SimpleNamespace(device_kind="A GPU", memory_stats=lambda: {"bytes_limit": needed // 2})] * 2
    used = SimpleNamespace(
        device_mesh=SimpleNamespace(backend_mesh=SimpleNamespace(devices=np.array(devices)))
    )
    monkeypatch.setattr(keras.distribution, "distribution", lambda: used)
    memory.check_fits(path)
    monkeypatch.setattr(memory, "device_limit", lambda device: needed // 2 - 1)
    with pytest.raises(
        BadModel, match=r"of the 2 devices of its mesh \(A GPU\) this process may use"
    ) as refused:
        memory.check_fits(path)
    # It would not fit on a mesh of the same size again.
    assert not isinstance(refused.value, LargerThanDevice)
    # Simulated devices have the memory of their machine, once.
    monkeypatch.setattr(memory, "device_limit", lambda device: None)
    monkeypatch.setattr(memory, "total_memory", lambda: needed - 1)
    with pytest.raises(BadModel, match=r"this machine has .* GiB: load it on a machine with more memory"):
        memory.check_fits(path)


def test_too_little_free_memory_names_the_size_and_who_has_it(tmp_path: Path) -> None:
    path = saved(tmp_path)
    with (
        pytest.raises(
            BadModel, match=r"its weights have .* GiB, and too little memory is free: other versions"
        ),
        memory.naming_lack_of_memory(path),
    ):
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.")
    with (
        pytest.raises(BadModel, match="that no layout rule divides"),
        memory.naming_lack_of_memory(path, on_mesh=True),
    ):
        raise MemoryError
    with pytest.raises(RuntimeError, match="another cause"), memory.naming_lack_of_memory(path):
        raise RuntimeError("another cause")


def test_a_file_that_is_no_model_is_left_to_keras(tmp_path: Path) -> None:
    (tmp_path / "m.keras").write_bytes(b"no archive")
    memory.check_fits(tmp_path / "m.keras")
    memory.check_fits(tmp_path / "missing.keras")
