"""Models from elsewhere: sound ones are accepted whatever rows they take, others refused with a remedy."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers, ops

from tests.engine.making import ArtifactReport
from tests.engine.models.test_own_objects import code_in
from tests.engine.tasks.test_register import rewrite
from tests.engine.tasks.test_registration import registered
from workers.engine.errors import BadModel
from workers.engine.tasks.samples.sample_file import BadSample, read_sample

NOISE = re.compile(r"\x1b|None\.|config=|\{'module'|Full object config|/tmp/")
"""Parts of Keras' messages that no report should have."""


def pooled(x: Any) -> Any:
    for _ in range(5):
        x = layers.MaxPooling2D()(layers.Conv2D(4, 3, padding="same")(x))
    return layers.Dense(2)(layers.GlobalAveragePooling2D()(x))


def convolved(x: Any) -> Any:
    for _ in range(6):
        x = layers.Conv1D(4, 5)(x)
    return layers.GlobalMaxPooling1D()(x)


def image(form: Callable[[Any], Any]) -> Any:
    x = keras.Input((None, None, 3), name="image")
    return keras.Model(x, form(x))


def film(form: Callable[[Any], Any]) -> Any:
    """Return a model for films of an open length, in which a single picture has millions of values."""
    x = keras.Input((None, 1080, 1300, 3), name="film")
    return keras.Model(x, form(x))


def vector(form: Callable[[Any], Any], size: int | None = 4, dtype: str = "float32") -> Any:
    x = keras.Input((size,), name="x", dtype=dtype)
    return keras.Model(x, form(x))


def masked_tokens() -> Any:
    x = keras.Input((None,), name="tokens", dtype="int32")
    return keras.Model(x, layers.GlobalAveragePooling1D()(layers.Embedding(3, 4, mask_zero=True)(x)))


def tied_lengths() -> Any:
    a, b = keras.Input((None, 3), name="a"), keras.Input((None, 5), name="b")
    mask = keras.Input((None,), name="mask", dtype="bool")
    joined = convolved(layers.concatenate([a, b]))
    kept = ops.sum(ops.cast(mask, "float32"), axis=1, keepdims=True)
    return keras.Model([a, b, mask], joined / kept)


SOUND = {
    "five poolings": lambda: image(pooled),
    "a cropping": lambda: image(lambda x: layers.GlobalAveragePooling2D()(layers.Cropping2D(20)(x))),
    "valid convolutions": lambda: keras.Model(x := keras.Input((None, 3)), convolved(x)),
    "a logarithm": lambda: vector(lambda x: ops.log(x)),
    "a square root": lambda: vector(lambda x: ops.sqrt(x - 1)),
    "an arc cosine": lambda: vector(lambda x: ops.arccos(x)),
    "a division of integers": lambda: vector(lambda x: 1 / x, dtype="int32"),
    "an embedding behind a mask": masked_tokens,
    "numbers as indices": lambda: vector(
        lambda x: ops.take(np.ones((2, 3), "float32"), ops.cast(x, "int32"), 0)
    ),
    "inputs with one length": tied_lengths,
    "a list of initial values": lambda: vector(
        layers.Dense(2, bias_initializer=keras.initializers.Constant([0.1, 0.2]))
    ),
    "rows of initial values": lambda: vector(
        layers.Dense(3, kernel_initializer=keras.initializers.Constant([[0.1, 0.2, 0.3]] * 4))
    ),
    "an adaptive pooling": lambda: image(
        lambda x: layers.Flatten()(layers.AdaptiveAveragePooling2D(2)(layers.RandomErasing()(x)))
    ),
    "an array of initial values": lambda: vector(
        layers.Dense(2, bias_initializer=keras.initializers.Constant(np.array([0.1, 0.2])))
    ),
}


