import json
import math
import pkgutil
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from jobs.messages.suggest import SuggestRequest, TrialRow
from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space.search_space import check_values, grid
from jobs.spec.space.size import grid_size
from tests.engine.search.searching import Values, ask, finished, items, play, search, values_of
from tests.present import present
from workers.engine.search.suggest import suggest

SPACE: list[dict[str, Any]] = [
    {"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16},
    {"name": "optimizer", "kind": "choice", "values": ["rmsprop", "adam"]},
    {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.5, "step": 0.1,
     "when": {"name": "optimizer", "in": ["adam"]}},
    {"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"},
    {"name": "batch_norm", "kind": "boolean"},
    {"name": "filters", "kind": "int", "min": 1, "max": 512, "sampling": "log"},
    {"name": "activation", "kind": "fixed", "value": "relu"},
]  # fmt: skip
SMALL = SPACE[:2]


def run(
    spec: SearchSpec,
    trials: int,
    objective: Callable[[Values], float | None],
    parallel: int = 1,
    rows: Iterable[TrialRow] = (),
) -> list[TrialRow]:
    """Simulate a search without failures: ask for a trial, score it, ask again."""
    rows = list(rows)
    while len(rows) < trials:
        answer = ask(spec, rows, min(parallel, trials - len(rows)))
        if answer.exhausted and not answer.suggestions:
            break
        for said in answer.suggestions:
            rows.append(scored(len(rows) + 1, said.values, objective(said.values), epochs=said.epochs))
    return rows


def scored(number: int, values: Values, score: float | None, **more: Any) -> TrialRow:
    return TrialRow(number=number, state="completed", values=values, score=score, **more)


def bowl(values: Values) -> float:
    """The minimum is 0, at 48 units and learning rate 0.01."""
    return -(((values["units"] - 48) / 48) ** 2) - (math.log10(values["learning_rate"]) + 2) ** 2


@pytest.mark.parametrize("info", ALGORITHMS.values(), ids=list(ALGORITHMS))
def test_every_algorithm_of_the_table_has_an_implementation(info: Any) -> None:
    assert callable(pkgutil.resolve_name(info.answer))


MODELS = ["bayesian", "tpe", "keras_tuner_bayesian"]
ALL = list(ALGORITHMS)


@pytest.mark.parametrize("algorithm", ALL)
def test_suggestions_are_in_the_space_and_have_its_types(algorithm: str) -> None:
    space = [p if "step" in p or p["kind"] not in ("int", "float") else {**p, "step": 4} for p in SPACE]
    spec = search(algorithm, space, max_trials=12)
    trials = 7 if algorithm == "keras_tuner_bayesian" else 12  # a second and a half each, from the seventh on
    for row in run(spec, trials, lambda v: v["units"] / 64, parallel=3):
        assert check_values(spec.space, row.values) == row.values
        assert {name: type(v) for name, v in row.values.items()}.items() >= {
            "units": int, "optimizer": str, "learning_rate": float, "batch_norm": bool, "filters": int,
        }.items()  # fmt: skip
        assert json.loads(json.dumps(row.values)) == row.values


@pytest.mark.parametrize("algorithm", ALL)
def test_the_same_rows_in_any_order_give_the_same_answer(algorithm: str) -> None:
    spec = search(algorithm, SMALL + SPACE[3:4] if algorithm != "grid" else SMALL, max_trials=14)
    rows = run(spec, {"grid": 5, "keras_tuner_bayesian": 8}.get(algorithm, 12), lambda v: v["units"] / 64)
    rows[3] = rows[3].model_copy(update={"state": "running", "score": None})
    shuffled = list(rows)
    random.Random(0).shuffle(shuffled)
    asked = [SuggestRequest(search=spec, trials=tuple(order), count=2) for order in (rows, shuffled)]
    again = SuggestRequest.model_validate_json(asked[0].model_dump_json(by_alias=True))
    first, *others = (suggest(request) for request in (*asked, again))
    assert others == [first, first]


def test_random_trials_do_not_depend_on_the_number_requested_at_once() -> None:
    spec = search(space=SPACE)
    assert run(spec, 12, bowl) == run(spec, 12, bowl, parallel=12)


@pytest.mark.parametrize("algorithm", ["random", "tpe"])
def test_another_seed_gives_other_suggestions(algorithm: str) -> None:
    assert ask(search(algorithm, SPACE, seed=0)) != ask(search(algorithm, SPACE, seed=1))


@pytest.mark.parametrize("algorithm", ["random", "tpe", "hyperband", "asha", "grid"])
def test_the_first_trial_has_the_defaults_unless_a_grid_is_enumerated(algorithm: str) -> None:
    space = [
        {"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16, "default": 48},
        {"name": "optimizer", "kind": "choice", "values": ["sgd", "rmsprop", "adam"], "default": "adam"},
        {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.5, "step": 0.1,
         "when": {"name": "optimizer", "in": ["adam"]}},
    ]  # fmt: skip
    spec = search(algorithm, space, "min", max_trials=9)
    first, *others = values_of(ask(spec, count=6))
    defaults = {"units": 48, "optimizer": "adam"}
    assert (defaults.items() <= first.items()) == (algorithm != "grid")
    assert check_values(spec.space, first) == first
    assert not all(defaults.items() <= values.items() for values in others)
    assert values_of(ask(spec, count=1)) == [first]
    later = ask(spec, [TrialRow(number=1, state="completed", score=1.0, values=first)])
    assert values_of(later)[0] != first


@pytest.mark.parametrize("algorithm", ["random", *MODELS])
def test_no_configuration_is_repeated_until_the_space_is_used_up(algorithm: str) -> None:
    spec = search(algorithm, SMALL, max_trials=10)
    rows = run(spec, 10, lambda v: v["units"])
    assert {items(row.values) for row in rows[:8]} == {items(v) for v in grid(spec.space)}
    assert len(rows) == 10 and ask(spec, rows).exhausted


@pytest.mark.parametrize("algorithm", ["random", "grid", "tpe", "bayesian"])
def test_a_repetition_may_be_answered_by_the_completed_trial(algorithm: str) -> None:
    by_hand = [scored(n, v, n, source="hand") for n, v in enumerate(grid(search(space=SMALL).space), 1)]
    spec = search(algorithm, SMALL, max_trials=10, duplicates="answer")
    answer = ask(spec, by_hand, 2)
    assert [s.values for s in answer.suggestions] == [
        by_hand[present(s.answered_by) - 1].values for s in answer.suggestions
    ]


def test_a_repetition_of_a_trial_without_score_is_replaced_and_not_answered() -> None:
    running = [scored(n, v, None).model_copy(update={"state": "running"})
               for n, v in enumerate(grid(search(space=SMALL).space), 1)][:7]  # fmt: skip
    for seed in range(5):
        (said,) = ask(search("random", SMALL, duplicates="answer", seed=seed), running).suggestions
        assert said.answered_by is None and items(said.values) not in {items(row.values) for row in running}


def test_repetitions_are_trained_again_if_the_spec_says_train() -> None:
    one = [{"name": "units", "kind": "choice", "values": [16]}]
    answer = ask(search("random", one, duplicates="train"), [scored(1, {"units": 16}, 0.5)], 3)
    assert [(s.values, s.answered_by) for s in answer.suggestions] == [({"units": 16}, None)] * 3
    by_hand = [scored(1, {"units": 16}, 0.5, source="hand")]
    assert values_of(ask(search("grid", one, duplicates="train"), by_hand)) == [{"units": 16}]
    assert ask(search("grid", one), by_hand).exhausted


def test_a_grid_is_enumerated_once_without_trials_queued_by_users() -> None:
    spec = search("grid", SMALL)
    by_hand = TrialRow(number=1, state="queued", values={"units": 32, "optimizer": "adam"}, source="hand")
    rows = run(spec, 100, lambda v: None, rows=[by_hand])
    assert [row.values for row in rows[1:]] == [v for v in grid(spec.space) if v != by_hand.values]


@pytest.mark.parametrize("counted", [SMALL, SPACE[:3], SPACE[4:], [
    {"name": "a", "kind": "boolean"},
    {"name": "b", "kind": "choice", "values": [1, 2, 3], "when": {"name": "a", "in": [True]}},
    {"name": "c", "kind": "int", "min": 1, "max": 5, "when": {"name": "b", "in": [1, 3]}},
    {"name": "d", "kind": "int", "min": 1, "max": 4, "when": {"name": "a", "in": [False]}},
]])  # fmt: skip
def test_a_grid_is_counted_without_being_enumerated(counted: Any) -> None:
    space = search(space=counted).space
    assert grid_size(space) == sum(1 for _ in grid(space))
    assert grid_size(space, 7) == 7


@pytest.mark.parametrize("algorithm", [a for a in ALL if a != "keras_tuner_bayesian"])
@pytest.mark.parametrize("seed", range(3))
def test_a_search_ends_for_any_order_of_endings_failures_and_missing_scores(
    algorithm: str, seed: int
) -> None:
    space = SMALL if algorithm == "grid" else [*SMALL, SPACE[2], SPACE[3]]
    policy = ("replace", "train" if ALGORITHMS[algorithm].has_rungs else "answer", "train")[seed]
    rows = play(algorithm, space, seed=seed, max_trials=14, duplicates=policy)
    assert finished(rows) and len(rows) <= 14
