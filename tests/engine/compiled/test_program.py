"""Compiled programs: they train like Keras' `fit`, and trials share them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.spec.experiment import ExperimentSpec
from tests.engine.helpers import RecordingReport, spec_of
from tests.present import present
from workers.engine.arrays import Array
from workers.engine.data.dataset import Dataset
from workers.engine.training.prepare import Prepared

Trained = tuple[dict[str, float], list[Array]]

FIT = {"epochs": 3, "batch_size": 16, "learning_rate": 0.01}
MLPS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "adam, dropout and batch norm": (
        "mlp", {"units": 8, "dropout": 0.3, "batch_norm": True}, {"optimizer": "adam"}),
    "rmsprop": ("mlp", {"units": 8, "layers": 2}, {"optimizer": "rmsprop"}),
    "momentum, weight decay, clipping and class weights": (
        "mlp", {"units": 8}, {"optimizer": "sgd", "clipnorm": 0.1, "class_weights": "balanced",
                              "optimizer_args": {"momentum": 0.8, "weight_decay": 0.01}}),
    "a penalty on weights": ("linear", {"l2": 0.05}, {"optimizer": "adam"}),
}  # fmt: skip
QUICK = ("momentum, weight decay, clipping and class weights", "a penalty on weights")
"""Programs of the first tier; `tests/engine/long_trainings` has all."""


def spec(template: str, args: dict[str, Any], fit: dict[str, Any]) -> ExperimentSpec:
    return spec_of("blobs", template, args=args, fit={**FIT, **fit})


def train(prepared: Prepared, tmp_path: Path, loop: Any, epochs: int = 3) -> Trained:
    """Train; return the best epoch's metrics and all variables."""
    from workers.engine.models.variables import values
    from workers.engine.training.checkpointing import Checkpointer
    from workers.engine.training.plan import TrainingPlan
    from workers.engine.training.training import Training

    report = RecordingReport(tmp_path)
    plan = TrainingPlan(
        model=prepared.model, batches=prepared.batches, loop=loop, epochs=epochs, best=None, stop=None,
        validation=prepared.evaluation_set(prepared.dataset.parts.validation), report=report,
        checkpointer=Checkpointer(tmp_path / "c", report, fence=1, interval=1e9), on_progress=lambda _: None,
    )  # fmt: skip
    result = Training(plan).run()
    return result.metrics, [*values(prepared.model.variables), *values(prepared.model.optimizer.variables)]


