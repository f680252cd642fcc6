"""A training that is killed at any point resumes from its last checkpoint and ends with identical bits."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.messages.task import CheckpointFolder, DatasetFile
from tests.runner.forks import ForkServer, fork_server
from tests.runner.harness import runner
from tests.runner.tasks import profiled, train_task
from workers.engine.data.store import file_digest
from workers.engine.killpoint import VARIABLE
from workers.engine.training import checkpoint
from workers.engine.training.checkpointing import INTERVAL_VARIABLE

SPEC = {
    "args": {"units": 8, "dropout": 0.3, "batch_norm": True},
    "fit": {"epochs": 6, "batch_size": 32, "learning_rate": 0.01},
    "retrain": {"patience": 6, "epochs_cap": 6, "epochs_factor": 1.5},
}
EVERY_EPOCH = {INTERVAL_VARIABLE: "0"}
ALWAYS = (
    "batch:14",
    "epoch:9",  # in the second phase
    "checkpoint.arrays:7",  # between the files of the second one
    "checkpoint.history:3",  # appended to the file of the checkpoints before
    "checkpoint.renamed:4",  # complete, but not reported
)
UNDER_CHAOS = (
    "epoch:1",  # before any checkpoint exists
    "batch:1",  # in the middle of an epoch: a call is one step at first
    "checkpoint.begun:2",
    "checkpoint.arrays:1",
    "checkpoint.arrays:44",
    "checkpoint.state:1",
    "checkpoint.state:3",
    "checkpoint.manifest:1",
    "checkpoint.manifest:3",  # all written, not renamed
    "checkpoint.renamed:1",
    "checkpoint.renamed:9",
)
CHAOS = pytest.mark.skipif("TRAINYARD_CHAOS" not in os.environ, reason="many kills: set TRAINYARD_CHAOS=1")


def also(*points: str) -> Iterator[Any]:
    """Yield points that only the long run kills at."""
    return (pytest.param(point, marks=[pytest.mark.chaos, CHAOS]) for point in points)


POINTS = (*ALWAYS, *also(*UNDER_CHAOS))
TREE_POINTS = ("epoch:4", *also("epoch:1", "epoch:9", "checkpoint.renamed:3"))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kill")


@pytest.fixture(scope="module")
def server(base: Path) -> Iterator[ForkServer]:
    """Every run has a new runner; they share one fork server's imports."""
    with fork_server(base) as forking:
        yield forking


@pytest.fixture(scope="module")
def iris(base: Path) -> DatasetFile:
    return profiled(base / "iris", bundled="iris")


@pytest.fixture(scope="module")
def unbroken(base: Path, iris: DatasetFile, server: ForkServer) -> tuple[dict[str, str], Any]:
    """An undisturbed run's result."""
    with runner(base / "unbroken-log", EVERY_EPOCH, server) as process:
        events = process.run(train_task(base / "unbroken", iris, **SPEC))
    assert events[-1].type == "result", events[-1]
    return remains(base / "unbroken"), events[-1].result


def remains(folder: Path) -> dict[str, str]:
    """Digest everything that must be equal bit for bit: weights, optimizer, best weights, predictions."""
    last = checkpoint.list_committed(folder / "checkpoints")[0]
    return {
        **{group: file_digest(last / f"{group}.npz") for group in ("model", "optimizer", "best")},
        "predictions": file_digest(folder / "predictions.csv"),
    }


def recorded_checkpoints(events: Iterable[Any]) -> tuple[CheckpointFolder, ...]:
    """Return the checkpoints that were reported to the supervisor."""
    return tuple(
        CheckpointFolder(folder=e.folder, manifest=e.manifest, step=e.step)
        for e in events
        if e.type == "checkpoint"
    )


@pytest.mark.parametrize("point", POINTS)
def test_killed_at(
    point: str, base: Path, iris: DatasetFile, unbroken: tuple[dict[str, str], Any], server: ForkServer
) -> None:
    folder = base / point.replace(":", "-")
    with runner(folder / "first", {**EVERY_EPOCH, VARIABLE: point}, server) as process:
        process.start(train_task(folder, iris, **SPEC))
        assert process.process.wait(120) == -9, process.log.read_text()
        process.wait_until_closed()
        checkpoints = recorded_checkpoints(process.events)
    with runner(folder / "second", EVERY_EPOCH, server) as process:
        events = process.run(train_task(folder, iris, fence=2, resume=checkpoints, **SPEC))
    assert events[-1].type == "result", events[-1]
    assert (remains(folder), events[-1].result) == unbroken
    resumed = [event for event in events if event.type == "resumed"]
    assert len(resumed) == bool(checkpoints), "nothing can be resumed before the first checkpoint is reported"
    assert all(event.loaded == event.saved != "" for event in resumed), "other weights than were saved"
    assert not list((folder / "checkpoints").glob(".tmp-*"))


TREES = {
    "template": "trees",
    "args": {"features": 0.5},
    "fit": {"epochs": 6},
    "retrain": {"patience": 6, "epochs_cap": 6, "epochs_factor": 1.5},
}


@pytest.mark.parametrize("point", TREE_POINTS)
def test_trees_that_are_killed_are_grown_again_and_end_with_the_same_predictions(
    point: str, base: Path, iris: DatasetFile, server: ForkServer
) -> None:
    whole = base / "trees"
    if not whole.exists():
        with runner(base / "trees-log", EVERY_EPOCH, server) as process:
            assert process.run(train_task(whole, iris, **TREES))[-1].type == "result"
    folder = base / f"trees-{point.replace(':', '-')}"
    with runner(folder / "first", {**EVERY_EPOCH, VARIABLE: point}, server) as process:
        process.start(train_task(folder, iris, **TREES))
        assert process.process.wait(120) == -9, process.log.read_text()
        process.wait_until_closed()
        checkpoints = recorded_checkpoints(process.events)
    with runner(folder / "second", EVERY_EPOCH, server) as process:
        events = process.run(train_task(folder, iris, fence=2, resume=checkpoints, **TREES))
    assert events[-1].type == "result", events[-1]
    assert remains(folder) == remains(whole)
    resumed = [event for event in events if event.type == "resumed"]
    assert len(resumed) == bool(checkpoints)
    assert all(event.loaded == event.saved != "" for event in resumed), "other trees than before"


STREAMED = {**SPEC, "in_memory_bytes": 0}


def test_a_streamed_training_that_is_killed_ends_with_the_same_bits(
    base: Path, server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.engine.data.reading.arrow_file.BATCH_ROWS", 8)
    table, whole, folder = (
        profiled(base / "parts", bundled="iris"),
        base / "streamed",
        base / "streamed-killed",
    )
    with runner(base / "streamed-log", EVERY_EPOCH, server) as process:
        assert process.run(train_task(whole, table, **STREAMED))[-1].type == "result"
    with runner(folder / "first", {**EVERY_EPOCH, VARIABLE: "batch:14"}, server) as process:
        process.start(train_task(folder, table, **STREAMED))
        assert process.process.wait(120) == -9, process.log.read_text()
        process.wait_until_closed()
        checkpoints = recorded_checkpoints(process.events)
    with runner(folder / "second", EVERY_EPOCH, server) as process:
        events = process.run(train_task(folder, table, fence=2, resume=checkpoints, **STREAMED))
    assert events[-1].type == "result", events[-1]
    assert [event.type for event in events].count("resumed") == 1
    assert remains(folder) == remains(whole)
