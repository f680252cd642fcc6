"""Meshes: several simulated devices give the same losses as one, and each holds its share."""

import json
import subprocess
import sys
from typing import Any

import pytest

from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.templates.layers import Variable
from tests.engine.helpers import spec_of
from tests.engine.processes.mesh_code import CODE, REFUSED
from workers.engine.errors import BadLayout

SAME = 1e-5
"""Relative. 3.5e-7 was the largest difference that was seen."""


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


def assert_equal(history: list[dict[str, float]], single: list[dict[str, float]]) -> None:
    assert len(history) == len(single) > 0
    for ours, theirs in zip(history, single, strict=True):
        assert ours == pytest.approx(theirs, rel=SAME, abs=1e-7)


@pytest.mark.parametrize("mesh", ["data", "model", "mixed", "2x4", "8x1"])
def test_several_devices_give_the_losses_and_all_metrics_of_one(trained: Any, mesh: str) -> None:
    runs = trained["digits"]
    assert {"val_loss", "val_accuracy", "val_top_5_accuracy"} <= set(runs["one"]["history"][0])
    # A last batch that has fewer rows, dropout, batch normalization and weights of rows are part of it.
    assert runs[mesh]["ragged"] > 0
    assert_equal(runs[mesh]["history"], runs["one"]["history"])


@pytest.mark.parametrize("mesh", ["mixed", "2x4"])
def test_a_transformer_is_divided_as_the_plan_suggests_and_has_the_same_losses(
    trained: Any, mesh: str
) -> None:
    runs, devices = trained["texts"], {"mixed": 4, "2x4": 8}[mesh]
    assert (runs["one"]["shard"], runs[mesh]["devices"]) == ([8, 16], devices)
    assert runs[mesh]["shard"] == [8, 16 // (devices // 2)]
    assert {"val_auc", "val_precision", "val_recall"} <= set(runs["one"]["history"][0])
    assert_equal(runs[mesh]["history"], runs["one"]["history"])


def test_a_recurrent_network_has_the_same_losses_on_8_devices(trained: Any) -> None:
    runs = trained["sequences"]
    assert_equal(runs["8x1"]["history"], runs["one"]["history"])


def test_a_version_that_is_fine_tuned_on_several_devices_has_the_loss_of_one(trained: Any) -> None:
    losses = trained["fine_tuned"]
    assert losses["data"] == pytest.approx(losses["one"], rel=SAME)
    assert losses["mixed"] == pytest.approx(losses["one"], rel=SAME)


@pytest.mark.parametrize("mesh", ["2x4", "8x1"])
@pytest.mark.parametrize("case", CODE)
def test_own_code_has_the_losses_and_metrics_of_one_device(trained: Any, case: str, mesh: str) -> None:
    runs = trained["code"][case]
    assert "error" not in runs[mesh], runs[mesh]
    assert_equal(runs[mesh]["history"], runs["one"]["history"])
    assert runs[mesh]["differ"] == []
    assert runs[mesh]["devices"] == 8


def test_a_search_over_templates_on_a_mesh_has_the_metrics_of_one_device(trained: Any) -> None:
    runs = trained["search"]
    # Two templates, two executions, two epochs; the second execution takes over the model of the first.
    assert len(runs["2x4"]["history"]) == 8
    assert_equal(runs["2x4"]["history"], runs["one"]["history"])
    assert runs["2x4"]["divided"] == ["dense_1/kernel"]


@pytest.mark.parametrize("case", ["compiled", "masked", "own fit", "own loop"])
def test_the_rules_divide_the_layers_of_own_code(trained: Any, case: str) -> None:
    assert len(trained["code"][case]["2x4"]["divided"]) == 1


@pytest.mark.parametrize("case", REFUSED)
def test_code_that_clears_the_session_is_refused_before_its_first_step(trained: Any, case: str) -> None:
    error = trained["code"][case]["error"]
    assert "keras.backend.clear_session() forgets the mesh" in error
    assert "dense/kernel' " in error and "is on one device" in error
    if case == "forgetful":
        assert "was designed to be divided by (none, model) on 8 devices and is on one device" in error


def test_a_paused_training_on_a_mesh_continues_with_equal_losses(trained: Any) -> None:
    runs = trained["resumed"]
    assert 0 < runs["at"] < len(runs["whole"])
    assert runs["continued"] == runs["whole"]
    assert_equal(runs["whole"], runs["alone"])


def test_each_device_holds_its_share_of_a_kernel(trained: Any) -> None:
    assert {name: (run["devices"], run["shard"]) for name, run in trained["digits"].items()} == {
        "one": (1, [64, 8]),
        "data": (4, [64, 8]),
        "model": (2, [64, 4]),
        "mixed": (4, [64, 4]),
        "2x4": (8, [64, 2]),
        "8x1": (8, [64, 8]),
    }


def test_a_training_on_a_mesh_reports_its_shardings_and_its_speed(trained: Any) -> None:
    run = trained["digits"]["2x4"]
    assert "dense_1/kernel" in run["divided"]
    assert run["differ"] == []
    assert run["speeds"][-1] == ["system/rows_per_second", "system/steps_per_second"]
    assert trained["digits"]["one"]["speeds"][-1] == []


def test_a_bad_layout_is_rejected_before_any_device_is_used() -> None:
    from workers.engine.models.mesh import use_mesh

    mesh = MeshSpec.model_validate(
        {"shape": [4], "axis_names": ["model"], "batch_axis": None,
         "layout": [{"match": ".*/kernel", "axes": [None, "model"]}]}
    )  # fmt: skip
    with pytest.raises(BadLayout, match=r"'output/kernel': dimension 1 of shape \[8, 10\]"):
        use_mesh(mesh, [Variable("output/kernel", (8, 10))], 32)


def test_layout_rules_are_matched_in_linear_time_by_the_whole_path_and_the_first_applies() -> None:
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
    layout[".*/bias"] = (None,)
    assert layout["dense/bias"].axes == ("model",)


def test_a_mesh_with_more_devices_than_exist_is_rejected() -> None:
    from workers.engine.errors import BadSpec
    from workers.engine.models.mesh import use_mesh

    mesh = spec_of(mesh={"shape": [64], "axis_names": ["data"]}).mesh
    with pytest.raises(BadSpec, match="needs 64 cpu devices, this process has"):
        use_mesh(mesh, [], 128)
