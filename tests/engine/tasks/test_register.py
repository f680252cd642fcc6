import io
import json
import zipfile
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest

from workers.engine.errors import BadModel
from workers.engine.models import size_limit
from workers.engine.models.size_limit import check_budget
from workers.engine.models.untrusted import scan

Config = dict[str, Any]


def save(folder: Path, form: Callable[[Any], Any], shape: tuple[int | None, ...] = (4,)) -> Path:
    inputs = keras.Input(shape, name="input")
    path = folder / "model.keras"
    keras.Model(inputs, form(inputs)).save(path)
    return path


def plain(x: Any) -> Any:
    return keras.layers.Dense(3, activation="softmax")(keras.layers.Normalization(mean=0.0, variance=1.0)(x))


def rewrite(
    path: Path,
    change: Callable[[Config], object] = lambda config: None,
    weights: bytes | None = None,
    extra: Iterable[tuple[str, bytes]] = (),
) -> Path:
    """Forge a file: change its config, replace its weights, add members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(members["config.json"])
    change(config)
    members["config.json"] = json.dumps(config).encode()
    if weights is not None:
        members["model.weights.h5"] = weights
    with zipfile.ZipFile(path, "w") as archive:
        for name, body in [*members.items(), *extra]:
            archive.writestr(name, body)
    return path


def dense(config: Config) -> Config:
    return next(layer for layer in config["config"]["layers"] if layer["class_name"] == "Dense")


def test_a_regular_model_passes_the_scan(tmp_path: Path) -> None:
    scanned = scan(save(tmp_path, plain))
    assert scanned.keras_version == keras.__version__
    assert scanned.estimated == 12
    assert scanned.stored >= 15


@pytest.mark.parametrize("shape", [(8, 8)])
def test_models_of_many_layers_pass_the_scan(tmp_path: Path, shape: tuple[int, ...]) -> None:
    def form(x: Any) -> Any:
        x = keras.layers.MultiHeadAttention(2, 4)(x, x)
        x = keras.layers.LSTM(4, return_sequences=True)(x)
        x = keras.layers.Conv1D(4, 3, kernel_regularizer="l2")(x)
        return keras.layers.Dense(2, dtype="mixed_bfloat16")(keras.layers.Flatten()(x))

    path = save(tmp_path, form, shape)
    scan(path)
    model = keras.models.load_model(path)
    model.compile("adam", "mse")
    model.quantize("int8", filters="dense")
    model.save(path)
    scan(path)


@pytest.mark.parametrize(
    "form",
    [
        lambda x: 1 - x * 2 + x**2 / 3,
        lambda x: x[:, 1:3] + x[..., 0:2],
        lambda x: x * np.array([1, 2, 3, 4], np.float32),
        lambda x: keras.ops.where(x > 0, keras.ops.softmax(x), keras.ops.mean(x, axis=-1, keepdims=True)),
        lambda x: keras.ops.einsum("bi,bj->bij", x, keras.ops.concatenate([x, -x], axis=-1)),
        lambda x: {"sum": keras.layers.Dense(3)(x) + keras.layers.Dense(3)(x), "log": keras.ops.log1p(x)},
    ],
)
def test_operators_and_operations_are_accepted(tmp_path: Path, form: Any) -> None:
    path = save(tmp_path, form)
    check_budget(path, scan(path))
    keras.models.load_model(path).predict_on_batch(np.ones((2, 4), "float32"))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("keras.src.ops.core", "Map"),
        ("keras.src.ops.core", "WhileLoop"),
        ("keras.src.ops.numpy", "load"),
        ("keras.src.saving", "Add"),
    ],
)
def test_an_operation_that_calls_functions_is_rejected(tmp_path: Path, module: str, name: str) -> None:
    path = save(tmp_path, lambda x: x + x)

    def change(config: Config) -> None:
        add = next(layer for layer in config["config"]["layers"] if layer["class_name"] == "Add")
        add.update(module=module, class_name=name, registered_name=name)

    with pytest.raises(BadModel, match=f"{module}.{name}"):
        scan(rewrite(path, change))


@pytest.mark.parametrize(
    "form",
    [
        lambda x: keras.ops.tile(keras.ops.expand_dims(x, -1), (1, 1 << 22, 1 << 6)),
        lambda x: keras.layers.UpSampling1D(32)(keras.layers.RepeatVector(1 << 24)(x)),
    ],
    ids=["operation", "layer"],
)
def test_a_row_that_would_need_gigabytes_is_rejected(tmp_path: Path, form: Any) -> None:
    path = save(tmp_path, form)
    with pytest.raises(BadModel, match="values a row; at most 268,435,456 are accepted"):
        check_budget(path, scan(path))


def test_a_model_whose_inputs_need_more_memory_than_is_left_is_refused_before_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = keras.Input((1 << 10, 1 << 15))
    path = tmp_path / "wide.keras"
    keras.Model(inputs, keras.layers.Reshape((1 << 15, 1 << 10))(inputs)).save(path)
    assert path.stat().st_size < 20_000
    scanned = scan(path)
    check_budget(path, scanned)
    monkeypatch.setattr(size_limit, "bytes_left", lambda: 1 << 30)
    with pytest.raises(BadModel, match=r"33,554,432 values a row.* needs about 2 GiB of memory, but 1 GiB"):
        check_budget(path, scanned)


def test_a_lambda_is_rejected(tmp_path: Path) -> None:
    path = save(tmp_path, lambda x: keras.layers.Lambda(lambda y: y + 1)(x))
    with pytest.raises(BadModel, match=r"keras\.layers\.Lambda"):
        scan(path)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("keras.layers", "TFSMLayer"),
        ("keras.layers", "TorchModuleWrapper"),
        ("keras.layers", "StringLookup"),
        ("builtins", "exec"),
        ("os", "system"),
        ("keras.config", "enable_unsafe_deserialization"),
        ("keras.utils", "get_file"),
        (None, "Dense"),
    ],
)
def test_any_unknown_layer_is_rejected(tmp_path: Path, module: str | None, name: str) -> None:
    path = save(tmp_path, plain)
    rewrite(path, lambda config: dense(config).update(module=module, class_name=name))
    with pytest.raises(BadModel, match=name):
        scan(path)


def test_an_unknown_object_deep_inside_a_layer_is_rejected(tmp_path: Path) -> None:
    path = save(tmp_path, plain)
    evil = {"module": "os", "class_name": "function", "config": "system", "registered_name": "function"}
    rewrite(path, lambda config: dense(config)["config"].update(activation=evil))
    with pytest.raises(BadModel, match=r"os\.function"):
        scan(path)


FOREIGN = [
    {"module": "os", "class_name": "function", "config": "system", "registered_name": "function"},
    {"module": "builtins", "class_name": "function", "config": "exec", "registered_name": "function"},
    {"module": "mine", "class_name": "Loss", "config": {}, "registered_name": "mine>Loss"},
    {"module": "os"},
]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_foreign_name_in_the_compile_config_is_rejected(tmp_path: Path, foreign: dict[str, Any]) -> None:
    path = rewrite(save(tmp_path, plain), lambda config: config.update(compile_config={"loss": [foreign]}))
    with pytest.raises(BadModel, match=r"in its compile_config, .*compile=False"):
        scan(path)


def test_a_compiled_model_passes_the_scan(tmp_path: Path) -> None:
    def own_loss(y: Any, y_pred: Any) -> Any:
        return keras.ops.mean(y - y_pred)

    path = save(tmp_path, plain)
    for loss in (own_loss, keras.losses.mean_squared_error, keras.losses.Huber()):
        model = keras.models.load_model(path, compile=False)
        rate = keras.optimizers.schedules.CosineDecay(0.1, 100)
        model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy", keras.metrics.AUC()])
        model.save(path)
        scan(path)


def test_a_custom_object_under_a_known_name_is_rejected(tmp_path: Path) -> None:
    path = save(tmp_path, plain)
    rewrite(path, lambda config: dense(config).update(registered_name="mine>Dense"))
    with pytest.raises(BadModel, match="custom object 'mine>Dense'"):
        scan(path)


@pytest.mark.parametrize("name", ["../../../../tmp/x", "/etc/x", "assets/x", "config.json"])
def test_any_further_member_is_rejected(tmp_path: Path, name: str) -> None:
    with pytest.warns(UserWarning) if name == "config.json" else _nothing():
        path = rewrite(save(tmp_path, plain), extra=[(name, b"x")])
    with pytest.raises(BadModel, match=r"this one holds"):
        scan(path)


@pytest.mark.parametrize("part", ["class_name", "module"])
@pytest.mark.parametrize("of", [lambda config: config, dense], ids=["model", "layer"])
def test_a_class_whose_name_is_not_a_text_is_rejected(tmp_path: Path, part: str, of: Any) -> None:
    path = rewrite(save(tmp_path, plain), lambda config: of(config).update({part: ["Dense"]}))
    with pytest.raises(BadModel):
        scan(path)


def _nothing() -> AbstractContextManager[None]:
    import contextlib

    return contextlib.nullcontext()


def weights(fill: Callable[[Any], None]) -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        fill(file)
    return buffer.getvalue()
