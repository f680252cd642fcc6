"""Pruning rules, compared with an independent implementation."""

import random
from collections.abc import Iterator
from statistics import median
from typing import Any

import pytest
from pydantic import ValidationError

from jobs.spec.sections.pruning import AshaPruner, Curve, HyperbandPruner, MedianPruner, judge
from jobs.spec.sections.search import SearchSpec

SPACE = [{"name": "learning_rate", "kind": "float", "min": 1e-3, "max": 1e-1}]


def curve(trial: int, *values: float, over: bool = False, execution: int = 1) -> Curve:
    """Return a learning curve with one value per epoch, to be minimized."""
    best = [(e, v) for e, v in enumerate(values, 1) if v < min(values[: e - 1], default=9e9)]
    return Curve(trial=trial, execution=execution, epochs=len(values), over=over, best=tuple(best))


def test_the_median_pruner_compares_best_values_at_the_same_epoch() -> None:
    rng = random.Random(1)
    runs = [[rng.random() for _ in range(rng.randint(2, 6))] for _ in range(30)]
    others = [curve(n, *run) for n, run in enumerate(runs, 1)]
    for _ in range(50):
        mine = [rng.random() for _ in range(rng.randint(1, 6))]
        reached = [min(run[: len(mine)]) for run in runs if len(run) >= len(mine)]
        verdict = judge(MedianPruner(), others, curve(99, *mine), epochs=9, maximize=False)
        if len(reached) < 5 or min(mine) <= median(reached):
            assert verdict is None
        else:
            assert verdict is not None
            assert (verdict.value, verdict.threshold, verdict.of) == (
                min(mine),
                median(reached),
                len(reached),
            )
        shuffled = rng.sample(others, len(others))
        assert judge(MedianPruner(), shuffled, curve(99, *mine), epochs=9, maximize=False) == verdict


def test_the_median_pruner_respects_startup_trials_warm_up_and_interval() -> None:
    others = [curve(n, 0.1, 0.1, 0.1, 0.1, 0.1) for n in range(1, 6)]
    late = MedianPruner(warmup_epochs=1, interval=2)
    verdict = [
        judge(late, others, curve(9, *[0.5] * e), epochs=9, maximize=False) is not None for e in range(1, 6)
    ]
    assert verdict == [False, False, True, False, True]
    assert judge(late, others[:4], curve(9, 0.5, 0.5, 0.5), epochs=9, maximize=False) is None


def test_a_completed_training_that_was_ahead_counts_by_its_value_at_the_same_epoch() -> None:
    ahead = curve(1, 0.3, 0.2, 0.1, over=True)
    pruner = MedianPruner(startup_trials=1)
    thresholds = []
    for epoch in range(1, 6):
        verdict = judge(pruner, [ahead], curve(9, *[0.5] * epoch), epochs=9, maximize=False)
        assert verdict is not None
        thresholds.append(verdict.threshold)
    assert thresholds == [0.3, 0.2, 0.1, 0.1, 0.1]


def test_completed_trainings_count_at_later_epochs_and_pruned_ones_do_not() -> None:
    pruner = MedianPruner(startup_trials=1)
    mine = curve(9, 0.5, 0.5)
    assert judge(pruner, [curve(1, 0.1)], mine, epochs=9, maximize=False) is None
    assert judge(pruner, [curve(1, 0.1, over=True)], mine, epochs=9, maximize=False) is not None
    assert judge(pruner, [curve(1, 0.1, over=True, execution=2)], mine, epochs=9, maximize=False) is None


class Counting(tuple[Any, ...]):
    """A curve's values, which counts how often one is read."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        self.looks += 1
        return super().__getitem__(place)

    def __reversed__(self) -> Iterator[Any]:
        return (self[place] for place in reversed(range(len(self))))


def test_a_long_curve_is_searched_by_bisection() -> None:
    best = Counting((2 * place, 1.0 / place) for place in range(1, 1001))
    long = Curve.model_construct(trial=1, execution=1, epochs=2000, over=True, best=best)
    assert [long.at(epoch) for epoch in (1, 2, 3, 1000, 2000, 9999)] == [None, 1.0, 1.0, 1 / 500, 1e-3, 1e-3]
    assert best.looks < 6 * 15


def test_asha_keeps_a_third_at_a_rung_and_does_not_prune_elsewhere() -> None:
    others = [curve(n, n / 10, n / 10, n / 10) for n in range(1, 6)]
    for value in (0.05, 0.15, 0.25, 0.35):
        ranked = sorted([0.1, 0.2, 0.3, 0.4, 0.5, value])
        verdict = judge(AshaPruner(), others, curve(9, value), epochs=9, maximize=False)
        assert (verdict is None) == (value <= ranked[6 // 3 - 1])
    assert judge(AshaPruner(), others, curve(9, 1.0, 1.0), epochs=9, maximize=False) is None
    assert judge(AshaPruner(), others[:1], curve(9, 1.0), epochs=9, maximize=False) is None


def test_hyperband_compares_within_a_bracket_and_never_prunes_the_last() -> None:
    def verdict(trial: int) -> bool:
        others = [curve(n, *[0.1] * 9, over=True) for n in range(1, 18) if n != trial]
        return judge(HyperbandPruner(), others, curve(trial, 0.5), epochs=9, maximize=False) is not None

    # nine trials begin at rung 1, five at rung 3, three train to the end
    assert [verdict(n) for n in range(1, 18)] == [True] * 9 + [False] * 8


def test_larger_values_are_better_if_maximized() -> None:
    others = [Curve(trial=n, execution=1, epochs=1, over=True, best=((1, 0.9),)) for n in range(1, 6)]
    worse = Curve(trial=9, execution=1, epochs=1, over=False, best=((1, 0.5),))
    verdict = judge(MedianPruner(), others, worse, epochs=9, maximize=True)
    assert verdict is not None
    assert (verdict.value, verdict.threshold) == (0.5, 0.9)
    assert judge(MedianPruner(), others, worse, epochs=9, maximize=False) is None


@pytest.mark.parametrize("algorithm", ["hyperband", "asha"])
def test_algorithms_with_rungs_accept_no_pruner(algorithm: str) -> None:
    with pytest.raises(ValidationError, match="pruner must be absent"):
        SearchSpec.model_validate({"algorithm": algorithm, "space": SPACE, "pruner": {"kind": "median"}})
