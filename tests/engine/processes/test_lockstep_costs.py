"""Executions in one call or one by one: what decides, and how it is timed."""

import gc
import uuid
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from jobs.messages.training import ExecutionPlan, TrialPlan
from tests.engine.helpers import spec_of
from tests.engine.processes.conftest import SetCost
from tests.engine.processes.test_lockstep import FIT, MLPS, SEARCH, STEPS, task_of, trained
from tests.engine.small_training import blobs_file
from tests.present import present


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return blobs_file(tmp_path_factory.mktemp("lockstep"))


def test_folds_have_their_own_rows_and_train_one_by_one(
    file: DatasetFile, tmp_path: Path, set_cost: SetCost
) -> None:
    calls = set_cost(0.5)
    plain = task_of(file, tmp_path)
    search = {**SEARCH, "evaluation": {"kind": "k_fold", "folds": 3}, "executions_per_trial": 1}
    spec = spec_of("blobs", args=MLPS["plain"], fit={**FIT, "epochs": 2}, search=search)
    plans = tuple(ExecutionPlan(execution=n, seed=1, fold=n) for n in (1, 2, 3))
    folded = TrialPlan(number=1, values={}, spec=spec, executions=plans)
    trained(plain.model_copy(update={"spec": spec, "trials": (folded,)}))
    assert calls == []


@pytest.mark.parametrize(
    "parts",
    [
        {"fit": {**FIT, "epochs": 2, "ema": {"momentum": 0.9}}},
        {"fit": {**FIT, "epochs": 2, "steps_per_execution": 2}},
        {"search": {**SEARCH, "pruner": {"kind": "median"}}, "fit": {**FIT, "epochs": 2}},
    ],
)
def test_executions_with_actions_between_epochs_or_a_fixed_length_of_calls_train_one_by_one(
    file: DatasetFile, tmp_path: Path, set_cost: SetCost, parts: dict[str, Any]
) -> None:
    calls = set_cost(0.5)
    trained(task_of(file, tmp_path, **parts))
    assert calls == []


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (
            "workers.engine.training.training.Training",
            "position",
            property(lambda _: (0, 1)),
        ),  # in the middle of an epoch
        ("workers.engine.training.program_loop.ProgramLoop", "step_mode", "one"),
        ("workers.engine.training.lockstep", "MAX_BYTES", 0),
    ],
)
def test_executions_that_cannot_share_a_call_train_one_by_one(
    file: DatasetFile,
    tmp_path: Path,
    set_cost: SetCost,
    monkeypatch: pytest.MonkeyPatch,
    owner: str,
    name: str,
    value: Any,
) -> None:
    calls = set_cost(0.5)
    monkeypatch.setattr(f"{owner}.{name}", value)
    results, _ = trained(task_of(file, tmp_path, fit={**FIT, "epochs": 2}))
    assert calls == []
    assert [result["epochs"] for result in results.values()] == [2, 2, 2]


