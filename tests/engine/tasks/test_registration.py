"""Registered models: their signatures, names and trials on rows from their data."""

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from jobs.kinds.register.payload import RegisterTask
from tests.engine.making import ArtifactReport, dataset_file, spec_for, train_member
from tests.engine.tasks.test_register import Config, plain, rewrite, save
from workers.engine.data.store import file_digest
from workers.engine.errors import BadModel
from workers.engine.models.predict import Predictor
from workers.engine.tasks import register


def registered(path: Path, folder: Path, **more: Any) -> tuple[dict[str, Any], ArtifactReport]:
    task = RegisterTask(folder=str(folder), model=str(path), **{"digest": file_digest(path), **more})
    report = ArtifactReport(folder)
    return register.run(task, report), report


def test_an_untrusted_model_is_registered_with_its_signature(tmp_path: Path) -> None:
    path = save(tmp_path, plain).rename(tmp_path / "digest")
    result, report = registered(path, tmp_path / "run", foreign=True)
    assert result["signature"]["inputs"] == [{"name": "input", "dtype": "float32", "shape": [4]}]
    assert result["signature"]["outputs"][0]["shape"] == [3]
    assert result["parameters"] == 15
    assert result["keras_version"] == keras.__version__
    assert json.loads(report.artifacts["summary"].read_text())["trainable"] == 15


@pytest.mark.parametrize("form", [dict, list])
def test_inputs_and_outputs_may_be_dictionaries_or_lists_and_have_operators_between(
    tmp_path: Path, form: Any
) -> None:
    x, n = keras.Input((), name="x"), keras.Input((), name="n", dtype="int64")
    inputs: Any = {"x": x, "n": n}
    outputs: Any = {"score": x * 0.5 + 2, "next": n + 1}
    if form is list:
        inputs, outputs = list(inputs.values()), list(outputs.values())
    keras.Model(inputs, outputs).save(tmp_path / "m.keras")
    result, _ = registered(tmp_path / "m.keras", tmp_path / "run", foreign=True)
    named = {side: [tensor["name"] for tensor in result["signature"][side]] for side in ("inputs", "outputs")}
    assert sorted(named["inputs"]) == ["n", "x"]
    assert [tensor["dtype"] for tensor in result["signature"]["inputs"] if tensor["name"] == "n"] == ["int64"]
    if form is dict:
        assert named["outputs"] == ["next", "score"]


def test_a_model_of_one_input_and_output_may_name_them(tmp_path: Path) -> None:
    x = keras.Input((2,), name="x")
    model = keras.Model({"x": x}, {"double": x * 2})
    np.testing.assert_array_equal(Predictor(model)(np.array([[1, 2], [3, 4]], np.float32)), [[2, 4], [6, 8]])


def test_a_trained_model_is_tried_on_rows_of_its_data(tmp_path: Path) -> None:
    spec, file = spec_for("wine"), dataset_file(tmp_path, "wine")
    member = train_member(tmp_path, "m", spec, file)
    result, _ = registered(Path(member.model), tmp_path / "run", dataset=file)
    assert result["sample_rows"] == 32
    assert len(result["class_labels"]) == 3


def test_the_classes_of_the_training_count_if_the_data_have_others_of_the_same_number(tmp_path: Path) -> None:
    spec, file = spec_for("wine"), dataset_file(tmp_path, "wine")
    member = train_member(tmp_path, "m", spec, file)
    trained = ["red", "rose", "white"]
    result, _ = registered(Path(member.model), tmp_path / "run", dataset=file, class_labels=trained)
    assert result["class_labels"] == trained


def test_a_file_that_is_not_the_registered_one_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match=r"but 0000\d+ was registered"):
        registered(save(tmp_path, plain), tmp_path / "run", digest="0" * 64)


def test_a_chain_of_layers_that_is_too_long_for_keras_is_a_bad_model(tmp_path: Path) -> None:
    def lengthen(config: Config) -> None:
        layers = config["config"]["layers"]
        link = json.dumps(next(layer for layer in layers if layer["config"]["name"] == "link1"))
        layers[2:] = [
            json.loads(link.replace('"link1"', f'"link{k}"').replace('"link0"', f'"link{k - 1}"'))
            for k in range(1, 3000)
        ]
        ends = json.dumps(config["config"]["output_layers"])
        config["config"]["output_layers"] = json.loads(ends.replace('"link1"', '"link2999"'))

    def two_links(x: Any) -> Any:
        return keras.layers.Identity(name="link1")(keras.layers.Identity(name="link0")(x))

    path = rewrite(save(tmp_path, two_links), lengthen)
    for foreign in (True, False):
        with pytest.raises(BadModel, match="too many of its layers follow one another"):
            registered(path, tmp_path / "run", foreign=foreign)


def test_a_hostile_file_is_rejected_before_keras_loads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path, lambda x: keras.layers.Lambda(lambda y: y + 1)(x))
    monkeypatch.setattr(register, "load_model", lambda *_: pytest.fail("Keras was called"))
    with pytest.raises(BadModel) as rejection:
        registered(path, tmp_path / "run", foreign=True)
    assert rejection.value.code == "bad_model"


def test_the_message_of_keras_is_shown_without_the_folder_of_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_: object, folder: str, mesh: object) -> None:
        assert mesh is None
        raise ValueError(f"cannot read {folder}/load-x1/model.keras: no config")

    monkeypatch.setattr(register, "load_model", load)
    with pytest.raises(BadModel, match=r"^Keras cannot load it: cannot read the file: no config$"):
        registered(save(tmp_path, plain), tmp_path / "run")
