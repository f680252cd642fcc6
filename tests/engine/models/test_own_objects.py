"""Model files with a user's own layers: whether they need their code, and how it is found."""

import json
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from jobs.kinds.ensemble.payload import EnsembleTask
from jobs.kinds.quantize.payload import QuantizeTask
from jobs.kinds.register.payload import RegisterTask
from jobs.messages.sandbox import Level
from jobs.messages.task import OwnCode
from tests.engine.making import ArtifactReport, dataset_file, spec_for, train_member
from tests.own_layers import SCALED, save_with_layer, scaled
from workers.engine.data.store import file_digest
from workers.engine.errors import BadModel
from workers.engine.models.files import load_model
from workers.engine.models.keras_origin import is_keras_module, is_of_keras
from workers.engine.models.own_code.in_use import using_folder
from workers.engine.tasks import ensemble, quantize, register

x = np.ones((2, 4), np.float32)


def code_in(folder: Path, **files: str) -> OwnCode:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return OwnCode(digest="0" * 64, folder=str(folder), minimum=Level.PROCESS, network=False)


def registered(path: Path, code: OwnCode | None, *, foreign: bool = True) -> dict[str, Any]:
    report = ArtifactReport(path.parent)
    task = RegisterTask(
        folder=str(path.parent), model=str(path), digest=file_digest(path), foreign=foreign, code=code
    )
    return register.run(task, report)


def test_a_file_with_a_layer_of_its_own_needs_the_code(tmp_path: Path) -> None:
    path = save_with_layer(tmp_path, SCALED, "Scaled")
    with pytest.raises(BadModel, match="Scaled"):
        registered(path, None)
    registration = registered(path, code_in(tmp_path / "code", model=SCALED))
    assert registration["needs_code"] is True
    assert registration["signature"]["inputs"][0]["shape"] == [4]


def test_a_file_of_built_in_layers_needs_none_although_it_came_with_code(tmp_path: Path) -> None:
    path = tmp_path / "plain.keras"
    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    model.compile("adam", loss=scaled)  # only its training needs the function
    model.save(path)
    assert registered(path, code_in(tmp_path / "code", model=SCALED))["needs_code"] is False


def test_only_files_that_define_a_wanted_object_are_imported(tmp_path: Path) -> None:
    path = save_with_layer(tmp_path, SCALED, "Scaled")
    code = code_in(tmp_path / "code", model=SCALED, train="raise SystemExit('a script ran')")
    assert registered(path, code)["needs_code"] is True


def test_modules_of_the_code_can_import_each_other(tmp_path: Path) -> None:
    path = save_with_layer(tmp_path, SCALED, "Scaled")
    text = "from helpers import FACTOR\n" + SCALED.replace("* 2.0", "* FACTOR")
    code = code_in(tmp_path / "code", model=text, helpers="FACTOR = 2.0")
    assert registered(path, code)["needs_code"] is True
    assert "helpers" not in sys.modules


def test_a_module_with_the_name_of_an_imported_one_is_found(tmp_path: Path) -> None:
    path = save_with_layer(tmp_path, SCALED, "Scaled")
    assert registered(path, code_in(tmp_path / "code", json=SCALED))["needs_code"] is True
    assert json.loads("1") == 1


def test_a_file_is_executed_up_to_its_search(tmp_path: Path) -> None:
    path = save_with_layer(tmp_path, SCALED, "Scaled")
    search = "keras_tuner.RandomSearch(keras.Sequential, 'val_loss').search()\nraise OSError('after it')"
    code = code_in(tmp_path / "code", guide=f"{SCALED}\nimport keras_tuner\n{search}")
    assert registered(path, code)["needs_code"] is True


def test_a_module_may_have_a_name_that_begins_like_that_of_keras(tmp_path: Path) -> None:
    path = save_with_layer(
        tmp_path, SCALED.replace("@keras.saving", '__name__ = "keras_own"\n@keras.saving'), "Scaled"
    )
    assert registered(path, code_in(tmp_path / "code", keras_own=SCALED))["needs_code"] is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import no_such_package\n" + SCALED,
            "importing model.py failed: ModuleNotFound.*model.py, line 1",
        ),
        (SCALED.replace("return x * 2.0", "raise OSError('broken')"), "OSError: .*broken.*model.py"),
        ("import sys; sys.exit(0)\n" + SCALED, r"importing model.py failed: the code called sys.exit\(0\)"),
        ("x = 1", "Could not locate class .Scaled"),
    ],
)
def test_an_error_of_the_code_names_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = save_with_layer(tmp_path, SCALED, "Scaled")
    with pytest.raises(BadModel, match=message):
        registered(path, code_in(tmp_path / "code", model=text))


