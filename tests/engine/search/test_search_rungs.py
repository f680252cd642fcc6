"""Successive halving: the paper's brackets, and promotions verified by an independent count."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import optuna
import pytest

from jobs.messages.suggest import Answer, SuggestRequest, TrialRow
from jobs.spec.sections.rungs import RungOptions, brackets, rung_epochs, total_epochs
from tests.engine.search.searching import finished, play, row, search
from tests.present import present
from workers.engine.search.suggest import suggest

CONTINUOUS = [{"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"}]


def halving(
    algorithm: str, epochs: int = 9, rows: Iterable[TrialRow] = (), count: int = 1, **more: Any
) -> Answer:
    spec = search(algorithm, CONTINUOUS, direction="min", **more)
    return suggest(SuggestRequest(search=spec, epochs=epochs, trials=tuple(rows), count=count))


def waiting(number: int, *rungs: float | None, **more: Any) -> TrialRow:
    return row(number, "paused", rung=len(rungs) - 1, rungs=rungs, **more)


def test_hyperband_has_the_brackets_of_the_papers_example() -> None:
    planned = brackets(RungOptions(factor=3), epochs=81, max_trials=1000)
    assert [list(zip(b.sizes, b.epochs, strict=True)) for b in planned] == [
        [(81, 1), (27, 3), (9, 9), (3, 27), (1, 81)],
        [(34, 3), (11, 9), (3, 27), (1, 81)],
        [(15, 9), (5, 27), (1, 81)],
        [(8, 27), (2, 81)],
        [(5, 81)],
    ]
    # the paper counts each rung from epoch 0: no bracket takes more than B = 5 · 81, but for rounding up
    assert all(sum(n * r for n, r in zip(b.sizes, b.epochs, strict=True)) <= 1.15 * 405 for b in planned)
    assert total_epochs(planned[0]) == 81 + 27 * 2 + 9 * 6 + 3 * 18 + 54


def test_brackets_end_at_max_trials_and_are_repeated_for_each_iteration() -> None:
    cut = brackets(RungOptions(factor=3), epochs=81, max_trials=100)
    assert [b.sizes for b in cut] == [(81, 27, 9, 3, 1), (19, 6, 2, 1)]
    twice = brackets(RungOptions(factor=3, iterations=2), epochs=9, max_trials=1000)
    assert [b.sizes[0] for b in twice] == [9, 5, 3, 9, 5, 3]
    assert [b.number for b in twice] == list(range(6))


@pytest.mark.parametrize(
    ("low", "high", "factor", "rungs"),
    [(1, 81, 3, (1, 3, 9, 27, 81)), (1, 100, 3, (1, 4, 11, 33, 100)), (5, 9, 3, (9,)),
     (2, 16, 2, (2, 4, 8, 16)),
     (1, 1, 3, (1,))],
)  # fmt: skip
def test_the_last_rung_is_the_complete_training(
    low: int, high: int, factor: int, rungs: tuple[int, ...]
) -> None:
    assert rung_epochs(low, high, factor) == rungs


def test_asha_promotes_the_best_third_of_a_rung_with_the_reason() -> None:
    scores = {1: 0.9, 2: 0.2, 3: 0.5, 4: 0.1, 5: 0.7, 6: 0.6, 7: 0.8}
    answer = halving("asha", rows=[waiting(n, score) for n, score in scores.items()], count=3)
    best, second, fresh = answer.suggestions
    assert (best.promotes, best.rung, best.epochs) == (4, 1, 3)
    assert best.saw == {"rung": 0, "value": 0.1, "cutoff": 0.2, "of": 7}
    assert second.promotes == 2
    assert fresh.promotes is None and fresh.epochs == 1 and not answer.dropped


def test_asha_prefers_the_highest_rung() -> None:
    rows = [waiting(n, n / 10) for n in range(1, 7)]
    rows = [waiting(n, n / 10, 1 - n / 10) if n <= 3 else old for n, old in enumerate(rows, 1)]
    answer = halving("asha", rows=rows, count=5)
    assert [(s.promotes, s.rung) for s in answer.suggestions[:2]] == [(3, 2), (None, 0)]


def test_asha_drops_paused_trials_when_no_result_can_change() -> None:
    rows = [waiting(1, 0.5), waiting(2, 0.4), row(3, "running")]
    assert halving("asha", rows=rows, max_trials=3) == halving("asha", rows=rows[::-1], max_trials=3)
    assert not halving("asha", rows=rows, max_trials=3).exhausted
    over = halving("asha", rows=[*rows[:2], row(3, "failed")], max_trials=3)
    assert over.exhausted and [d.trial for d in over.dropped] == [1, 2]
    assert over.dropped[0].saw == {"rung": 0, "value": 0.5, "cutoff": None, "of": 2}


def test_a_hyperband_rung_waits_until_it_is_complete_while_the_next_bracket_fills() -> None:
    first = [waiting(n, n / 10) for n in range(1, 9)]
    answer = halving("hyperband", rows=[*first, row(9, "running")], count=3)
    assert [(s.promotes, s.bracket, s.epochs) for s in answer.suggestions] == [(None, 1, 3)] * 3
    answer = halving("hyperband", rows=[*first, row(9, "failed")], count=4)
    assert [s.promotes for s in answer.suggestions] == [1, 2, 3, None]
    assert [d.trial for d in answer.dropped] == [4, 5, 6, 7, 8]
    assert answer.dropped[0].saw == {"rung": 0, "value": 0.4, "cutoff": 0.3, "of": 9}


def test_a_trial_that_cannot_be_promoted_is_replaced_by_the_next_best() -> None:
    rows = [row(1, "stopped", rungs=(0.1,)), waiting(2, None), *(waiting(n, n / 10) for n in range(3, 10))]
    answer = halving("hyperband", rows=rows, count=3)
    assert [s.promotes for s in answer.suggestions] == [3, 4, 5]


def test_a_promotion_is_kept_if_the_trial_fails_later() -> None:
    rows = [row(1, "failed", rung=1, rungs=(0.1,)), row(2, "running", rung=1, rungs=(0.2,)),
            *(waiting(n, n / 10) for n in range(3, 10))]  # fmt: skip
    answer = halving("hyperband", rows=rows, count=3)
    assert [s.promotes for s in answer.suggestions] == [3, None, None]


def recount(rows: Sequence[TrialRow], rungs: Sequence[int], factor: int) -> Iterator[int]:
    """Compute ASHA's promotions independently, from the number of better trials."""
    for rung in reversed(range(len(rungs) - 1)):
        values = {r.number: r.rungs[rung] for r in rows if len(r.rungs) > rung}
        costs = {n: (math.inf if v is None else v, n) for n, v in values.items()}
        allowed = len(costs) // factor
        able = [r.number for r in rows if r.state == "paused" and r.rung == rung and r.number in costs
                and values[r.number] is not None
                and sum(other < costs[r.number] for other in costs.values()) < allowed]  # fmt: skip
        yield from sorted(able, key=costs.__getitem__)


