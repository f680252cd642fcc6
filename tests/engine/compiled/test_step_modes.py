"""One step in each call or many: which mode is timed, and which one is kept."""

import time
import uuid
from collections.abc import Callable, Mapping, Sized
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.compiled.test_program import MLPS, spec
from tests.present import present
from workers.engine.data.dataset import Dataset


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
    """Return a function that makes a program whose steps take given seconds on the test's own clock."""
    from workers.engine.compiled import program as module
    from workers.engine.compiled import timing_comparison
    from workers.engine.compiled.timing_results import TimingResults
    from workers.engine.training.prepare import prepare

    def make(seconds: Mapping[str, float], *, estimated: str = "many", compile_seconds: float = 0.0) -> Any:
        program: Any = present(
            prepare(spec("mlp", {"units": 6}, {}), data, data.parts.train, name="t", seed=3).program
        )
        now, calls, compiled = [0.0], [], set()

        def run(mode: str, state: Any, _hyperparameters: Any, _data: Any, steps: Sized) -> Any:
            now[0] += len(steps) * seconds[mode] + (0.0 if mode in compiled else compile_seconds)
            compiled.add(mode)
            calls.append((mode, len(steps)))
            return state

        monkeypatch.setattr(program, "_run", run)
        for mode, name in (("many", "_many_steps"), ("one", "_one_step")):
            function = getattr(program, name)
            monkeypatch.setattr(function, "is_compiled", lambda *_, mode=mode: mode in compiled)
        monkeypatch.setattr(module, "timing_clock", lambda: lambda: now[0])
        monkeypatch.setattr(time, "perf_counter", lambda: now[0])
        monkeypatch.setattr(timing_comparison, "CALL_SECONDS", 0.0)
        program._timings = TimingResults(uuid.uuid4().hex)
        program._estimated_mode = estimated
        program.calls = calls
        return program

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

    expensive_layers = [getattr(keras.layers, name)(*args) for name, *args in layers]
    inner = keras.Sequential([keras.Input((28, 28, 1)), *expensive_layers])
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
