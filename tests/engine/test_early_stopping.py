"""Early stopping: what counts as better, when patience ends, and that a resume changes nothing."""

from workers.engine.training.early_stopping import Watch


def feed(watch, values):
    for epoch, value in enumerate(values, start=watch.best_epoch + watch.wait + 1):
        watch.update(epoch, value)
    return watch


def test_the_best_epoch_counts_from_one():
    assert feed(Watch("val_loss", "min"), [3, 1, 2]).best_epoch == 2


def test_patience_ends_after_so_many_epochs_without_better():
    watch = Watch("val_loss", "min", patience=2)
    assert not feed(watch, [3, 4]).exhausted
    assert feed(watch, [5]).exhausted


def test_a_gain_below_min_delta_is_none():
    assert feed(Watch("val_accuracy", "max", min_delta=0.1), [0.5, 0.55, 0.7]).best_epoch == 3


def test_nan_is_never_best():
    assert feed(Watch("val_loss", "min"), [float("nan"), 2]).best_epoch == 2


def test_a_restored_watch_goes_on_as_if_it_had_never_stopped():
    unbroken = feed(Watch("val_loss", "min", patience=3), [3, 2, 4, 5])
    resumed = Watch("val_loss", "min", patience=3)
    resumed.restore(feed(Watch("val_loss", "min", patience=3), [3, 2]).state())
    assert feed(resumed, [4, 5]).state() == unbroken.state()
