"""Executions of a trial in one call: each trains as it would alone, and ends as it would alone."""

import gc
import json
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from jobs.contracts.task_parts import CheckpointFolder
from jobs.kinds.search.payload import ExecutionPlan, TrialPlan, TrialTask
from tests.engine.helpers import Memory, spec_of
from tests.engine.training import blobs_file
from workers.engine.killpoint import VARIABLE
from workers.engine.training.checkpointing import INTERVAL

FIT = {"epochs": 6, "batch_size": 16, "learning_rate": 0.03}
STEPS = 4
"""Of an epoch."""
SEARCH = {
    "algorithm": "random",
    "objective": {"metric": "val_loss", "direction": "min"},
    "space": [{"name": "learning_rate", "kind": "float", "min": 0.01, "max": 0.1}],
    "executions_per_trial": 3,
}
MLPS = {
    "dropout and batch normalization": {"units": 8, "dropout": 0.3, "batch_norm": True},
    "plain": {"units": 8, "layers": 2},
}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return blobs_file(tmp_path_factory.mktemp("lockstep"))


@pytest.fixture
def stacks(monkeypatch):
    """Let the price of a stacked epoch be what a test says; return how many lanes each call had."""
    from workers.engine.compiled.autotune import Choice
    from workers.engine.compiled.vmapped import Stacked

    calls: list[int] = []
    train = Stacked.train

    def counting(self, lanes, shared):
        calls.append(len(lanes))
        return train(self, lanes, shared)

    def at(price):
        monkeypatch.setattr(Choice, "price", lambda self, lanes: price)
        monkeypatch.setattr(Stacked, "train", counting)
        calls.clear()
        return calls

    return at


def task_of(file, folder: Path, *, resume=None, known=(), executions=3, **parts) -> TrialTask:
    """Return a task of one trial; `resume` gives each execution its newest checkpoint."""
    spec = spec_of("blobs", **{"args": MLPS["plain"], "fit": FIT, "search": SEARCH, **parts})
    plans = tuple(
        ExecutionPlan(execution=n, seed=40 + n, checkpoints=(resume or {}).get(n, ()))
        for n in range(1, executions + 1)
        if n not in known
    )
    return TrialTask(
        folder=str(folder), checkpoints=str(folder), spec=spec, objective=spec.search.objective, dataset=file,
        trials=(TrialPlan(number=1, values={}, spec=spec, executions=plans),),
    )  # fmt: skip


def trained(task, memory=None):
    """Run a task; return each execution's result, and the points of its curves."""
    from workers.engine.tasks import trial

    memory = memory or Memory(task.folder)
    (result,) = trial.run(task, memory)["trials"]
    curves: dict[int, list[dict[str, float]]] = {}
    for (_, figures), named in memory.of("metric"):
        curves.setdefault(named["execution"], []).append(figures)
    return {one["execution"]: one for one in result["executions"]}, curves


def assert_alike(first, second):
    """Compare results and curves; what is computed in another order differs in its last digits."""
    assert first[1].keys() == second[1].keys()
    for execution, points in first[1].items():
        assert len(points) == len(second[1][execution])
        for one, other in zip(points, second[1][execution], strict=True):
            assert one == pytest.approx(other, rel=1e-4, abs=1e-5)
    for execution, result in first[0].items():
        other = second[0][execution]
        assert (result["state"], result["epochs"]) == (other["state"], other["epochs"])
        assert result["score"] == pytest.approx(other["score"], rel=1e-4)


@pytest.mark.parametrize("name", MLPS)
def test_executions_in_one_call_train_as_they_do_one_by_one(file, tmp_path, stacks, name):
    calls = stacks(None)
    alone = trained(task_of(file, tmp_path / "alone", args=MLPS[name]))
    assert calls == []
    calls = stacks(0.5)
    assert_alike(trained(task_of(file, tmp_path / "together", args=MLPS[name])), alone)
    assert calls == [3] * 6
    losses = [curve[-1]["val_loss"] for curve in alone[1].values()]
    assert len(set(losses)) == 3, "they had the same seed"


def test_each_stops_at_its_own_epoch_and_the_last_go_on_alone(file, tmp_path, stacks):
    fit = {**FIT, "epochs": 40, "early_stopping": {"monitor": "val_loss", "patience": 2, "min_delta": 0.02}}
    stacks(None)
    alone = trained(task_of(file, tmp_path / "alone", fit=fit))
    ends = sorted(len(curve) for curve in alone[1].values())
    assert ends[0] < ends[1] <= ends[2], "choose another patience: they end together"
    calls = stacks(1.5)  # pays for two and more
    assert_alike(trained(task_of(file, tmp_path / "together", fit=fit)), alone)
    assert calls == [3] * ends[1]