def test_two_versions_of_one_code_do_not_mix(tmp_path: Path) -> None:
    first = save_with_layer(tmp_path / "first", SCALED, "Scaled")
    changed = SCALED.replace("* 2.0", "* 3.0")
    second = save_with_layer(tmp_path / "second", changed, "Scaled")
    codes = [code_in(tmp_path / "a" / "code", model=SCALED), code_in(tmp_path / "b" / "code", model=changed)]
    with using_folder(Path(codes[0].folder)):
        ours = load_model(first, tmp_path)
    with using_folder(Path(codes[1].folder)):
        theirs = load_model(second, tmp_path)
    theirs.set_weights(ours.get_weights())
    assert not np.allclose(ours(x), theirs(x))
    assert "model" not in sys.modules


DIGITS: dict[str, Any] = {"shape": (8, 8, 1), "units": 10}


def test_a_model_with_a_layer_of_its_own_is_quantized(tmp_path: Path) -> None:
    path = save_with_layer(tmp_path, SCALED, "Scaled", **DIGITS)
    task = QuantizeTask(
        folder=str(tmp_path / "run"),
        code=code_in(tmp_path / "code", model=SCALED),
        spec=spec_for("digits"),
        quantize={"mode": "int8"},
        dataset=dataset_file(tmp_path, "digits"),
        model=str(path),
    )
    report = ArtifactReport(tmp_path / "run")
    assert quantize.run(task, report)["agreement"] is not None
    with pytest.raises(BadModel, match="Scaled"):
        registered(report.artifacts["model"], None)


def test_models_with_a_layer_of_their_own_are_pooled(tmp_path: Path) -> None:
    file, spec = dataset_file(tmp_path, "digits"), spec_for("digits")
    members = []
    for name in ("a", "b"):
        member = train_member(tmp_path, name, spec, file)
        model_file = save_with_layer(tmp_path / name, SCALED, "Scaled", **DIGITS)
        members.append(member.model_copy(update={"model": str(model_file)}))
    task = EnsembleTask(
        folder=str(tmp_path / "run"),
        code=code_in(tmp_path / "code", model=SCALED),
        spec=spec,
        ensemble={"method": "mean"},
        dataset=file,
        members=tuple(members),
    )
    report = ArtifactReport(tmp_path / "run")
    assert ensemble.run(task, report)["members"] == ["a", "b"]
    code = code_in(tmp_path / "again", model=SCALED)
    assert registered(report.artifacts["model"], code)["needs_code"] is True


class OwnLoss(keras.losses.MeanSquaredError):
    """A class of a user that inherits from one of Keras."""


class OwnModel(keras.Model):
    """A class of a user without layers."""


def own_loss(y: Any, y_pred: Any) -> Any:
    return y - y_pred


@pytest.mark.parametrize(
    "part",
    [
        "mse", keras.losses.mean_squared_error, keras.losses.MeanSquaredError(),
        keras.losses.MeanSquaredError, keras.layers.Dense(1), keras.Model, keras.initializers.Ones(),
    ],
    ids=["name", "function", "instance", "class", "layer", "class of models", "initializer"],
)  # fmt: skip
def test_names_functions_classes_and_instances_of_keras_are_recognized(part: Any) -> None:
    assert is_of_keras(part)


@pytest.mark.parametrize(
    "part", [own_loss, OwnLoss(), OwnLoss, OwnModel()], ids=["function", "instance", "class", "model"]
)
def test_what_a_user_defines_is_not_of_keras_whatever_it_inherits_from(part: Any) -> None:
    assert not is_of_keras(part)


def test_a_method_of_a_keras_loss_is_not_known_as_this_loss() -> None:
    # Its targets are not known from its name.
    assert not is_of_keras(keras.losses.SparseCategoricalCrossentropy().call)


@pytest.mark.parametrize("name", ["keras", "keras.src.layers", "keras.ops"])
def test_a_module_of_keras_is_recognized_by_its_name(name: str) -> None:
    assert is_keras_module(name)


@pytest.mark.parametrize(
    "name", ["keras_tuner", "keras_layers.dense", "my.keras.layers", "", None, 3, ["keras"]]
)
def test_modules_with_a_similar_name_and_values_that_are_no_name_are_not_of_keras(name: Any) -> None:
    assert not is_keras_module(name)
