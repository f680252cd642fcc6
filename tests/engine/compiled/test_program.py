"""Compiled programs: they train like Keras' `fit`, and trials share them."""

import time
import uuid
from collections.abc import Callable, Mapping, Sized
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.spec.experiment import ExperimentSpec
from tests.engine.helpers import RecordingReport, blobs, profiled, spec_of
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


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    from jobs.spec.sections.data import DataSpec
    from workers.engine.data.dataset import load_dataset

    folder = tmp_path_factory.mktemp("program")
    x, y = blobs()
    np.savez(folder / "blobs.npz", x=x, y=y)
    return load_dataset(
        profiled(folder / "p", source="npz", path=str(folder / "blobs.npz")), DataSpec(dataset="b")
    )


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


@pytest.mark.parametrize("name", MLPS)
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


@pytest.mark.parametrize("name", MLPS)
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


@pytest.mark.parametrize("name", MLPS)
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


def test_every_field_of_a_spec_is_part_of_the_program_key_or_ignored_explicitly() -> None:
    from jobs.spec.experiment import ExperimentSpec
    from workers.engine.compiled.cache_key import IGNORED_SPEC_FIELDS

    assert set(ExperimentSpec.model_fields) - IGNORED_SPEC_FIELDS == {"data", "model", "fit", "precision"}


def test_arguments_that_mean_the_same_share_a_program_and_others_do_not(data: Dataset) -> None:
    from workers.engine.compiled.cache_key import program_key

    def key(momentum: Any) -> str:
        fit = {"optimizer": "sgd", "optimizer_args": {"momentum": momentum}}
        return program_key(spec("mlp", {}, fit), data, data.parts.train)

    assert key(0.0) == key("0.0")
    assert key(0.5) == key("0.9")
    assert key(0.0) != key(0.9)


def test_a_rate_that_follows_the_steps_is_part_of_the_program(data: Dataset) -> None:
    from workers.engine.compiled.cache_key import program_key

    def key(**fit: Any) -> str:
        return program_key(spec("mlp", {"units": 8}, fit), data, data.parts.train)

    cosine, plateau = {"kind": "cosine"}, {"kind": "reduce_on_plateau"}
    assert key(epochs=3, learning_rate=0.1) == key(epochs=4, learning_rate=0.2)
    assert key(schedule=plateau, learning_rate=0.1) == key(schedule=plateau, learning_rate=0.2)
    keys = {key(schedule=cosine), key(schedule=cosine, learning_rate=0.1), key(schedule=cosine, epochs=4)}
    assert len({key(), *keys, key(ema={"momentum": 0.9}), key(ema={"momentum": 0.8})}) == 6


