"""Precision: each layer's dtype policy and the loss scaling."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.spec.sections.precision import PrecisionSpec
from tests.engine.helpers import RecordingReport, profiled, spec_of
from tests.present import present
from workers.engine.errors import BadSpec
from workers.engine.models.precision import policy_of


def test_input_scaling_and_output_stay_in_float32_unless_overridden() -> None:
    mixed = PrecisionSpec(policy="mixed_bfloat16")
    assert policy_of("dense_1", mixed) == "mixed_bfloat16"
    assert {policy_of(name, mixed) for name in ("normalize", "output", "target_scale")} == {"float32"}


def test_the_last_override_that_matches_a_layers_name_wins() -> None:
    overrides = [
        {"match": "dense", "policy": "float32"},
        {"match": "dense_2", "policy": "mixed_bfloat16"},
    ]
    precision = PrecisionSpec.model_validate({"policy": "mixed_float16", "overrides": overrides})
    assert [policy_of(f"dense_{i}", precision) for i in (1, 2)] == ["float32", "mixed_bfloat16"]


def test_a_stored_override_whose_pattern_is_no_longer_accepted_fails_with_the_reason() -> None:
    precision = PrecisionSpec.model_validate({"overrides": [{"match": "(?=dense)", "policy": "float32"}]})
    with pytest.raises(BadSpec, match="no lookahead"):
        policy_of("dense_1", precision)


@pytest.fixture
def reports() -> list[RecordingReport]:
    """Return the reports of the trainings of a test."""
    return []


@pytest.fixture
def trained(tmp_path: Path, reports: list[RecordingReport]) -> Callable[..., tuple[Any, Any]]:
    from workers.engine.data.dataset import load_dataset
    from workers.engine.training.checkpointing import Checkpointer
    from workers.engine.training.early_stopping import BestTracker
    from workers.engine.training.plan import TrainingPlan
    from workers.engine.training.prepare import prepare
    from workers.engine.training.training import Training

    file = profiled(tmp_path / "iris", bundled="iris")

    def run(*, epochs: int = 2, **precision: Any) -> tuple[Any, Any]:
        spec = spec_of(args={"units": 4}, precision=precision, fit={"epochs": epochs, "batch_size": 32})
        dataset = load_dataset(file, present(spec.data))
        prepared = prepare(spec, dataset, dataset.parts.train, name="p", seed=0)
        report = RecordingReport(tmp_path)
        reports.append(report)
        plan = TrainingPlan(
            model=prepared.model, batches=prepared.batches, loop=prepared.loop(epochs=epochs), epochs=epochs,
            best=BestTracker("val_loss", "min"),
            validation=prepared.evaluation_set(dataset.parts.validation), stop=None, report=report,
            checkpointer=Checkpointer(tmp_path / "c", report, fence=1), on_progress=lambda done: None,
        )  # fmt: skip
        return prepared.model, Training(plan).run()

    return run


def test_a_dynamic_scale_and_its_skipped_steps_are_metrics_of_each_epoch(
    trained: Callable[..., tuple[Any, Any]],
) -> None:
    model, result = trained(policy="mixed_float16", loss_scale="dynamic")
    assert type(model.optimizer).__name__ == "LossScaleOptimizer"
    assert result.metrics["loss_scale"] >= 1
    assert result.metrics["skipped_steps"] >= 0
    assert model.get_layer("dense_1").compute_dtype == "float16"
    assert model.get_layer("output").compute_dtype == "float32"


def test_a_scale_that_overflows_for_epochs_is_a_warning_of_the_job(
    trained: Callable[..., tuple[Any, Any]],
    reports: list[RecordingReport],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import keras

    # Each step halves it once, so that all steps of these epochs are skipped.
    large = partial(keras.optimizers.LossScaleOptimizer, initial_scale=2.0**100)
    monkeypatch.setattr(keras.optimizers, "LossScaleOptimizer", large)
    trained(policy="mixed_float16", epochs=5)
    ((code, message), _) = reports[0].of("warning")[0]
    assert code == "loss_scale_unstable" and "were skipped" in message and "mixed_bfloat16" in message
    monkeypatch.undo()
    trained(policy="mixed_float16", epochs=5)
    assert reports[1].of("warning") == []


def test_a_fixed_scale_is_kept_and_not_replaced_by_a_dynamic_one(
    trained: Callable[..., tuple[Any, Any]],
) -> None:
    model, result = trained(policy="mixed_float16", loss_scale=1024.0)
    assert type(model.optimizer).__name__ == "Adam"
    assert model.optimizer.loss_scale_factor == 1024.0
    assert "loss_scale" not in result.metrics


def test_bfloat16_needs_no_scale(trained: Callable[..., tuple[Any, Any]]) -> None:
    model, _ = trained(policy="mixed_bfloat16")
    assert type(model.optimizer).__name__ == "Adam"
    assert model.get_layer("dense_1").compute_dtype == "bfloat16"
    assert {str(v.dtype) for v in model.trainable_variables} == {"float32"}


def test_layers_that_compute_in_float16_by_an_override_have_their_loss_scaled(
    trained: Callable[..., tuple[Any, Any]],
) -> None:
    model, result = trained(overrides=[{"match": "dense", "policy": "mixed_float16"}])
    assert model.get_layer("dense_1").compute_dtype == "float16"
    assert type(model.optimizer).__name__ == "LossScaleOptimizer" and result.metrics["loss_scale"] >= 1
    model, _ = trained(overrides=[{"match": "dense", "policy": "mixed_float16"}], loss_scale="none")
    assert type(model.optimizer).__name__ == "Adam"


@pytest.fixture
def in_double() -> Iterator[None]:
    from workers.engine.models.precision import compute_in_double

    compute_in_double(True)
    yield
    compute_in_double(False)


def test_float64_trains_in_float64_and_differs_from_float32_in_the_expected_digits(
    trained: Callable[..., tuple[Any, Any]],
) -> None:
    from workers.engine.models.precision import compute_in_double

    _, single = trained(policy="float32")
    compute_in_double(True)
    try:
        model, double = trained(policy="float64")
        kernel = np.asarray(model.get_layer("dense_1").kernel.value)
        loss = np.asarray(model.metrics[0].result())
        slots = {str(v.value.dtype) for v in model.optimizer.variables if v.shape}
    finally:
        compute_in_double(False)
    assert kernel.dtype == loss.dtype == np.float64 and slots == {"float64"}
    # More digits than float32 has.
    assert np.any(kernel != kernel.astype(np.float32))
    for name in ("loss", "val_loss"):
        difference = abs(double.metrics[name] - single.metrics[name]) / single.metrics[name]
        assert 0 < difference < 1e-5


def test_a_process_computes_in_float32_again_after_a_run_in_float64(
    trained: Callable[..., tuple[Any, Any]], in_double: None
) -> None:
    from workers.engine.models.precision import compute_in_double

    trained(policy="float64")
    compute_in_double(False)
    model, _ = trained(policy="float32")
    assert {str(v.value.dtype) for v in model.trainable_variables} == {"float32"}
    assert str(np.asarray(model.metrics[0].result()).dtype) == "float32"


def test_float8_trains_dense_layers_and_its_scales_follow_the_values(
    trained: Callable[..., tuple[Any, Any]],
) -> None:
    model, result = trained(policy="float8")
    hidden, output = model.get_layer("dense_1"), model.get_layer("output")
    assert (hidden.quantization_mode, output.quantization_mode) == ("float8", None)
    assert float(hidden.kernel_amax_history.value.max()) > 0
    assert float(hidden.kernel_scale.value) != 1
    assert result.history[-1]["loss"] < result.history[0]["loss"]


def test_float8_by_an_override_is_for_the_named_layer_alone(
    trained: Callable[..., tuple[Any, Any]],
) -> None:
    model, _ = trained(overrides=[{"match": "output", "policy": "float8"}])
    assert model.get_layer("output").quantization_mode == "float8"
    assert model.get_layer("dense_1").quantization_mode is None


def test_float8_for_layers_that_keras_cannot_train_in_it_is_refused_with_the_way_on(
    trained: Callable[..., tuple[Any, Any]],
) -> None:
    with pytest.raises(BadSpec, match="use mixed_bfloat16"):
        trained(overrides=[{"match": "normalize", "policy": "float8"}], policy="float32")


@pytest.mark.parametrize(
    ("policy", "form", "is_refused"),
    [
        ("mixed_float16", {}, True),
        ("mixed_bfloat16", {}, False),
        ("mixed_float16", {"dropout": 0.1}, False),
        ("mixed_float16", {"return_attention_scores": True}, False),
    ],
)
def test_attention_in_float16_is_refused_on_a_cpu_before_the_first_step(
    policy: str, form: dict[str, Any], is_refused: bool
) -> None:
    import keras

    from workers.engine.models.precision import check_computable

    inputs = keras.Input((4, 8))
    dropout = form.pop("dropout", 0.0)
    attention = keras.layers.MultiHeadAttention(2, 4, dropout=dropout, name="attention", dtype=policy)
    model = keras.Model(inputs, attention(inputs, inputs, **form))
    if is_refused:
        with pytest.raises(BadSpec, match=r"attention.*use mixed_bfloat16"):
            check_computable(model)
    else:
        check_computable(model)


@pytest.mark.parametrize(
    ("epochs", "message"),
    [
        ([(2**15, 0)], None),
        ([(2**12, 3), (2**12, 3), (2**12, 3), (2**12, 3)], None),
        ([(2**12, 3), (2**11, 6), (2**9, 9), (2**7, 12)], "steps in 3 epochs were skipped"),
        ([(0.5, 10)], "fell below 1"),
    ],
)
def test_a_loss_scale_that_does_not_settle_is_named(
    epochs: list[tuple[float, int]], message: str | None
) -> None:
    from workers.engine.models.precision import instability_of_scale

    history = [{"loss_scale": float(scale), "skipped_steps": float(skipped)} for scale, skipped in epochs]
    found = instability_of_scale(history, steps=10)
    assert (found is None) == (message is None)
    assert message is None or message in str(found)
    assert instability_of_scale([{"loss": 1.0}], steps=10) is None


def test_a_runner_computes_in_float64_for_the_task_that_asks_for_it_alone() -> None:
    import jax
    import keras

    from workers.runner.libraries import set_number_type

    set_number_type(in_double=True)
    try:
        assert jax.numpy.zeros(1, "float64").dtype == "float64"
        assert (keras.config.floatx(), keras.config.dtype_policy().name) == ("float64", "float64")
    finally:
        set_number_type(in_double=False)
    assert jax.numpy.zeros(1, "float32").dtype == "float32" and not jax.config.jax_enable_x64
    assert (keras.config.floatx(), keras.config.dtype_policy().name) == ("float32", "float32")