@pytest.mark.parametrize("form", SOUND)
def test_a_sound_model_is_accepted_whatever_rows_it_takes(tmp_path: Path, form: str) -> None:
    SOUND[form]().save(tmp_path / "m.keras")
    result, report = registered(tmp_path / "m.keras", tmp_path / "run", foreign=True)
    assert (result["finding"], report.warnings) == ("", [])
    # Its gates try it with the same rows.
    with np.load(report.artifacts["sample"]) as rows:
        assert len(rows["arr_0"]) == result["sample_rows"]


def test_a_model_that_loads_but_predicts_nan_is_accepted_with_a_warning(tmp_path: Path) -> None:
    vector(lambda x: ops.log(x - 1000)).save(tmp_path / "m.keras")
    result, report = registered(tmp_path / "m.keras", tmp_path / "run", foreign=True)
    assert report.warnings == ["not_finite"]
    assert "are not finite" in result["finding"] and "upload it again with a sample" in result["finding"]


def test_a_model_with_weights_that_are_not_finite_is_refused(tmp_path: Path) -> None:
    model = vector(layers.Dense(2, name="broken"))
    model.get_layer("broken").kernel.assign(np.full((4, 2), np.nan))
    model.save(tmp_path / "m.keras")
    with pytest.raises(BadModel, match=r"its weights 'broken/kernel' are not finite"):
        registered(tmp_path / "m.keras", tmp_path / "run", foreign=True)


def of_ten(folder: Path) -> Path:
    """Save a model that takes sequences of the length 10 only, with positive values."""
    x = keras.Input((None, 3), name="x")
    summed = ops.matmul(np.ones((2, 10), "float32"), ops.log(x))
    keras.Model(x, layers.GlobalAveragePooling1D()(summed)).save(folder / "m.keras")
    return folder / "m.keras"


def test_a_model_that_takes_none_of_the_made_up_rows_is_tried_with_a_sample(tmp_path: Path) -> None:
    path = of_ten(tmp_path)
    with pytest.raises(
        BadModel, match=r"rows of the lengths 8, 16, .* were tried\. .*with a sample of its rows"
    ):
        registered(path, tmp_path / "run", foreign=True)
    rows = np.full((2, 10, 3), 0.5, "float32")
    np.savez(tmp_path / "rows.npz", x=rows)
    (tmp_path / "rows.json").write_text(json.dumps({"instances": rows.tolist()}))
    for name in ("rows.npz", "rows.json"):
        sample = str(tmp_path / name)
        result, report = registered(path, tmp_path / name[-4:], foreign=True, sample=sample)
        assert (result["tried"], result["sample_rows"]) == ("the rows of its sample", 2)
        with np.load(report.artifacts["sample"]) as stored:
            np.testing.assert_array_equal(stored["arr_0"], rows)


def test_a_model_of_large_rows_is_tried_with_the_shortest_ones(tmp_path: Path) -> None:
    film(layers.GlobalAveragePooling3D()).save(tmp_path / "m.keras")
    result, report = registered(tmp_path / "m.keras", tmp_path / "run", foreign=True)
    assert (result["tried"], report.warnings) == ("random numbers of the length 1", [])


def test_a_model_of_large_rows_that_takes_no_short_ones_asks_for_a_sample(tmp_path: Path) -> None:
    film(lambda x: layers.GlobalAveragePooling3D()(layers.Conv3D(1, (3, 1, 1))(x))).save(tmp_path / "m.keras")
    with pytest.raises(BadModel, match=r"rows of the length 1 only were tried\. .*with a sample of its rows"):
        registered(tmp_path / "m.keras", tmp_path / "run", foreign=True)


def signature(*inputs: tuple[str, str, tuple[int | None, ...]]) -> Any:
    from jobs.spec.signature import Signature, TensorSpec

    specs = tuple(TensorSpec(name=name, dtype=dtype, shape=shape) for name, dtype, shape in inputs)
    return Signature(inputs=specs, outputs=specs)


