"""Meshes: several simulated devices give the same losses as one, and each holds its share."""

import json
import subprocess
import sys
from typing import Any

import pytest

from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.templates.layers import Variable
from tests.engine.helpers import spec_of
from workers.engine.errors import BadLayout


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("mesh")
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.processes.mesh_child", str(folder)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("mesh", ["data", "model", "mixed"])
def test_several_devices_give_the_losses_of_one(trained: Any, mesh: str) -> None:
    digits = trained["digits"]
    for ours, single in zip(digits[mesh]["history"], digits["one"]["history"], strict=True):
        assert ours == pytest.approx(single, abs=2e-6)


def test_a_transformer_is_divided_as_the_plan_suggests_and_has_the_same_losses(trained: Any) -> None:
    alone, several = trained["texts"]
    assert (alone["shard"], several["shard"], several["devices"]) == ([8, 16], [8, 8], 4)
    for ours, single in zip(several["history"], alone["history"], strict=True):
        assert ours == pytest.approx(single, abs=2e-6)


def test_a_version_that_is_fine_tuned_on_several_devices_has_the_loss_of_one(trained: Any) -> None:
    losses = trained["fine_tuned"]
    assert losses["data"] == pytest.approx(losses["one"], abs=2e-6)
    assert losses["mixed"] == pytest.approx(losses["one"], abs=2e-6)


def test_each_device_holds_its_share_of_a_kernel(trained: Any) -> None:
    assert {name: (run["devices"], run["shard"]) for name, run in trained["digits"].items()} == {
        "one": (1, [64, 8]),
        "data": (4, [64, 8]),
        "model": (2, [64, 4]),
        "mixed": (4, [64, 4]),
    }


def test_a_bad_layout_is_rejected_before_any_device_is_used() -> None:
    from workers.engine.models.mesh import use_mesh

    mesh = MeshSpec.model_validate(
        {"shape": [4], "axis_names": ["model"], "batch_axis": None,
         "layout": [{"match": ".*/kernel", "axes": [None, "model"]}]}
    )  # fmt: skip
    with pytest.raises(BadLayout, match=r"'output/kernel': dimension 1 of shape \[8, 10\]"):
        use_mesh(mesh, [Variable("output/kernel", (8, 10))], 32)


def test_layout_rules_are_matched_in_linear_time_and_by_the_whole_path() -> None:
    from keras import distribution

    from workers.engine.models.mesh import LinearLayoutMap

    devices = distribution.DeviceMesh((1,), ["model"], distribution.list_devices("cpu")[:1])
    layout = LinearLayoutMap(devices)
    layout["((((((.+)+)+)+)+)+)+!"] = (None,)
    layout["dense/kernel"] = ("model", None)
    layout[".*/bias"] = ("model",)
    assert layout["dense/kernel"].axes == ("model", None)
    assert layout[f"{'d' * 200}/bias"].axes == ("model",)
    assert layout["x/dense/kernel"] is None
    layout["dense/.*"] = (None,)
    with pytest.raises(ValueError, match="'dense/bias' matches several layout rules"):
        layout["dense/bias"]


def test_a_mesh_with_more_devices_than_exist_is_rejected() -> None:
    from workers.engine.errors import BadSpec
    from workers.engine.models.mesh import use_mesh

    mesh = spec_of(mesh={"shape": [64], "axis_names": ["data"]}).mesh
    with pytest.raises(BadSpec, match="needs 64 cpu devices, this process has"):
        use_mesh(mesh, [], 128)