def test_a_pause_leaves_a_checkpoint_of_each_and_all_go_on_from_theirs(file, tmp_path, stacks):
    from workers.engine.report import Yielding
    from workers.engine.tasks import trial

    stacks(0.5)
    unbroken = trained(task_of(file, tmp_path / "unbroken"))
    memory = Memory(tmp_path / "paused")
    # Asked before the trial, then by each execution after each epoch: the second one hears it in its third.
    memory.wants = [None] * 8 + ["pause"]
    with pytest.raises(Yielding, match="pause"):
        trial.run(task_of(file, tmp_path / "paused"), memory)
    resume = {
        named["execution"]: (
            CheckpointFolder(folder=args[0], manifest=named["manifest"], step=named["step"]),
        )
        for args, named in memory.of("checkpoint")
    }
    assert resume.keys() == {1, 2, 3}
    epochs = {named["epoch"] for _, named in memory.of("checkpoint")}
    assert epochs == {3}
    states, curves = trained(task_of(file, tmp_path / "paused", resume=resume))
    assert_alike((states, curves), (unbroken[0], {n: curve[3:] for n, curve in unbroken[1].items()}))


def test_one_that_had_ended_and_one_that_goes_on_train_with_one_that_begins(file, tmp_path, stacks):
    """A runner that is lost leaves each execution where it was."""
    stacks(0.5)
    unbroken = trained(task_of(file, tmp_path / "unbroken"))
    checkpoints: dict[int, tuple[CheckpointFolder, ...]] = {}
    for execution, epochs in ((1, 6), (2, 2)):
        plan = task_of(file, tmp_path / f"part-{execution}", known={1, 2, 3} - {execution})
        short = plan.trials[0].model_copy(update={"until": epochs, "waits": True})
        memory = Memory(plan.folder)
        trained(plan.model_copy(update={"trials": (short,)}), memory)
        args, named = memory.of("checkpoint")[-1]
        folder = CheckpointFolder(folder=args[0], manifest=named["manifest"], step=named["step"])
        checkpoints[execution] = (folder,)
    states, curves = trained(task_of(file, tmp_path / "lost", resume=checkpoints))
    rest = {2: unbroken[1][2][2:], 3: unbroken[1][3]}
    assert_alike((states, curves), (unbroken[0], rest))


@pytest.mark.parametrize("point", ["batch:8", "epoch:11", "checkpoint.arrays:15"])
def test_executions_that_are_killed_together_go_on_each_from_its_checkpoint(file, tmp_path, stacks, point):
    stacks(0.5)
    unbroken = trained(task_of(file, tmp_path / "unbroken"))
    (tmp_path / "task.json").write_text(task_of(file, tmp_path / "killed").model_dump_json())
    killed = subprocess.run(
        [sys.executable, "-m", "tests.engine.lockstep_child", str(tmp_path / "task.json")],
        env={**os.environ, VARIABLE: point, INTERVAL: "0"}, capture_output=True, text=True,
    )  # fmt: skip
    assert killed.returncode == -9, killed.stderr[-3000:]
    heard = [json.loads(line) for line in killed.stdout.splitlines()]
    newest = {body.pop("execution"): (CheckpointFolder(**body),) for body in heard}
    assert newest, "it was killed too early to leave anything"
    states, curves = trained(task_of(file, tmp_path / "killed", resume=newest))
    done = {execution: folder.step // STEPS for execution, (folder,) in newest.items()}
    rest = {n: curve[done.get(n, 0) :] for n, curve in unbroken[1].items()}
    assert_alike((states, curves), (unbroken[0], rest))


def test_one_that_diverges_fails_its_trial_and_says_which(file, tmp_path, stacks, monkeypatch):
    from workers.engine.compiled.vmapped import Stacked
    from workers.engine.tasks import trial

    calls = stacks(0.5)
    train = Stacked.train

    def diverging(self, lanes, shared):
        first, (state, logs, predictions), third = train(self, lanes, shared)
        loss = float("nan") if len(calls) == 2 else logs["loss"]
        return [first, (state, {**logs, "loss": loss}, predictions), third]

    monkeypatch.setattr(Stacked, "train", diverging)
    memory = Memory(tmp_path)
    assert trial.run(task_of(file, tmp_path), memory)["trials"] == []
    (((error,), _),) = memory.of("trial_ends")
    assert "the loss became nan in epoch 2" in str(error)
    said = [(args[0], args[1]) for args, _ in memory.of("execution")]
    assert said == [(1, "running"), (2, "running"), (3, "running"), (2, "failed")]
    left = {named["execution"]: named["epoch"] for _, named in memory.of("checkpoint")}
    assert left == {1: 2, 3: 2}, "the others go on from there when the trial is tried again"


def test_folds_have_rows_of_their_own_and_train_one_by_one(file, tmp_path, stacks):
    calls = stacks(0.5)
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
        {"search": {**SEARCH, "pruner": {"kind": "median"}}, "fit": {**FIT, "epochs": 2}},
    ],
)
def test_what_acts_between_epochs_keeps_executions_apart(file, tmp_path, stacks, parts):
    calls = stacks(0.5)
    trained(task_of(file, tmp_path, **parts))
    assert calls == []


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (
            "workers.engine.training.training.Training",
            "done",
            property(lambda _: (0, 1)),
        ),  # in the middle of an epoch
        ("workers.engine.training.loops.ProgramLoop", "way", "one"),
        ("workers.engine.training.lockstep", "MOST_BYTES", 0),
    ],
)
def test_what_cannot_be_one_call_is_trained_one_by_one(
    file, tmp_path, stacks, monkeypatch, owner, name, value
):
    calls = stacks(0.5)
    monkeypatch.setattr(f"{owner}.{name}", value)
    results, _ = trained(task_of(file, tmp_path, fit={**FIT, "epochs": 2}))
    assert calls == []
    assert [result["epochs"] for result in results.values()] == [2, 2, 2]


