import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from jobs.kinds.quantize.payload import QuantizeTask
from jobs.messages.reports.base import MetricValue
from jobs.messages.reports.quantization import (
    Agreement,
    BytesBeforeAfter,
    QuantizationReport,
    QuantizedBytes,
)
from jobs.spec.exports import EXPORTS
from jobs.spec.sections.after import Quantize
from tests.engine.making import ArtifactReport, dataset_file, spec_for, train_member
from tests.next_steps import has_next_step
from tests.present import present
from workers.engine.exports.int8 import NotQuantizable
from workers.engine.exports.source import ExportedFile, ExportSource
from workers.engine.exports.writing import write_model
from workers.engine.models.files import load_model
from workers.engine.models.predict import Predictor
from workers.engine.tasks import quantize
from workers.engine.tasks.quantize import agreement, quantization_warnings

X = np.random.default_rng(0).random((40, 8, 8)).astype(np.float32)


def head(x: Any) -> Any:
    return keras.layers.Dense(3, activation="softmax", dtype="float32")(keras.layers.Flatten()(x))


def dense(x: Any, dtype: str | None = None) -> Any:
    hidden = keras.layers.Dense(64, activation="relu", dtype=dtype)
    return head(hidden(keras.layers.Dense(128)(keras.layers.Flatten()(x))))


def half(x: Any) -> Any:
    return dense(x, "mixed_float16")


def convolution(x: Any) -> Any:
    x = keras.layers.Conv2D(4, 3)(keras.layers.Reshape((8, 8, 1))(x))
    return head(keras.layers.BatchNormalization()(x))


def attention(x: Any) -> Any:
    x = keras.layers.MultiHeadAttention(2, 4)(x, x)
    return head(keras.layers.EinsumDense("abc,cd->abd", output_shape=(8, 6), bias_axes="d")(x))


def nested(x: Any) -> Any:
    parts = []
    for number, form in enumerate((dense, convolution)):
        inner = keras.Input((8, 8))
        member = keras.Model(inner, form(inner), name=f"member_{number}")
        parts.append(keras.layers.Rescaling(0.5)(member(x)))
    return keras.layers.Add()(parts)


def stored(folder: Path, form: Callable[[Any], Any]) -> Path:
    inputs = keras.Input((8, 8), name="input")
    keras.Model(inputs, form(inputs)).save(folder / "m.keras")
    return (folder / "m.keras").rename(folder / "digest")


def quantize_file(source: Path, path: Path) -> ExportedFile:
    """Write the model in `source` as int8 to `path`."""
    return write_model(EXPORTS["int8"], ExportSource.of_file(source, path.parent, X), path)


