"""Casts of trained models to 16 bits: which layers, real bytes, the same signature, and the report."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from jobs.kinds.quantize.payload import QuantizeTask
from jobs.messages.reports.quantization import QuantizationReport
from jobs.messages.reports.verdicts import verdict
from jobs.spec.exports import EXPORTS
from jobs.spec.sections.after import Quantize
from tests.engine.making import ArtifactReport, dataset_file, spec_for, train_member
from tests.engine.tasks.test_quantize import X, attention, convolution, dense, half, nested, stored
from workers.engine.exports.half import NotCastable
from workers.engine.exports.source import ExportedFile, ExportSource
from workers.engine.exports.writing import write_model
from workers.engine.models.build import signature_of
from workers.engine.models.files import load_model
from workers.engine.models.predict import Predictor
from workers.engine.tasks import quantize

HALF = ("float16", "bfloat16")


def cast(source: Path, path: Path, name: str = "float16", sample: Any = X) -> ExportedFile:
    return write_model(EXPORTS[name], ExportSource.of_file(source, path.parent, sample), path)


def recurrent(x: Any) -> Any:
    x = keras.layers.Bidirectional(keras.layers.LSTM(6))(x)
    return keras.layers.Dense(3, activation="softmax", name="output")(x)


@pytest.mark.parametrize("name", HALF)
@pytest.mark.parametrize("form", [dense, half, convolution, attention, nested, recurrent])
def test_every_kind_of_model_keeps_its_signature_and_nearly_its_predictions(
    tmp_path: Path, form: Callable[[Any], Any], name: str
) -> None:
    source = stored(tmp_path, form)
    loaded, (done, _) = cast(source, tmp_path / "c.keras", name)
    original = load_model(source, tmp_path)
    assert done and all(layer.relative_error is not None and layer.relative_error < 0.02 for layer in done)
    assert signature_of(loaded).outputs[0].dtype == signature_of(original).outputs[0].dtype == "float32"
    assert signature_of(loaded).inputs == signature_of(original).inputs
    assert name in {str(variable.dtype) for variable in loaded.variables}
    again = keras.saving.load_model(tmp_path / "c.keras", safe_mode=True)
    np.testing.assert_array_equal(Predictor(again)(X), Predictor(loaded)(X))
    assert np.abs(Predictor(original)(X) - Predictor(loaded)(X)).max() < 0.05


def test_the_file_and_the_weights_take_half_the_bytes(tmp_path: Path) -> None:
    def wide(x: Any) -> Any:
        hidden = keras.layers.Dense(512, activation="relu")(keras.layers.Flatten()(x))
        return keras.layers.Dense(3, activation="softmax")(keras.layers.Dense(512)(hidden))

    source = stored(tmp_path, wide)
    loaded, _ = cast(source, tmp_path / "c.keras")
    weights = [
        sum(variable.value.nbytes for variable in model.variables)
        for model in (load_model(source, tmp_path), loaded)
    ]
    assert weights[1] / weights[0] < 0.51
    assert (tmp_path / "c.keras").stat().st_size / source.stat().st_size < 0.56


def test_weights_beyond_the_range_of_float16_stay_and_bfloat16_takes_them(tmp_path: Path) -> None:
    inputs = keras.Input((4,))
    x = keras.layers.Dense(4, name="large")(keras.layers.Dense(4, name="small")(inputs))
    model = keras.Model(inputs, keras.layers.Dense(2, activation="softmax", name="output")(x))
    model.get_layer("large").bias.assign([1e6] * 4)
    model.save(tmp_path / "m.keras")
    rows = np.ones((3, 4), np.float32)
    done, left = cast(tmp_path / "m.keras", tmp_path / "c.keras", sample=rows).layers
    assert [layer.layer for layer in done] == ["small"]
    reasons = {layer.layer: layer.reason for layer in left}
    assert "1e+06, beyond the range of float16" in reasons["large"]
    assert "makes the outputs" in reasons["output"]
    done, _ = cast(tmp_path / "m.keras", tmp_path / "d.keras", "bfloat16", rows).layers
    assert [layer.layer for layer in done] == ["small", "large"]


def test_raw_inputs_and_numbers_of_words_keep_their_digits(tmp_path: Path) -> None:
    inputs = keras.Input((3,))
    words = keras.layers.Flatten(name="words")(inputs)
    x = keras.layers.Flatten()(keras.layers.Embedding(5000, 4, name="table")(words))
    model = keras.Model(inputs, keras.layers.Dense(2, activation="softmax", name="output")(x))
    model.save(tmp_path / "m.keras")
    # In float16 the numbers 4097 and 4098 would both be 4096 or 4098.
    rows = np.array([[4097.0, 4098.0, 4099.0]], np.float32)
    loaded, (done, _) = cast(tmp_path / "m.keras", tmp_path / "c.keras", sample=rows)
    assert [layer.layer for layer in done] == ["table"]
    assert loaded.get_layer("words").compute_dtype == "float32"
    assert np.abs(Predictor(model)(rows) - Predictor(loaded)(rows)).max() < 0.01


def test_attention_stays_in_float32_under_float16_with_the_reason(tmp_path: Path) -> None:
    source = stored(tmp_path, attention)
    _, left = cast(source, tmp_path / "c.keras", "float16").layers
    reasons = {layer.reason for layer in left if "attention" in layer.layer}
    assert reasons == {"computes attention, which CPUs cannot do in float16"}
    _, left = cast(source, tmp_path / "d.keras", "bfloat16").layers
    assert not [layer for layer in left if "attention" in layer.layer]


def test_a_model_whose_only_layer_makes_the_outputs_is_refused_with_the_reason(tmp_path: Path) -> None:
    source = stored(tmp_path, lambda x: keras.layers.Dense(3, name="only")(keras.layers.Flatten()(x)))
    with pytest.raises(NotCastable, match="only: makes the outputs"):
        cast(source, tmp_path / "c.keras")


@pytest.mark.parametrize("mode", HALF)
def test_the_step_has_the_same_report_as_int8(tmp_path: Path, mode: Any) -> None:
    spec, file = spec_for("digits"), dataset_file(tmp_path, "digits")
    member = train_member(tmp_path, "m", spec, file, units=256)
    report = ArtifactReport(tmp_path / "run")
    task = QuantizeTask(
        folder=report.folder, spec=spec, quantize=Quantize(mode=mode), dataset=file, model=member.model,
        threads=1,
    )  # fmt: skip
    result = quantize.run(task, report)
    comparison = QuantizationReport.model_validate_json(report.artifacts["report"].read_bytes())
    assert comparison.mode == mode
    assert comparison.bytes.file.after < 0.7 * comparison.bytes.file.before
    assert result["agreement"]["share"] >= 0.98
    assert {tensor["dtype"] for tensor in result["signature"]["outputs"]} == {"float32"}
    assert verdict(comparison).startswith(f"{mode} is 1.")
    assert report.artifacts["model"].name == f"{mode}.keras"