def test_executions_one_by_one_keep_no_rows_of_those_before(file, tmp_path, stacks, monkeypatch):
    from workers.engine.training.loops import ProgramLoop

    stacks(None)
    alive: list[weakref.ref[ProgramLoop]] = []
    begin = ProgramLoop.__init__

    def noting(self, *args, **named):
        gc.collect()
        assert not any(loop() for loop in alive), "one that is done still holds its rows"
        begin(self, *args, **named)
        alive.append(weakref.ref(self))

    monkeypatch.setattr(ProgramLoop, "__init__", noting)
    trained(task_of(file, tmp_path, fit={**FIT, "epochs": 1}))
    assert len(alive) == 3


@pytest.fixture
def program(file):
    """A program that has trained for a minute, 0.01 s an epoch, and is known to be fast with many steps."""
    from workers.engine.data.dataset import load_dataset
    from workers.engine.training.prepare import prepare

    spec = spec_of("blobs", args=MLPS["plain"], fit=FIT)
    data = load_dataset(file, spec.data)
    made = prepare(spec, data, data.parts.train, name="t", seed=1).program
    made._choice.way = "many"
    made.trained, made.steps = 60.0, 60 * 100 * STEPS
    return made


def test_what_stacking_costs_is_asked_where_it_can_matter(program, monkeypatch):
    hour = 3600 * 100 * STEPS
    assert program.worth_stacking(3, STEPS, hour)
    assert not program.worth_stacking(300, STEPS, hour), "a call of three seconds"
    program.trained, program.steps = 10.0, 10 * 100 * STEPS
    assert not program.worth_stacking(3, STEPS, 100 * STEPS), "a second is left"
    assert not program.worth_stacking(3, STEPS, hour), "timing takes longer than was trained"
    program.trained, program.steps = 60.0, 60 * 100 * STEPS
    program._choice.way = None
    assert not program.worth_stacking(3, STEPS, hour), "one step a call may be faster still"
    program._choice.way = "many"
    program._choice.set_price(3, 1.0)
    assert not program.worth_stacking(3, STEPS, hour), "it is known"


def test_the_price_is_what_a_call_takes_by_what_one_takes_alone(program, monkeypatch):
    from workers.engine.compiled import vmapped

    now, took = [0.0], {1: 1.0, 4: 2.5}

    def train(lanes, _):
        now[0] += took[len(lanes)]
        return [(None, {}, None)] * len(lanes)

    monkeypatch.setattr(program.stacked, "train", train)
    monkeypatch.setattr(vmapped, "clock", lambda: lambda: now[0])
    program.stacked.measure(vmapped.Lane(None, None, None, None), 4, None, 0.01)
    assert program._choice.price(4) == pytest.approx(2.5)
    assert [program.stacked.pays(4, open_) for open_ in (2, 3, 4)] == [False, True, True]


def test_what_does_not_fit_into_memory_is_not_tried_again(program, monkeypatch):
    import jax

    from workers.engine.compiled import vmapped

    def train(*_):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")

    monkeypatch.setattr(program.stacked, "train", train)
    program.stacked.measure(vmapped.Lane(None, None, None, None), 4, None, 0.01)
    assert program.stacked.is_known(4)
    assert not program.stacked.pays(4, 4)


def test_the_price_is_found_on_the_model_itself_and_remembered(file, tmp_path, cache, monkeypatch):
    from workers.engine.compiled import program
    from workers.engine.compiled.autotune import Choice
    from workers.engine.tasks import trial

    task = task_of(file, tmp_path, args={"units": 7})
    trained(task)
    (kept,) = (kept for kept in trial.STOCK._kept.values() if kept.prepared.spec.model.args["units"] == 7)
    choice = kept.prepared.program._choice
    choice.make("many")
    monkeypatch.setattr(program, "WORTH_ALL", 0.0)
    trained(task)
    price = choice.price(3)
    assert 0.2 < price < 12
    assert Choice(choice._key).price(3) == price
    assert list(cache.glob("price-3-*"))
