"""Trials that stop at rungs, with real trainings: from the database through the engine and back."""

from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from jobs.messages.training import TrialTask
from jobs.models import DatasetVersion
from jobs.queries.runs import metrics
from jobs.spec.sections.pruning import Verdict
from jobs.store import LocalStore, store
from tests.engine.helpers import RecordingReport, profiled
from tests.engine.small_training import blobs_file, train_on
from tests.engine.training.engine_worker import EngineWorker
from tests.jobs.search.test_rung_promotion import CLIMB, FIT, climb
from tests.jobs.yard import Yard, make_yard
from tests.present import present
from workers.engine.models.losses import compute_metrics
from workers.engine.training.checkpoint import read


@pytest.fixture
def iris(db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Yard:
    """A yard with iris as its data set and its own store, since each test uses the same job numbers."""
    settings.TRAINYARD_ARTIFACTS = tmp_path / "artifacts"
    yard = make_yard()
    file = profiled(tmp_path / "iris", bundled="iris")
    DatasetVersion.objects.filter(pk=yard.dataset.pk).update(profile_json=file.profile)
    monkeypatch.setattr(LocalStore, "path", lambda _store, _digest: Path(file.path))
    return yard


def test_promoted_trials_resume_from_their_checkpoints_as_if_they_had_not_stopped(
    iris: Yard, tmp_path: Path
) -> None:
    worker = EngineWorker(tmp_path / "work")
    fit = {**FIT, "schedule": {"kind": "cosine"}}
    job = climb(worker, iris.submit(search=CLIMB | {"max_trials": 4}, fit=fit))
    assert job.state == "completed", job.error
    winner = job.trials.get(epochs=9)
    steps = {row.epoch: row for row in winner.checkpoints.order_by("pk")}
    assert {1, 3, 9} <= set(steps)
    resumed = [plan for task in worker.tasks for plan in task.trials if plan.number == winner.number]
    assert [(plan.until, plan.waits) for plan in resumed] == [(1, True), (3, True), (9, False)]
    assert [plan.executions[0].checkpoints[:1] == () for plan in resumed] == [True, False, False]

    unbroken = whole(worker, resumed[0], tmp_path / "whole")
    resumed_state = read(store().checkpoint_root / steps[9].folder)
    assert resumed_state.history == unbroken.history
    for group in ("model", "optimizer", "best"):
        for a, b in zip(resumed_state.arrays[group], unbroken.arrays[group], strict=True):
            np.testing.assert_array_equal(a, b)
    best = min(metrics_["val_loss"] for metrics_ in unbroken.history)
    assert winner.score == pytest.approx(best)
    assert winner.rungs == sorted(winner.rungs, reverse=True), "the best value never gets worse"


def test_executions_that_train_in_one_call_are_recorded_separately(
    iris: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.compiled.timing_results import TimingResults

    search = CLIMB | {"max_trials": 4, "executions_per_trial": 2}
    worker, states = EngineWorker(tmp_path / "work"), []
    for cost in (None, 0.5):
        monkeypatch.setattr(TimingResults, "relative_cost", lambda _self, _count, cost=cost: cost)
        worker.folder = tmp_path / f"at-{cost}"
        job = climb(worker, iris.submit(search=search, fit=FIT))
        assert job.state == "completed", job.error
        trials = job.trials.order_by("number")
        states.append([(t.state, t.rung, [(e.state, e.epochs) for e in t.executions.all()]) for t in trials])
        winner = job.trials.get(epochs=9)
        curves = [
            (s["execution"], len(s["points"]))
            for s in metrics.read_series(job, names=["val_loss"])
            if s["trial"] == winner.number
        ]
        assert sorted(curves) == [(1, 9), (2, 9)]
        assert {(row.execution, row.epoch) for row in winner.checkpoints.all()} >= {(1, 9), (2, 9)}
    assert states[0] == states[1]


def whole(worker: EngineWorker, plan: Any, folder: Path) -> Any:
    """Train the same trial without stopping; return its last checkpoint."""
    from workers.engine.tasks import trial

    alone = plan.model_copy(update={"until": None, "waits": False})
    task = worker.tasks[0].model_copy(
        update={"trials": (alone,), "folder": str(folder), "checkpoints": str(folder / "checkpoints")}
    )
    assert isinstance(task, TrialTask)
    report = RecordingReport(folder)
    trial.run(task, report)
    (last, _), *_ = reversed(report.of("checkpoint"))
    return read(Path(last[0]))


def test_a_trial_whose_objective_is_never_finite_fails_alone(
    iris: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.training import plan

    monkeypatch.setattr(plan, "compute_metrics", lambda *_: {"loss": float("nan")})
    worker = EngineWorker(tmp_path / "work")
    job = iris.submit(search=CLIMB | {"max_consecutive_failures": 1}, fit=FIT)
    climb(worker, job)
    failed = job.trials.filter(state="failed").first()
    assert failed is not None
    assert present(failed.error)["code"] == "nan_objective"
    assert "val_loss was nan" in present(failed.error)["message"]


def test_the_recorded_values_of_pruned_trials_match_their_curves(iris: Yard, tmp_path: Path) -> None:
    worker = EngineWorker(tmp_path / "work")
    search = {**CLIMB, "algorithm": "random", "max_trials": 10, "pruner": {"kind": "median"}}
    job = climb(worker, iris.submit(search=search, fit=FIT))
    assert job.state == "completed", job.error
    pruned = list(job.trials.filter(state="pruned").order_by("number"))
    assert pruned, "none of ten was worse than the median"
    curves = {
        series["trial"]: [point[1] for point in series["points"]]
        for series in metrics.read_series(job, names=["val_loss"])
    }
    for trial in pruned:
        decision, execution = trial.decisions.get(), trial.executions.get()
        epoch = present(decision.epoch)
        before = [curves[n] for n in range(1, trial.number) if len(curves[n]) >= epoch]
        threshold = median(min(map(present, values[:epoch])) for values in before)
        assert len(curves[trial.number]) == epoch == execution.epochs, "it trained further"
        assert (
            decision.value
            == pytest.approx(min(map(present, curves[trial.number])))
            == pytest.approx(trial.score)
        )
        assert decision.saw["cutoff"] == pytest.approx(threshold)
        assert decision.saw["of"] == len(before) >= 5
        assert present(decision.value) > threshold
        assert execution.state == "pruned"


def test_a_pruner_stops_nan_objectives_and_skips_trials_that_were_completed_before(
    iris: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.training import plan, pruning

    calls = count()
    monkeypatch.setattr(
        plan,
        "compute_metrics",
        lambda *args: compute_metrics(*args) if next(calls) < 10 else {"loss": float("nan")},
    )
    worker = EngineWorker(tmp_path / "work")
    search = {**CLIMB, "algorithm": "random", "max_trials": 6, "pruner": {"kind": "median"}}
    job = climb(worker, iris.submit(search=search, fit={**FIT, "epochs": 2}))
    cut = job.trials.get(number=6)
    assert (cut.state, cut.score, cut.error) == ("pruned", None, None)
    assert cut.decisions.get().value is None
    task = worker.tasks[-1]
    assert isinstance(task, TrialTask)
    fresh = task.trials[0]
    longer = fresh.model_copy(update={"until": 30})
    rivals = pruning.RivalCurves(task.curves, tuple)
    checks = [pruning.pruning_check(task, plan, plan.executions[0], rivals) for plan in (fresh, longer)]
    assert checks[0] is not None and checks[1] is None


def test_a_pruned_training_stays_pruned(tmp_path: Path) -> None:
    file, verdict = (
        blobs_file(tmp_path),
        Verdict(rule="median", execution=1, epoch=2, value=1, threshold=0, of=5),
    )
    first = train_on(file, tmp_path / "a", pruning_check=lambda epoch, _best: verdict if epoch == 2 else None)
    assert (first.result.epochs, first.result.verdict) == (2, verdict)
    (folder, _), *_ = reversed(first.report.of("checkpoint"))
    again = train_on(file, tmp_path / "a", resume=read(Path(folder[0])), pruning_check=lambda *_: None)
    assert (again.result.epochs, again.result.verdict) == (2, verdict)