def test_the_least_recently_used_model_leaves_the_cache_first(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.training import model_cache

    monkeypatch.setattr(model_cache, "MAX_MODELS", 2)
    models = model_cache.ModelCache()

    def program(units: int) -> Any:
        wanted = spec("mlp", {"units": units}, {})
        return models.prepare(wanted, data, data.parts.train, name="t", seed=0).program

    first, second = program(2), program(3)
    assert program(2) is first
    program(4)
    assert program(2) is first
    assert program(3) is not second


SPACE = [{"name": "units", "kind": "int", "min": 3, "max": 12, "step": 3}]
WIDE: dict[str, dict[str, Any]] = {
    "adam": {"optimizer": "adam"},
    "rmsprop and batch norm": {"optimizer": "rmsprop"},
    "nadam": {"optimizer": "nadam"},
    "adagrad": {"optimizer": "adagrad"},
    "lion, decay": {"optimizer": "lion", "optimizer_args": {"weight_decay": 0.01}},
    "sgd, momentum, clipping": {"optimizer": "sgd", "clipnorm": 0.1, "optimizer_args": {"momentum": 0.9}},
}


@pytest.mark.parametrize("name", WIDE)
def test_surplus_units_change_nothing_and_stay_at_zero(data: Dataset, tmp_path: Path, name: str) -> None:
    from workers.engine.models.variables import values
    from workers.engine.training.model_cache import ModelCache
    from workers.engine.training.prepare import prepare

    search = {"space": SPACE, "objective": {"metric": "val_loss", "direction": "min"}}
    args = {"units": 6, "layers": 2, "activation": "gelu", "batch_norm": "norm" in name}
    wanted = spec_of("blobs", args=args, fit={**FIT, **WIDE[name]}, search=search)
    models = ModelCache()
    wide = models.prepare(wanted, data, data.parts.train, name="t", seed=3)
    exact = prepare(wanted, data, data.parts.train, name="t", seed=3)
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


def test_a_width_with_much_training_planned_gets_its_own_program(data: Dataset) -> None:
    from workers.engine.models.width_padding import widened

    def width(**fit: Any) -> Any:
        search = {"space": SPACE, "objective": {"metric": "val_loss", "direction": "min"}}
        wanted = spec_of("blobs", args={"units": 6}, fit={**FIT, **fit}, search=search)
        return widened(wanted, data.profile, rows=1000).model.args["units"]

    assert (width(epochs=10), width(epochs=100_000)) == (12, 6)


def test_the_program_of_a_training_does_not_depend_on_earlier_trainings(data: Dataset) -> None:
    from workers.engine.training.model_cache import ModelCache

    search = {"space": SPACE, "objective": {"metric": "val_loss", "direction": "min"}}
    models = ModelCache()

    def program(units: int) -> Any:
        wanted = spec_of("blobs", args={"units": units}, fit=FIT, search=search)
        return models.prepare(wanted, data, data.parts.train, name="t", seed=0).program

    shared = program(6)
    shared.training_time.seconds = 1e6
    program(9)
    assert program(6) is shared


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


def test_the_faster_step_mode_is_found_by_timing_both_on_the_model(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.training.prepare import prepare

    prepared = prepare(spec(*MLPS["rmsprop"]), data, data.parts.train, name="t", seed=3)
    program = present(prepared.program)
    loop = prepared.loop(epochs=3)
    quick = program._run

    def slow_loop(mode: str, *args: Any) -> Any:
        spin(0.05 if mode == "many" else 0.0)
        return quick(mode, *args)

    monkeypatch.setattr(program, "_run", slow_loop)
    loop.epoch(1, 0, [], lambda _: None)
    loop.epoch(2, 0, [], lambda _: None)
    assert loop.step_mode == "many", "nothing is timed before much time has been trained"
    program.training_time.seconds, program.training_time.steps = 1e6, 10**8
    for epoch in range(3, 20):
        loop.epoch(epoch, 0, [], lambda _: None)
    assert loop.step_mode == "one"


@pytest.fixture
def fake_steps(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that makes a program whose steps take given seconds on a clock of the test's own."""
    from workers.engine.compiled import program as module
    from workers.engine.compiled import timing_comparison
    from workers.engine.compiled.timing_results import TimingResults
    from workers.engine.training.prepare import prepare

    def make(seconds: Mapping[str, float], *, estimated: str = "many", compile_seconds: float = 0.0) -> Any:
        made: Any = present(
            prepare(spec("mlp", {"units": 6}, {}), data, data.parts.train, name="t", seed=3).program
        )
        now, calls, compiled = [0.0], [], set()

        def run(mode: str, state: Any, _hyperparameters: Any, _data: Any, steps: Sized) -> Any:
            now[0] += len(steps) * seconds[mode] + (0.0 if mode in compiled else compile_seconds)
            compiled.add(mode)
            calls.append((mode, len(steps)))
            return state

        monkeypatch.setattr(made, "_run", run)
        for mode, name in (("many", "_many_steps"), ("one", "_one_step")):
            function = getattr(made, name)
            monkeypatch.setattr(function, "is_compiled", lambda *_, mode=mode: mode in compiled)
        monkeypatch.setattr(module, "timing_clock", lambda: lambda: now[0])
        monkeypatch.setattr(time, "perf_counter", lambda: now[0])
        monkeypatch.setattr(timing_comparison, "CALL_SECONDS", 0.0)
        made._timings = TimingResults(uuid.uuid4().hex)
        made._estimated_mode = estimated
        made.calls = calls
        return made

    return make


def train_for(program: Any, seconds: float, *, of: float = 3600.0) -> None:
    """Train step by step for some seconds, and time the modes between the steps as the loop does."""
    state: Any = ([np.zeros(1)] * 30, [], [], [])
    rows = np.zeros((50, 1), np.int32)
    spent = program.training_time
    while spent.seconds < seconds:
        left = (of - spent.seconds) / (spent.seconds_per_step if spent.steps else 1.0)
        program.time_modes(state, np.zeros(1), (rows, rows, rows, rows), left)
        program.train(program.step_mode, state, None, None, range(10))


@pytest.mark.parametrize(("seconds", "mode"), [(0.085, "one"), (0.095, "many"), (0.12, "many")])
def test_one_step_per_call_is_chosen_only_if_it_is_clearly_faster(
    fake_steps: Callable[..., Any], seconds: float, mode: str
) -> None:
    program = fake_steps({"many": 0.1, "one": seconds})
    train_for(program, 200)
    assert (program.step_mode, program._timings.step_mode) == (mode, mode)


@pytest.mark.parametrize("seconds", [0.05, 0.1, 3.0])
def test_timing_takes_at_most_a_twentieth_of_the_time_trained(
    fake_steps: Callable[..., Any], seconds: float
) -> None:
    program = fake_steps({"many": 0.1, "one": seconds}, compile_seconds=2.0)
    spent = program.training_time
    for trained in range(5, 400, 5):
        train_for(program, trained)
        # A single measurement may take longer than expected: that of the first step of a slow variant does.
        assert spent.timing_seconds <= 0.05 * spent.seconds + max(seconds - 0.1, 0)
    assert program._timings.step_mode is not None


def test_a_variant_that_is_clearly_slower_is_dropped_after_one_step(fake_steps: Callable[..., Any]) -> None:
    program = fake_steps({"many": 0.1, "one": 3.0})
    train_for(program, 300)
    assert [call for call in program.calls if call[0] == "one"] == [("one", 1), ("one", 1)], "one compiles"
    assert program._timings.step_mode == "many"


def test_long_steps_are_never_run_in_a_compiled_loop(fake_steps: Callable[..., Any]) -> None:
    program = fake_steps({"many": 0.05, "one": 0.05}, estimated="one")
    train_for(program, 2000)
    assert {mode for mode, _ in program.calls} == {"one"}
    assert program.step_mode == "one"


def test_short_steps_of_convolutions_are_timed_in_a_compiled_loop(fake_steps: Callable[..., Any]) -> None:
    program = fake_steps({"many": 0.001, "one": 0.004}, estimated="one")
    train_for(program, 200)
    assert program.step_mode == "many"


def test_modes_that_cannot_be_timed_are_not_tried_again(
    fake_steps: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax

    program = fake_steps({"many": 0.1, "one": 0.1})
    train = program._run

    def run(mode: str, *args: Any) -> Any:
        if mode == "one":
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
        return train(mode, *args)

    monkeypatch.setattr(program, "_run", run)
    train_for(program, 200)
    assert program._timings.step_mode == "many"


def test_a_process_that_dies_while_it_times_leaves_the_default_mode_behind(
    tmp_path: Path, fake_steps: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.compiled import cache
    from workers.engine.compiled.timing_results import TimingResults

    monkeypatch.setattr(cache, "active", lambda: cache.FileCache(tmp_path))
    program = fake_steps({"many": 0.1, "one": 0.1})
    train, seen = program._run, []

    def run(mode: str, *args: Any) -> Any:
        if mode == "one":
            seen.append(TimingResults(program._timings._key).step_mode)
        return train(mode, *args)

    monkeypatch.setattr(program, "_run", run)
    while not seen:
        train_for(program, program.training_time.seconds + 1)
    assert set(seen) == {"many"}
    assert program._timings.step_mode is None
    assert TimingResults(program._timings._key).step_mode is None, "another process may time the rest"


@pytest.mark.parametrize(
    ("rows", "layers", "mode"),
    [
        (64, [("Conv2D", 16, 3)], "one"),
        (1, [("Conv2D", 16, 3)], "many"),
        (512, [("Flatten",), ("Dense", 512)], "many"),
    ],
)
def test_a_model_with_expensive_convolutions_starts_with_one_step_per_call(
    rows: int, layers: Any, mode: str
) -> None:
    import keras

    from workers.engine.compiled.autotune import estimate_step_mode

    made = [getattr(keras.layers, name)(*args) for name, *args in layers]
    inner = keras.Sequential([keras.Input((28, 28, 1)), *made])
    inner.trainable = False  # frozen layers take as long
    assert estimate_step_mode(keras.Sequential([inner, keras.layers.Flatten()]), rows) == mode


def test_step_modes_are_not_timed_for_a_training_that_ends_soon(fake_steps: Callable[..., Any]) -> None:
    program = fake_steps({"many": 0.1, "one": 0.05})
    train_for(program, 22.5, of=23)
    assert {mode for mode, _ in program.calls} == {"many"}
    train_for(program, 23.5, of=3600)
    assert {mode for mode, _ in program.calls} == {"many", "one"}


def test_step_modes_are_timed_after_many_trainings_that_end_soon(fake_steps: Callable[..., Any]) -> None:
    program = fake_steps({"many": 0.1, "one": 0.05})
    for _ in range(100):
        train_for(program, program.training_time.seconds + 2, of=program.training_time.seconds + 2)
    assert program.step_mode == "one"


def spin(seconds: float) -> None:
    import time

    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


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
