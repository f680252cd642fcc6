"""How far earlier attempts have trained the models of an attempt."""

import time
from datetime import UTC, datetime

from jobs.actions.runs import attempt_end, schedule
from jobs.messages.events import CheckpointCommitted, Metric
from jobs.messages.task import EarlierTraining
from jobs.models import Attempt, Checkpoint
from jobs.queries.runs.earlier_trainings import earlier_trainings
from jobs.states import Outcome
from tests.jobs.yard import PretendWorker, Yard, begun, placed_search


def again(worker: PretendWorker, attempt: Attempt) -> Attempt:
    """Lose an attempt; return the next one."""
    attempt_end.finish(attempt.pk, Outcome.LOST)
    schedule.place_jobs()
    [following] = [claimed for claimed in worker.claim_all() if claimed.job_id == attempt.job_id]
    return following


def trained(installation: Yard, worker: PretendWorker, *, checkpoint: bool) -> Attempt:
    """Return a training's second attempt, after seven epochs and possibly a checkpoint of the fifth."""
    installation.submit()
    schedule.place_jobs()
    [attempt] = worker.claim_all()
    now = time.time()
    worker.report(attempt, Metric(time=now, points=(("loss", 7, 0.1, now),)))
    if checkpoint:
        event = CheckpointCommitted(time=now, folder="job-1/5", step=50, epoch=5, manifest="m", bytes=1)
        worker.report(attempt, event)
    return again(worker, attempt)


def test_the_first_attempt_has_nothing_before_it(installation: Yard, worker: PretendWorker) -> None:
    installation.submit()
    schedule.place_jobs()
    [attempt] = worker.claim_all()
    assert earlier_trainings(attempt).of_training() is None


def test_checkpoints_tell_the_epoch_and_who_wrote_them(installation: Yard, worker: PretendWorker) -> None:
    earlier = earlier_trainings(trained(installation, worker, checkpoint=True))
    assert earlier.of_training() == EarlierTraining(epoch=5)
    assert earlier.workers == {1: "w"}


def test_removed_checkpoints_are_the_reason(installation: Yard, worker: PretendWorker) -> None:
    attempt = trained(installation, worker, checkpoint=True)
    Checkpoint.objects.update(removed=datetime.now(UTC))
    found = earlier_trainings(attempt).of_training()
    assert found is not None
    assert found.reason == "its checkpoints were removed, since nothing was to resume from them"


def test_without_a_checkpoint_the_metrics_tell_the_epoch(installation: Yard, worker: PretendWorker) -> None:
    found = earlier_trainings(trained(installation, worker, checkpoint=False)).of_training()
    assert found is not None
    assert (found.epoch, found.had_checkpoint) == (7, False)


def test_each_execution_of_a_trial_has_its_own(installation: Yard, worker: PretendWorker) -> None:
    _, held = placed_search(installation, worker)
    trial = held[0].trials.get()
    event = CheckpointCommitted(
        time=time.time(), trial=trial.number, execution=2, folder="job-1/5", step=5, epoch=5, manifest="m",
        bytes=1,
    )  # fmt: skip
    worker.report(held[0], begun(trial), event)
    earlier = earlier_trainings(again(worker, held[0]))
    assert earlier.of_training(trial.pk, 2) == EarlierTraining(epoch=5)
    assert earlier.of_training(trial.pk, 1) is None