X = signature(("x", "float32", (None, 3)))
TWO = signature(("a", "float32", (2,)), ("ids", "int32", ()))


@pytest.mark.parametrize(
    ("text", "inputs", "shapes"),
    [
        ([[[1, 2, 3]]], X, [(1, 1, 3)]),
        ({"inputs": [[[1, 2, 3], [4, 5, 6]]]}, X, [(1, 2, 3)]),
        ({"x": [[1, 2, 3]]}, X, [(1, 1, 3)]),
        ({"instances": [{"a": [1, 2], "ids": 4}, {"a": [3, 4], "ids": 5}]}, TWO, [(2, 2), (2,)]),
        ({"inputs": {"ids": [4], "a": [[1, 2]]}}, TWO, [(1, 2), (1,)]),
    ],
)
def test_a_sample_has_the_forms_of_a_request(
    tmp_path: Path, text: Any, inputs: Any, shapes: list[tuple[int, ...]]
) -> None:
    (tmp_path / "sample").write_text(json.dumps(text))
    assert [rows.shape for rows in read_sample(tmp_path / "sample", inputs, None)] == shapes


@pytest.mark.parametrize(
    ("text", "inputs", "message"),
    [
        ("{", X, "the sample is not JSON"),
        ("[]", X, "the sample has no rows"),
        (
            '{"instances": [[[1, 2]]]}',
            X,
            r"'x' of the sample has the shape \[1, 1, 2\]; it takes \[rows, any, 3\]",
        ),
        ('[[["a", "b", "c"]]]', X, r"'x' of the sample has <U1 values; it takes float32"),
        ("[[[1, 2, 3]], [[1, 2]]]", X, "rows of 'x' in the sample have different shapes"),
        ('[{"a": [1, 2]}]', TWO, "a row of the sample has 'a', but the inputs are 'a', 'ids'"),
        ("[[1, 2]]", TWO, "each row of the sample must be an object with them"),
        ('{"a": [[1, 2]], "ids": [0.5]}', TWO, "'ids' of the sample has numbers that are no int32"),
        ('{"a": [[1, 2]], "ids": [1, 2]}', TWO, "different numbers of rows: 1 for 'a', 2 for 'ids'"),
    ],
)
def test_a_sample_that_does_not_fit_is_refused_with_both_sides(
    tmp_path: Path, text: str, inputs: Any, message: str
) -> None:
    (tmp_path / "sample").write_text(text)
    with pytest.raises(BadSample, match=message):
        read_sample(tmp_path / "sample", inputs, None)


class Squared(layers.Layer):
    def call(self, x: Any) -> Any:
        return x * x


class Net(keras.Model):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dense = layers.Dense(2)

    def call(self, x: Any) -> Any:
        return self.dense(x)


def subclassed() -> Any:
    model = Net()
    model(np.ones((1, 4), "float32"))
    return model


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: vector(layers.Lambda(lambda x: x + 1, name="plus_one")),
            r"its layer 'plus_one' \(keras\.layers\.Lambda\) is Python code .*with the version of your code",
        ),
        (
            lambda: vector(Squared(name="sq")),
            r"its layer 'sq' is of the class \w*>?Squared.* not of Keras: .*version of your code",
        ),
        (
            lambda: vector(layers.Dense(2, activation=lambda x: x * 2)),
            "its activation is a lambda: .*define the function with def",
        ),
        (subclassed, r"a model of the class \w*>?Net, which is not of Keras: .*keras\.Model\(inputs, model"),
    ],
)
def test_a_part_that_is_not_of_keras_is_named_with_the_remedy(
    tmp_path: Path, make: Callable[[], Any], message: str
) -> None:
    make().save(tmp_path / "m.keras")
    with pytest.raises(BadModel, match=message) as refusal:
        registered(tmp_path / "m.keras", tmp_path / "run", foreign=True)
    assert not NOISE.search(str(refusal.value)), str(refusal.value)


