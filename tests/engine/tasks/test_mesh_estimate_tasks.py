"""The task of an estimate: its reports while a program compiles, and models without a training step."""

import threading
from pathlib import Path
from typing import Any

import pytest

from jobs.kinds.mesh_estimate.payload import MeshEstimateResult, MeshEstimateTask
from jobs.messages.task import DatasetFile
from tests import own_code
from tests.engine.helpers import RecordingReport
from tests.engine.making import dataset_file
from workers.engine.errors import BadLayout
from workers.engine.tasks import mesh_estimate

ONE: dict[str, Any] = {"shape": [1], "axis_names": ["data"], "simulate": 1}


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("iris"), "iris")


def estimated(folder: Path, file: DatasetFile, **fields: Any) -> tuple[MeshEstimateResult, RecordingReport]:
    body = {"data": {"dataset": "iris"}, "mesh": ONE, "fit": {"batch_size": 16}, **fields.pop("spec")}
    task = {"folder": str(folder), "spec": body, "dataset": file.model_dump(), "compiles": True, **fields}
    report = RecordingReport(folder)
    result = mesh_estimate.run(MeshEstimateTask.model_validate(task), report)
    return MeshEstimateResult.model_validate(result), report


def of_code(folder: Path, text: str, entry: str = "build_model") -> dict[str, Any]:
    code = own_code.code_in(folder / "code", text)
    model = {"kind": "code", "digest": code.digest, "entry": entry}
    return {"code": code.model_dump(), "spec": {"model": model}}


def test_a_compilation_is_reported_again_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh_estimate, "INTERVAL", 0.001)
    reported = threading.Event()
    with mesh_estimate.repeated(reported.set):
        assert reported.wait(10)
    # A program that never ends is not reported for ever.
    monkeypatch.setattr(mesh_estimate, "MOST_SECONDS", 0.0)
    reported.clear()
    with mesh_estimate.repeated(reported.set):
        assert not reported.wait(0.05)


def test_one_device_is_estimated_like_a_mesh(tmp_path: Path, iris: DatasetFile) -> None:
    model = {"kind": "template", "template": "mlp", "args": {"units": 8}}
    result, report = estimated(tmp_path, iris, spec={"model": model})
    step = result.step
    assert step is not None and result.largest is None
    assert (step.collectives, step.devices, step.compiled_for) == ((), 1, "cpu")
    assert step.weights == sum(v.as_variable().bytes for v in result.state.variables)
    assert [args for args, _ in report.of("progress")] == [(1, 1, "compilations")]
    assert set(result.versions) == {"keras", "jax", "jaxlib"}


def test_variables_alone_are_found_without_compiling(tmp_path: Path, iris: DatasetFile) -> None:
    request = of_code(tmp_path, own_code.TUNED_FIT, "TunedFit")
    result, report = estimated(tmp_path, iris, compiles=False, **request)
    assert result.step is None and len(result.state.variables) == 4
    assert not report.of("progress")


def test_a_class_that_compiles_in_its_own_fit_has_no_step_before(tmp_path: Path, iris: DatasetFile) -> None:
    result, _ = estimated(tmp_path, iris, **of_code(tmp_path, own_code.CUSTOM_LOOP, "OwnLoop"))
    assert result.step is None and result.notes == (mesh_estimate.NO_STEP,)
    assert {v.slots for v in result.state.variables} == {None}


@pytest.mark.parametrize("text", [own_code.NOT_COMPILED, own_code.SEARCH_OF_LAYERS, own_code.OWN_OBJECTS])
def test_own_code_is_compiled_with_its_own_or_the_experiments_optimizer(
    tmp_path: Path, iris: DatasetFile, text: str
) -> None:
    result, _ = estimated(tmp_path, iris, **of_code(tmp_path, text))
    assert result.step is not None and result.step.temporaries > 0 and not result.notes


def test_a_layout_that_does_not_match_fails_with_its_rule(tmp_path: Path, iris: DatasetFile) -> None:
    mesh = {**ONE, "layout": [{"match": "other/kernel", "axes": [None, "data"]}]}
    with pytest.raises(BadLayout, match="matches no variable"):
        estimated(tmp_path, iris, spec={"model": {"template": "linear"}, "mesh": mesh})