def test_executions_one_by_one_release_their_rows(
    file: DatasetFile,
    tmp_path: Path,
    set_cost: SetCost,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from workers.engine.training.program_loop import ProgramLoop

    set_cost(None)
    alive: list[weakref.ref[ProgramLoop]] = []
    begin = ProgramLoop.__init__

    def noting(self: Any, *args: Any, **named: Any) -> None:
        gc.collect()
        assert not any(loop() for loop in alive), "a finished execution still holds its rows"
        begin(self, *args, **named)
        alive.append(weakref.ref(self))

    monkeypatch.setattr(ProgramLoop, "__init__", noting)
    trained(task_of(file, tmp_path, fit={**FIT, "epochs": 1}))
    assert len(alive) == 3


@pytest.fixture
def program(file: DatasetFile) -> Any:
    """A program that has trained for a minute with 0.01 s per epoch, many steps in each call."""
    from workers.engine.compiled.timing_results import TimingResults
    from workers.engine.data.dataset import load_dataset
    from workers.engine.training.prepare import prepare

    spec = spec_of("blobs", args=MLPS["plain"], fit=FIT)
    data = load_dataset(file, present(spec.data))
    prepared = present(prepare(spec, data, data.parts.train, name="t", seed=1).program)
    # Results of other tests are not read.
    prepared._timings = prepared.vmapped._timings = TimingResults(uuid.uuid4().hex)
    prepared.training_time.seconds, prepared.training_time.steps = 60.0, 60 * 100 * STEPS
    return prepared


def timed(program: Any, monkeypatch: pytest.MonkeyPatch, count: int, *, epochs_left: int) -> bool:
    """Return whether a timing round with `count` trainings in one call begins."""
    from workers.engine.compiled.vmapped import EpochInputs

    begun = []

    def time_one(*_: object) -> float:
        begun.append(1)
        return 0.01

    monkeypatch.setattr(program.vmapped, "_time", time_one)
    state: Any = None
    inputs = EpochInputs(state, np.zeros(0), np.arange(STEPS), np.zeros(0))
    program.vmapped.measure(inputs, count, None, epochs_left)
    return bool(begun)


def test_a_vmapped_epoch_is_timed_only_if_that_can_pay(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hour = 3600 * 100
    assert timed(program, monkeypatch, 3, epochs_left=hour)
    assert not timed(program, monkeypatch, 300, epochs_left=hour), "a call of three seconds"
    spent = program.training_time
    spent.seconds, spent.steps = 30.0, 30 * 100 * STEPS
    assert not timed(program, monkeypatch, 4, epochs_left=50), "half a second is left"
    spent.seconds, spent.steps = 15.0, 15 * 100 * STEPS
    assert not timed(program, monkeypatch, 5, epochs_left=hour), "compiling takes a twentieth of 20 s"
    spent.seconds, spent.steps = 60.0, 60 * 100 * STEPS
    spent.timing_seconds = 2.5
    assert not timed(program, monkeypatch, 6, epochs_left=hour), "a twentieth has been spent"
    spent.timing_seconds = 0.0
    program._timings.set_relative_cost(7, 1.0)
    assert not timed(program, monkeypatch, 7, epochs_left=hour), "its cost is known"


def measure(program: Any, count: int, times: int = 20) -> None:
    from workers.engine.compiled import vmapped

    state: Any = None
    inputs = vmapped.EpochInputs(state, np.zeros(0), np.arange(STEPS), np.zeros(0))
    for _ in range(times):
        program.vmapped.measure(inputs, count, None, 10**6)


@pytest.mark.parametrize(("seconds", "expected"), [(0.025, 2.5), (0.5, 50.0)])
def test_the_relative_cost_is_the_time_of_a_call_divided_by_that_of_one_training(
    program: Any, monkeypatch: pytest.MonkeyPatch, seconds: float, expected: float
) -> None:
    from workers.engine.compiled import vmapped

    now, took, calls = [0.0], {1: 0.01, 4: seconds}, []

    def train(inputs: Sequence[Any], _: object) -> list[Any]:
        calls.append(len(inputs))
        now[0] += took[len(inputs)]
        return [(None, {}, None)] * len(inputs)

    monkeypatch.setattr(program.vmapped, "train", train)
    monkeypatch.setattr(vmapped, "timing_clock", lambda: lambda: now[0])
    measure(program, 4)
    assert program._timings.relative_cost(4) == pytest.approx(expected)
    fast = expected < 4
    assert [program.vmapped.is_faster(4, active) for active in (2, 3, 4)] == [False, fast, fast]
    if not fast:
        assert calls == [4, 4], "the first call compiles, the second has clearly lost"


def test_a_call_that_does_not_fit_into_memory_is_not_tried_again(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax

    def train(*_: object) -> list[Any]:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of report")

    monkeypatch.setattr(program.vmapped, "train", train)
    measure(program, 4, times=1)
    assert program.vmapped.is_timed(4)
    assert not program.vmapped.is_faster(4, 4)


def test_the_relative_cost_is_timed_on_the_model_and_stored(
    file: DatasetFile, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.compiled import training_time
    from workers.engine.compiled.timing_results import TimingResults
    from workers.engine.tasks import trial

    task = task_of(file, tmp_path, args={"units": 7})
    trained(task)
    models = trial.MODEL_CACHE._models.values()
    (cached,) = (
        prepared
        for prepared in models
        if any(getattr(layer, "units", 0) == 7 for layer in prepared.model.layers)
    )
    timings = present(cached.program)._timings
    # The step modes are timed too, and on a busy machine single steps may win: these are never vmapped.
    timings.set_step_mode("many")
    monkeypatch.setattr(training_time, "TIMING_SHARE", float("inf"))
    for _ in range(20):
        trained(task)
    cost = timings.relative_cost(3)
    assert 0 < present(cost) < float("inf")
    assert TimingResults(timings._key).relative_cost(3) == cost
    assert list(cache.glob("cost-3-*"))