def test_a_lambda_is_accepted_together_with_code(tmp_path: Path) -> None:
    vector(layers.Lambda(lambda x: x + 1)).save(tmp_path / "m.keras")
    code = code_in(tmp_path / "code", model="x = 1")
    result, _ = registered(tmp_path / "m.keras", tmp_path / "run", foreign=True, code=code)
    assert result["needs_code"] is True


def test_a_file_of_keras_2_is_refused_with_its_conversion(tmp_path: Path) -> None:
    vector(layers.Dense(2)).save(tmp_path / "m.keras")
    path = rewrite(tmp_path / "m.keras", lambda config: config.update(module="keras.src.engine.functional"))
    with_version(path, "2.15.0")
    with pytest.raises(
        BadModel, match=r"it was saved by Keras 2\.15\.0, .*\.save\(\"model\.h5\"\)"
    ) as refusal:
        registered(path, tmp_path / "run", foreign=True)
    assert not NOISE.search(str(refusal.value)), str(refusal.value)
    assert str(refusal.value).count("it was saved by Keras") == 1


def test_a_damaged_file_keeps_its_reason_though_its_version_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    vector(layers.Dense(2)).save(path)
    body = bytearray(path.read_bytes())
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        body[body.index(start) + flags] |= 1
    path.write_bytes(bytes(body))
    with pytest.raises(BadModel, match="is encrypted"):
        registered(path, tmp_path / "run", foreign=True)


def with_version(path: Path, version: str) -> None:
    import zipfile

    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["metadata.json"] = json.dumps({"keras_version": version}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, body in members.items():
            archive.writestr(name, body)


def test_a_layer_that_refuses_its_config_is_named_without_the_config(tmp_path: Path) -> None:
    vector(layers.Dense(2)).save(tmp_path / "m.keras")

    def change(config: dict[str, Any]) -> None:
        layer = next(part for part in config["config"]["layers"] if part["class_name"] == "Dense")
        layer["config"]["no_such_argument"] = 3

    path = rewrite(tmp_path / "m.keras", change)
    for foreign in (True, False):
        with pytest.raises(BadModel, match="no_such_argument") as refusal:
            registered(path, tmp_path / "run", foreign=foreign)
        assert not NOISE.search(str(refusal.value)), str(refusal.value)


def test_the_gates_try_a_model_with_the_rows_of_its_validation(tmp_path: Path) -> None:
    from jobs.kinds.gate.payload import GateTask
    from workers.engine.data.store import file_digest
    from workers.engine.tasks import gate

    path, report = of_ten(tmp_path), ArtifactReport(tmp_path / "gate")
    np.savez(tmp_path / "sample.npz", np.full((2, 10, 3), 0.5, "float32"))
    task = GateTask(
        folder=report.folder,
        challenger=str(path),
        challenger_digest=file_digest(path),
        sample=str(tmp_path / "sample.npz"),
        dataset=None,
        spec=None,
    )
    states = {entry["name"]: entry["state"] for entry in gate.run(task, report)["gates"]}
    assert (states["finite"], states["batch_invariance"]) == ("passed", "passed")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: keras.Model(x := keras.Input((2,), dtype="string", name="words"), layers.Identity()(x)),
            r"its input 'words' takes texts, .* and send numbers",
        ),
        (
            lambda: keras.Model(
                x := keras.Input(batch_shape=(2, 5, 3)), layers.LSTM(4, stateful=True, name="kept")(x)
            ),
            r"its layer 'kept' keeps a state .*stateful=False",
        ),
    ],
)
def test_rows_that_the_prediction_server_cannot_pass_are_named(
    tmp_path: Path, make: Callable[[], Any], message: str
) -> None:
    make().save(tmp_path / "m.keras")
    with pytest.raises(BadModel, match=message):
        registered(tmp_path / "m.keras", tmp_path / "run", foreign=True)
