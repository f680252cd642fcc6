"""Trainings that read their rows from the file: order, interruptions and memory."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.kinds.ensemble.payload import EnsembleTask
from jobs.kinds.gate.payload import GateTask
from jobs.kinds.quantize.payload import QuantizeTask
from jobs.messages.task import DatasetFile
from jobs.messages.training import ExecutionPlan, TrialPlan, TrialTask
from jobs.spec.gates import GateRules, Slice
from jobs.spec.sections.after import Ensemble, Quantize
from tests.engine.data.test_tables import customers
from tests.engine.helpers import RecordingReport, csv_file, profiled, spec_of
from tests.engine.making import ArtifactReport, dataset_file, spec_for, train_member
from tests.engine.small_training import train_on
from tests.engine.training.test_streamed import BATCH_ROWS, STREAMED, loaded, threads_of_prefetching
from workers.engine.compiled import device_feed
from workers.engine.data.rows import StreamedRows
from workers.engine.data.store import file_digest

FIT = {"epochs": 3, "batch_size": 32, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    """A version with numbers, gaps, categories, dates, truth values and texts, in 19 batches."""
    folder = tmp_path_factory.mktemp("streamed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("workers.engine.data.reading.arrow_file.BATCH_ROWS", BATCH_ROWS)
        return profiled(folder, source="csv", path=csv_file(folder, customers()))


def test_streamed_training_ends_with_the_weights_of_training_in_memory_in_the_same_order(
    monkeypatch: pytest.MonkeyPatch, table: DatasetFile
) -> None:
    from workers.engine.training.loops import FitLoop
    from workers.engine.training.prepare import prepare

    spec, dataset = spec_of("t", fit=FIT, args={"units": 8}), loaded(table, STREAMED)
    first = prepare(spec, dataset, dataset.parts.train, name="t", seed=0)
    in_memory = dataclasses.replace(first, batches=dataclasses.replace(first.batches, x=first.batches.x[:]))
    # Blocks of two batches, the last of one.
    monkeypatch.setattr(device_feed, "STREAMED_BYTES", 2 * 32 * (first.batches.x.nbytes // 180 + 4))
    weights = []
    for prepared in (first, in_memory):
        loop = prepared.loop(epochs=2)
        loop.keep_step_mode("many")
        for epoch in (1, 2):
            loop.epoch(epoch, 0, [], lambda _: None)
            # The thread makes the first blocks of the next epoch, and ends with the last one.
            assert len(threads_of_prefetching()) == (prepared is first and epoch == 1)
        assert (loop.data_wait is not None) == (prepared is first)
        weights.append([weight.tobytes() for weight in loop.weights()])
    assert weights[0] == weights[1]
    streamed, there = FitLoop(first.model, first.batches), in_memory.batches
    assert [batch[0].tobytes() for batch in streamed._drawn(2, 1)] == [
        batch[0].tobytes() for batch in there.draw(2, 1)
    ]


def test_a_streamed_training_resumes_in_the_middle_of_an_epoch_and_ends_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: DatasetFile
) -> None:
    from workers.engine.report import TaskInterrupted
    from workers.engine.training import checkpoint, training

    parts: dict[str, Any] = {"fit": FIT, "args": {"units": 8, "dropout": 0.3}, "in_memory_bytes": STREAMED}
    monkeypatch.setattr(device_feed, "STREAMED_BYTES", 1)
    monkeypatch.setattr(training, "REQUEST_INTERVAL", 0.0)  # check for requests after every batch
    whole = train_on(table, tmp_path / "whole", **parts)
    with pytest.raises(TaskInterrupted):
        train_on(table, tmp_path / "broken", requests=[*[None] * 8, "pause"], **parts)
    middle = checkpoint.read(checkpoint.list_committed(tmp_path / "broken")[0])
    assert middle.state["batch"] > 0
    train_on(table, tmp_path / "broken", resume=middle, **parts)
    ends = [checkpoint.read(checkpoint.list_committed(tmp_path / name)[0]) for name in ("whole", "broken")]
    assert ends[0].weights == ends[1].weights
    assert ends[0].history == ends[1].history
    waits = [args[1] for args, _ in whole.report.of("metric")]
    assert all(0 <= values["system/data_wait_percent"] <= 100 for values in waits)
    assert not threads_of_prefetching()


def test_a_training_that_ends_before_its_last_epoch_reads_no_more_rows(
    tmp_path: Path, table: DatasetFile
) -> None:
    from workers.engine.report import TaskInterrupted

    fit = FIT | {"epochs": 9, "learning_rate": 1e-12}
    parts: dict[str, Any] = {"fit": fit, "args": {"units": 4}, "in_memory_bytes": STREAMED}
    trained = train_on(table, tmp_path / "a", patience=1, **parts)
    assert trained.result.epochs < 9
    assert not threads_of_prefetching()
    with pytest.raises(TaskInterrupted) as raised:
        train_on(table, tmp_path / "b", requests=["pause"], **parts)
    # The error holds the training, so nothing has ended by garbage collection.
    assert raised.tb is not None
    assert not threads_of_prefetching()


@pytest.mark.parametrize(("before", "after"), [(STREAMED, None), (None, STREAMED)])
def test_a_training_that_resumes_with_other_memory_keeps_the_order_of_its_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: DatasetFile, before: int | None, after: int | None
) -> None:
    from workers.engine.report import TaskInterrupted
    from workers.engine.training import checkpoint, training

    monkeypatch.setattr(device_feed, "STREAMED_BYTES", 1)
    monkeypatch.setattr(training, "REQUEST_INTERVAL", 0.0)
    fit: dict[str, Any] = {"fit": {**FIT, "epochs": 1, "steps_per_execution": 2}, "args": {"units": 4}}
    with pytest.raises(TaskInterrupted):
        train_on(table, tmp_path / "c", requests=["pause"], in_memory_bytes=before, **fit)
    middle = checkpoint.read(checkpoint.list_committed(tmp_path / "c")[0])
    assert middle.state["batch"] > 0
    resumed = train_on(table, tmp_path / "c", resume=middle, in_memory_bytes=after, **fit)
    dataset = loaded(table, STREAMED)
    rows = dataset.take(dataset.parts.train)[0]
    assert isinstance(rows, StreamedRows)
    windows = rows.parts
    began = dataclasses.replace(resumed.training._plan.batches, parts=None if before is None else windows)
    windowed = dataclasses.replace(began, parts=None if after is None else windows)
    used = resumed.training._plan.batches
    for actual, expected in zip(used.table(1), began.table(1), strict=True):
        np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(used.order(2), windowed.order(2))
    assert not np.array_equal(began.order(2), windowed.order(2))
    assert any("differs from epoch 2 on" in args[0] for args, _ in resumed.report.of("log"))


def test_each_batch_of_a_validation_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: DatasetFile
) -> None:
    from workers.engine import phases

    monkeypatch.setattr(phases, "INTERVAL", 0.0)
    parts: dict[str, Any] = {"fit": {**FIT, "epochs": 2}, "in_memory_bytes": STREAMED}
    trained = train_on(table, tmp_path / "checkpoints", **parts)
    announced = [args[0] for args, _ in trained.report.of("phase")]
    # The validation rows are one batch.
    assert announced.count("validating") == 2


def test_models_are_evaluated_on_streamed_rows_and_announce_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine import phases
    from workers.engine.tasks import ensemble, gate, quantize

    monkeypatch.setattr(phases, "INTERVAL", 0.0)

    spec, file = spec_for("diabetes"), dataset_file(tmp_path, "diabetes")
    members = tuple(train_member(tmp_path, f"m{k}", spec, file, units=16, seed=k) for k in (0, 1))
    challenger = members[0].model
    common = {"spec": spec, "dataset": file, "in_memory_bytes": STREAMED}
    reports = [ArtifactReport(tmp_path / str(number)) for number in range(3)]
    folders = [report.folder for report in reports]
    combined = ensemble.run(
        EnsembleTask(folder=folders[0], members=members, ensemble=Ensemble(), **common), reports[0]
    )
    smaller = quantize.run(
        QuantizeTask(folder=folders[1], model=challenger, quantize=Quantize(), **common), reports[1]
    )
    rules = GateRules(slices=(Slice(column="sex", value="1", min_rows=1),))
    digest = file_digest(Path(challenger))
    gates = gate.run(
        GateTask(
            folder=folders[2], challenger=challenger, challenger_digest=digest, champion=challenger,
            rules=rules, **common,
        ),
        reports[2],
    )  # fmt: skip
    assert ["evaluating" in report.phases for report in reports] == [True] * 3
    assert combined["test_rows"] == smaller["test_rows"] == gates["test_rows"] > 0
    # All of them have predicted the same rows.
    assert gates["metrics"]["challenger"] == gates["metrics"]["champion"] == smaller["original"]["test"]
    states = {entry["name"]: entry["state"] for entry in gates["gates"]}
    assert states.pop("signature") == "skipped"
    assert set(states.values()) <= {"passed", "failed"}


def test_the_folds_of_a_trial_are_trained_on_streamed_rows(tmp_path: Path, table: DatasetFile) -> None:
    from workers.engine.tasks import trial

    search = {
        "algorithm": "random", "objective": {"metric": "val_loss", "direction": "min"}, "max_trials": 1,
        "space": [{"name": "units", "kind": "int", "min": 4, "max": 8}],
        "evaluation": {"kind": "k_fold", "folds": 2},
    }  # fmt: skip
    spec = spec_of("t", fit={**FIT, "epochs": 1}, args={"units": 4}, search=search)
    executions = (ExecutionPlan(execution=1, seed=1, fold=2),)
    task = TrialTask(
        folder=str(tmp_path), checkpoints=str(tmp_path / "checkpoints"), in_memory_bytes=STREAMED, spec=spec,
        objective={"metric": "val_loss", "direction": "min"}, dataset=table,
        trials=(TrialPlan(number=1, values={}, spec=spec, executions=executions),),
    )  # fmt: skip
    report = RecordingReport(tmp_path)
    (result,) = trial.run(task, report)["trials"]
    assert [execution["state"] for execution in result["executions"]] == ["completed"]
    assert ["system/data_wait_percent" in args[1] for args, _ in report.of("metric")] == [True]
