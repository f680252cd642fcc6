"""The GPUs and the folder with which a child loads a version on its mesh."""

from pathlib import Path
from typing import cast

import pytest

from jobs.messages.release import ReleasedMesh, ReleasedRule
from workers.serving.versions.artifacts import Artifacts, RemoteStore
from workers.serving.versions.mesh_load import MeshLoad

MESH = ReleasedMesh(
    shape=(2, 2),
    axis_names=("data", "model"),
    batch_axis="data",
    layout=(ReleasedRule(match=".*kernel", axes=(None, "model")),),
)


def test_the_child_gets_the_mesh_and_as_many_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7,6,5,4,3")
    header = MeshLoad(MESH, tmp_path).header()
    assert header["gpus"] == "7,6,5,4"
    assert ReleasedMesh.model_validate(header["mesh"]) == MESH
    assert Path(header["folder"]).parent == tmp_path


async def test_nothing_is_left_of_a_child_that_was_killed_while_it_loaded(tmp_path: Path) -> None:
    load = MeshLoad(MESH, tmp_path)
    (Path(load.header()["folder"]) / "model.weights.h5").write_bytes(b"a part")
    await load.close()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_of_a_server_that_was_killed_while_it_loaded(tmp_path: Path) -> None:
    (Path(MeshLoad(MESH, tmp_path).header()["folder"]) / "model.weights.h5").write_bytes(b"a part")
    kept = tmp_path / f"{0:064x}.keras"
    kept.write_bytes(b"a model")
    Artifacts(tmp_path, None, cast(RemoteStore, None))
    assert list(tmp_path.iterdir()) == [kept]