def assert_equal(first: Trained, second: Trained, rtol: float = 0.0) -> None:
    assert first[0] == pytest.approx(second[0], rel=rtol, abs=0)
    for one, other in zip(first[1], second[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", QUICK)
def test_programs_end_with_the_bits_of_keras_fit(data: Dataset, tmp_path: Path, name: str) -> None:
    from workers.engine.training.loops import FitLoop
    from workers.engine.training.prepare import prepare
    from workers.engine.training.program_loop import ProgramLoop

    def fresh() -> Prepared:
        return prepare(spec(*MLPS[name]), data, data.parts.train, name="t", seed=3)

    prepared = fresh()
    fitted = train(prepared, tmp_path / "fit", FitLoop(prepared.model, prepared.batches))
    for mode in ("many", "one"):
        prepared = fresh()
        loop = ProgramLoop(present(prepared.program), prepared.batches, epochs=3)
        loop.keep_step_mode(mode)
        # dropout divides by a constant in `fit` and by an argument here, so the last digit differs
        assert_equal(train(prepared, tmp_path / mode, loop), fitted, rtol=1e-5 if "dropout" in name else 0.0)


@pytest.mark.parametrize("name", QUICK)
def test_gathering_rows_before_the_loop_or_inside_it_trains_to_the_same_bits(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from workers.engine.compiled import autotune
    from workers.engine.training.prepare import prepare

    trained = {}
    for limit in (autotune.MAX_GATHERED_BYTES, 0):
        monkeypatch.setattr(autotune, "MAX_GATHERED_BYTES", limit)
        monkeypatch.setenv("NPROC", "2")
        prepared = prepare(spec(*MLPS[name]), data, data.parts.train, name="t", seed=3)
        trained[limit] = train(prepared, tmp_path / str(limit), prepared.loop(epochs=3))
    first, second = trained.values()
    assert_equal(first, second)


def test_rows_are_gathered_before_the_loop_if_they_are_few_and_xla_has_several_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from workers.engine.compiled.autotune import MAX_GATHERED_BYTES, gathers_before_loop

    monkeypatch.setenv("NPROC", "2")
    assert gathers_before_loop(MAX_GATHERED_BYTES)
    assert not gathers_before_loop(MAX_GATHERED_BYTES + 1)
    monkeypatch.setenv("NPROC", "1")
    assert not gathers_before_loop(1)


@pytest.mark.parametrize("name", QUICK)
def test_a_cached_model_trains_like_a_new_one(data: Dataset, tmp_path: Path, name: str) -> None:
    from workers.engine.training.model_cache import ModelCache
    from workers.engine.training.prepare import prepare

    template, args, fit = MLPS[name]
    changed = {key: value / 2 for key, value in args.items() if key in ("dropout", "l2")}
    extra = {key: value / 2 for key, value in fit.get("optimizer_args", {}).items()}
    other = spec(template, {**args, **changed}, {**fit, "learning_rate": 0.03, "optimizer_args": extra})

    models = ModelCache()
    first = models.prepare(spec(template, args, fit), data, data.parts.train, name="a", seed=1)
    train(first, tmp_path / "first", first.loop(epochs=3))
    cached = models.prepare(other, data, data.parts.train, name="b", seed=2)
    assert cached.program is first.program
    built = prepare(other, data, data.parts.train, name="b", seed=2)
    assert_equal(
        train(cached, tmp_path / "cached", cached.loop(epochs=3)),
        train(built, tmp_path / "built", built.loop(epochs=3)),
    )


def test_another_shape_gets_its_own_program(data: Dataset) -> None:
    from workers.engine.compiled.cache_key import program_key

    def key(**args: Any) -> str:
        return program_key(spec("mlp", {"units": 8, **args}, {}), data, data.parts.train)

    assert key(dropout=0.1) == key(dropout=0.4)
    assert len({key(), key(dropout=0.1), key(units=9), key(layers=2), key(activation="tanh")}) == 5
    assert key() != program_key(spec("mlp", {"units": 8}, {}), data, data.parts.train_and_validation())


SPACE = [{"name": "units", "kind": "int", "min": 3, "max": 12, "step": 3}]
WIDE: dict[str, dict[str, Any]] = {
    "adam": {"optimizer": "adam"},
    "rmsprop and batch norm": {"optimizer": "rmsprop"},
    "nadam": {"optimizer": "nadam"},
    "adagrad": {"optimizer": "adagrad"},
    "lion, decay": {"optimizer": "lion", "optimizer_args": {"weight_decay": 0.01}},
    "sgd, momentum, clipping": {"optimizer": "sgd", "clipnorm": 0.1, "optimizer_args": {"momentum": 0.9}},
}


@pytest.mark.parametrize("name", ["adam"])
def test_surplus_units_change_nothing_and_stay_at_zero(data: Dataset, tmp_path: Path, name: str) -> None:
    from workers.engine.models.variables import values
    from workers.engine.training.model_cache import ModelCache
    from workers.engine.training.prepare import prepare

    search = {"space": SPACE, "objective": {"metric": "val_loss", "direction": "min"}}
    args = {"units": 6, "layers": 2, "activation": "gelu", "batch_norm": "norm" in name}
    wide_spec = spec_of("blobs", args=args, fit={**FIT, **WIDE[name]}, search=search)
    models = ModelCache()
    wide = models.prepare(wide_spec, data, data.parts.train, name="t", seed=3)
    exact = prepare(wide_spec, data, data.parts.train, name="t", seed=3)
    assert wide.model.get_layer("dense_2").units == 12
    trained, expected = (
        train(wide, tmp_path / "w", wide.loop(epochs=3)),
        train(exact, tmp_path / "e", exact.loop(epochs=3)),
    )
    variables = [*wide.model.variables, *wide.model.optimizer.variables]
    narrow = wide.widths.narrow(variables, values(variables))
    assert_equal((trained[0], narrow), expected, rtol=1e-5)
    for kernel in (variable for variable in wide.model.variables if variable.path.endswith("kernel")):
        rest = np.array(kernel.value)
        rest[tuple(slice(size) for size in wide.widths.shape_of(kernel))] = 0
        assert not rest.any()
    again = wide.widths.widen(variables, narrow)
    assert all(np.array_equal(a, v.numpy()) for a, v in zip(again, variables, strict=True))


def test_rows_that_do_not_fit_on_the_device_come_in_blocks(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.compiled import device_feed
    from workers.engine.training.prepare import prepare

    def trained(folder: str) -> Trained:
        prepared = prepare(spec(*MLPS["rmsprop"]), data, data.parts.train, name="t", seed=3)
        return train(prepared, tmp_path / folder, prepared.loop(epochs=3))

    whole = trained("whole")
    monkeypatch.setattr(device_feed, "RESIDENT_BYTES", 2500)  # two batches per block, the last block shorter
    assert_equal(trained("blocks"), whole)


def test_a_process_that_cannot_create_its_compile_cache_again_works_without_one(
    cache: Path, tmp_path: Path
) -> None:
    from workers.engine.compiled import cache as programs

    (tmp_path / "file").touch()
    programs.enable(str(tmp_path / "file" / "compile-cache"))
    present(programs.active()).put("key", b"program")
    assert present(programs.active()).get("key") is None


def test_cached_models_share_their_training_rows(data: Dataset) -> None:
    from workers.engine.training.model_cache import ModelCache

    cache = ModelCache()
    models = [
        cache.prepare(spec("mlp", {"units": units}, {}), data, data.parts.train, name="t", seed=0)
        for units in (2, 3)
    ]
    assert models[0].batches.x is models[1].batches.x
