import io
import json
import pickle
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest

from jobs.kinds.register.payload import RegisterTask
from tests.engine.making import ArtifactReport, dataset_file, spec_for, train_member
from workers.engine.data.store import file_digest
from workers.engine.errors import BadModel, DamagedFile
from workers.engine.models.predict import Predictor
from workers.engine.models.size_limit import check_budget
from workers.engine.models.untrusted import scan
from workers.engine.tasks import register

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
    found = scan(save(tmp_path, plain))
    assert found.keras_version == keras.__version__
    assert found.estimated == 12
    assert found.stored >= 15


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


def _nothing() -> AbstractContextManager[None]:
    import contextlib

    return contextlib.nullcontext()


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


def weights(fill: Callable[[Any], None]) -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        fill(file)
    return buffer.getvalue()


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


def test_the_scan_needs_no_keras(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from workers.engine.models.untrusted import scan;"
        f"scan(pathlib.Path({str(save(tmp_path, plain))!r}));"
        "sys.exit(bool({'keras', 'jax'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


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
    def load(_: object, folder: str) -> None:
        raise ValueError(f"cannot read {folder}/load-x1/model.keras: no config")

    monkeypatch.setattr(register, "load_model", load)
    with pytest.raises(BadModel, match=r"^Keras cannot load it: cannot read the file: no config$"):
        registered(save(tmp_path, plain), tmp_path / "run")


def test_a_model_that_predicts_nan_is_rejected(tmp_path: Path) -> None:
    path = save(tmp_path, lambda x: keras.layers.Rescaling(float("nan"))(x))
    with pytest.raises(BadModel):
        registered(path, tmp_path / "run")