@pytest.mark.parametrize(
    ("form", "quantized", "skipped"),
    [(dense, 3, 0), (half, 3, 0), (convolution, 1, 1), (attention, 2, 4), (nested, 4, 1)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_kind_of_model_predicts_the_same_after_loading(
    tmp_path: Path, form: Any, quantized: int, skipped: int
) -> None:
    source = stored(tmp_path, form)
    loaded, (done, left) = quantize_file(source, tmp_path / "q.keras")
    original = load_model(source, tmp_path)
    assert (len(done), len(left)) == (quantized, skipped)
    assert all(0 < present(layer.relative_error) < 0.02 for layer in done)
    again = keras.saving.load_model(tmp_path / "q.keras", safe_mode=True)
    np.testing.assert_array_equal(Predictor(again)(X), Predictor(loaded)(X))
    assert np.abs(Predictor(original)(X) - Predictor(loaded)(X)).max() < 0.03


def test_a_skipped_layer_has_a_reason(tmp_path: Path) -> None:
    source = stored(tmp_path, attention)
    _, left = quantize_file(source, tmp_path / "q.keras").layers
    assert {layer.reason for layer in left} == {"part of an attention layer, which could not be loaded"}


def test_a_model_without_quantizable_layers_is_rejected(tmp_path: Path) -> None:
    source = stored(tmp_path, lambda x: keras.layers.Activation("tanh")(x))
    with pytest.raises(NotQuantizable, match="no layer that can be quantized"):
        quantize_file(source, tmp_path / "q.keras")


def read(report: ArtifactReport) -> QuantizationReport:
    return QuantizationReport.model_validate_json(report.artifacts["report"].read_bytes())


def compared(accuracies: Sequence[float | None], file: Sequence[int]) -> QuantizationReport:
    """Return a report with only the accuracies and file sizes of both models."""
    metrics = {
        name: {"accuracy": MetricValue(value=value, rows=9)}
        for name, value in zip(("original", "quantized"), accuracies, strict=True)
    }
    size = BytesBeforeAfter(before=file[0], after=file[1])
    return QuantizationReport(
        mode="int8", task="multiclass", test_rows=9, bytes=QuantizedBytes(file=size, weights=size),
        metrics=metrics, agreement=Agreement(), latency={}, hardware="", layers=(), skipped=(),
    )  # fmt: skip


@pytest.fixture(scope="module", params=["diabetes", "digits"])
def done(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], ArtifactReport]:
    folder = tmp_path_factory.mktemp(request.param)
    spec, file = spec_for(request.param), dataset_file(folder, request.param)
    member = train_member(folder, "m", spec, file, units=256)
    report = ArtifactReport(folder / "run")
    task = QuantizeTask(
        folder=report.folder, spec=spec, quantize=Quantize(), dataset=file, model=member.model, threads=1
    )
    return quantize.run(task, report), report


def test_the_report_compares_the_quantized_model_with_the_original(
    done: tuple[dict[str, Any], ArtifactReport],
) -> None:
    result, report = done
    comparison = read(report)
    assert comparison.bytes.file.after < comparison.bytes.file.before < present(comparison.bytes.stored)
    assert comparison.bytes.weights.after < 0.5 * comparison.bytes.weights.before
    assert set(comparison.latency["quantized"]) == {"1", "32"}
    assert comparison.latency["original"]["1"].p50_ms <= comparison.latency["original"]["1"].p95_ms
    assert "1 of " in comparison.hardware
    assert comparison.platform == "cpu"
    assert len(comparison.layers) == 2
    assert report.steps[-1] == 1.0
    json.dumps(result, allow_nan=False)


def test_both_are_measured_on_the_same_test_rows(done: tuple[dict[str, Any], ArtifactReport]) -> None:
    result, report = done
    comparison = read(report)
    rows = {m.rows for metrics in comparison.metrics.values() for m in metrics.values()}
    assert rows == {result["test_rows"]}
    assert result["metrics"]["test"].keys() == result["original"]["test"].keys()


def test_predictions_stay_nearly_the_same(done: tuple[dict[str, Any], ArtifactReport]) -> None:
    agreed = done[0]["agreement"]
    if agreed["share"] is not None:
        assert agreed["share"] >= 0.98
    else:
        assert agreed["mean_difference"] <= agreed["max_difference"] < 0.1


@pytest.mark.parametrize(
    ("before", "after", "codes"),
    [(None, 0.9, []), (0.9, None, ["quantized_less_accurate"]), (None, None, ["quantized_less_accurate"])],
)
def test_only_an_undefined_metric_of_the_quantized_model_causes_a_warning(
    before: float | None, after: float | None, codes: Any
) -> None:
    assert [code for code, _ in quantization_warnings(compared((before, after), file=(2, 1)))] == codes


def test_agreement_of_classes_is_a_share_and_of_targets_a_distance() -> None:
    a, b = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.6, 0.4], [0.7, 0.3]])
    assert agreement("multiclass", np.array([0, 1]), a, b) == Agreement(share=0.5)
    truth = np.array([[0.0], [2.0]])
    assert agreement("regression", truth, truth, truth + 0.5) == Agreement(
        max_difference=0.5, mean_difference=0.5
    )


def test_a_larger_and_worse_model_has_two_warnings() -> None:
    comparison = compared((0.9, 0.8), file=(100, 120))
    warnings = dict(quantization_warnings(comparison))
    assert list(warnings) == ["quantized_not_smaller", "quantized_less_accurate"]
    assert all(map(has_next_step, warnings.values()))
