"""Early stopping: what counts as an improvement, when patience runs out, and resuming."""

from collections.abc import Sequence

from workers.engine.training.early_stopping import BestTracker


def feed(tracker: BestTracker, values: Sequence[float]) -> BestTracker:
    for epoch, value in enumerate(values, start=tracker.best_epoch + tracker.wait + 1):
        tracker.update(epoch, value)
    return tracker


def test_the_best_epoch_counts_from_one() -> None:
    assert feed(BestTracker("val_loss", "min"), [3, 1, 2]).best_epoch == 2


def test_patience_runs_out_after_that_many_epochs_without_improvement() -> None:
    tracker = BestTracker("val_loss", "min", patience=2)
    assert not feed(tracker, [3, 4]).is_exhausted
    assert feed(tracker, [5]).is_exhausted


def test_a_gain_below_min_delta_is_no_improvement() -> None:
    assert feed(BestTracker("val_accuracy", "max", min_delta=0.1), [0.5, 0.55, 0.7]).best_epoch == 3


def test_nan_is_never_best() -> None:
    assert feed(BestTracker("val_loss", "min"), [float("nan"), 2]).best_epoch == 2


def test_a_restored_tracker_continues_as_if_it_had_not_stopped() -> None:
    unbroken = feed(BestTracker("val_loss", "min", patience=3), [3, 2, 4, 5])
    resumed = BestTracker("val_loss", "min", patience=3)
    resumed.restore(feed(BestTracker("val_loss", "min", patience=3), [3, 2]).state())
    assert feed(resumed, [4, 5]).state() == unbroken.state()
