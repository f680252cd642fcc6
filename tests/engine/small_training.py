"""Runs one small training as a trial does, for tests during and between epochs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jobs.messages.task import DatasetFile
from tests.engine.helpers import RecordingReport, blobs, profiled, spec_of
from tests.present import present

BLOBS = {"epochs": 4, "batch_size": 16, "learning_rate": 0.01}


class Trained(NamedTuple):
    training: Any
    result: Any
    report: RecordingReport


def blobs_file(folder: Path) -> DatasetFile:
    """Store and profile three well separated classes."""
    x, y = blobs()
    np.savez(folder / "blobs.npz", x=x, y=y)
    return profiled(folder / "profile", source="npz", path=str(folder / "blobs.npz"))


def train_on(
    file: DatasetFile, folder: Path, *, requests: Iterable[str | None] = (), resume: Any = None,
    patience: int | None = None, pruning_check: Any = None, in_memory_bytes: int | None = None,
    fence: int = 1, **parts: Any
) -> Trained:  # fmt: skip
    """Train on `file`; checkpoints go to `folder`."""
    from workers.engine.data.dataset import load_dataset
    from workers.engine.training import training
    from workers.engine.training.checkpointing import Checkpointer
    from workers.engine.training.early_stopping import BestTracker
    from workers.engine.training.plan import TrainingPlan
    from workers.engine.training.prepare import prepare

    spec = spec_of("blobs", **{"args": {"units": 8, "dropout": 0.3}, "fit": BLOBS, **parts})
    dataset = load_dataset(file, present(spec.data), spec.texts, in_memory_bytes)
    prepared = prepare(spec, dataset, dataset.parts.train, name="t", seed=spec.fit.seed)
    report = RecordingReport(folder.parent)
    report.requests = list(requests)
    stop = BestTracker("val_loss", "min", patience) if patience is not None else None
    plan = TrainingPlan(
        model=prepared.model, batches=prepared.batches, loop=prepared.loop(epochs=spec.fit.epochs),
        validation=prepared.evaluation_set(dataset.parts.validation), epochs=spec.fit.epochs,
        best=BestTracker("val_loss", "min"), stop=stop,
        checkpointer=Checkpointer(folder, report, fence=fence, interval=1e9),
        report=report, on_progress=lambda done: report.progress(done), hook=prepared.hook(),
        pruning_check=pruning_check,
    )  # fmt: skip
    run = training.Training(plan)
    return Trained(run, run.run(resume), report)