@pytest.mark.parametrize("seed", range(4))
def test_asha_promotes_exactly_the_trials_of_an_independent_count(seed: int) -> None:
    seen = 0

    def compare(rows: list[TrialRow], answer: Answer, asked: int) -> None:
        nonlocal seen
        expected = list(recount(rows, (1, 3, 9, 27), 3))[:asked]
        assert [s.promotes for s in answer.suggestions if s.promotes] == expected
        seen += len(expected)

    play("asha", CONTINUOUS, seed=seed, max_trials=40, epochs=27, look=compare)
    assert seen > 10


def test_the_last_trial_of_a_rung_is_promoted_if_optunas_pruner_continues_it() -> None:
    """Optuna has the stopping variant: it decides when a trial arrives, so only the last sees all others."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    scores = [0.5, 0.9, 0.3, 0.8, 0.7, 0.6, 0.2, 0.4, 0.1]
    rows = [waiting(n, score) for n, score in enumerate(scores, 1)]
    ours = {s.promotes for s in halving("asha", rows=rows, count=3, max_trials=9).suggestions}
    for last in range(1, 10):
        pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3)
        study = optuna.create_study(pruner=pruner)
        for number in [*(n for n in range(1, 10) if n != last), last]:
            trial = study.ask()
            trial.report(scores[number - 1], 1)
            is_pruned = trial.should_prune()
        assert (last in ours) is not is_pruned


@pytest.mark.parametrize("algorithm", ["hyperband", "asha"])
def test_budgets_are_respected_and_every_trial_ends(algorithm: str) -> None:
    rows = play(algorithm, CONTINUOUS, seed=1, max_trials=40, epochs=27, trouble=0.0)
    assert finished(rows)
    reached = Counter(r.rung if algorithm == "asha" else r.epochs for r in rows)
    if algorithm == "asha":
        at_least = [sum(n for rung, n in reached.items() if present(rung) >= k) for k in range(4)]
        assert at_least[0] == 40 and all(b <= a / 3 + math.sqrt(a) for a, b in itertools.pairwise(at_least))
    else:
        planned = brackets(RungOptions(), 27, 40)
        ends: Counter[int] = Counter()
        for bracket in planned:
            for size, above, epochs in zip(
                bracket.sizes, (*bracket.sizes[1:], 0), bracket.epochs, strict=True
            ):
                ends[epochs] += size - above
        assert reached == ends
